"""Headers: who may ask, in what form the answer comes, and that no value becomes a header."""

import pytest
from flask.testing import FlaskClient

PATH = "/api/search/observations?query=payment"

STRANGERS = (
    *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.localhost.example"),
    *("127.0.0.1.nip.io", "127.0.0.2.evil", "0.0.0.0", "127.1.evil", "169.254.169.254"),
    *("[::ffff:1.2.3.4]", "10.0.0.1", "localhost@evil.example", "xn--localhst-1za"),
    *("evil.example:37777", "localhost.", "1.1.1.1:80"),
)


@pytest.mark.parametrize("host", STRANGERS)
def test_a_host_that_is_not_this_machine_is_refused(client: FlaskClient, host: str) -> None:
    response = client.get(PATH, headers={"Host": host})
    assert response.status_code in (400, 403)
    assert response.get_json()["code"] in ("foreign_host", "bad_parameter")
    assert "results" not in response.get_json()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:37777", "localhost", "LOCALHOST:1"])
def test_a_host_that_is_this_machine_is_answered(client: FlaskClient, host: str) -> None:
    assert client.get(PATH, headers={"Host": host}).status_code == 200


ORIGINS = (
    *("http://evil.example", "https://evil.example:37777", "null", "http://localhost.evil.example"),
    *("http://127.0.0.1.evil.example", "http://user@evil.example", "file://", "data:text/html,x"),
    *("http://localhost@evil.example", "http://[::1", "chrome-extension://abc", "//evil.example"),
    *("javascript:alert(1)", "http://evil.example#localhost", "http://evil.example/localhost"),
)


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_origin_elsewhere_is_refused_for_every_method(
    client: FlaskClient, method: str, origin: str
) -> None:
    path = {"GET": PATH, "POST": "/api/observations", "DELETE": "/api/observation/1"}[method]
    response = client.open(path, method=method, headers={"Origin": origin}, json={"title": "x"})
    assert (response.status_code, response.get_json()["code"]) == (403, "foreign_host")
    assert "Access-Control-Allow-Origin" not in response.headers


ACCEPTS = {
    "": "application/json",
    "*/*": "application/json",
    "application/json": "application/json",
    "text/markdown": "text/markdown",
    "text/plain": "text/markdown",
    "text/html": "application/json",
    "text/html,application/xhtml+xml,*/*;q=0.8": "application/json",
    "application/xml": "application/json",
    "text/markdown;q=0": "application/json",
    "text/markdown;q=0.1,application/json;q=0.9": "application/json",
    "text/markdown;q=x": "application/json",
    "TEXT/MARKDOWN": "text/markdown",
    "text/markdown; charset=utf-7": "application/json",
    "../../etc/passwd": "application/json",
    "text/markdown\t": "text/markdown",
    "<script>": "application/json",
    ";;;,,,": "application/json",
    "text/*": "text/markdown",
    "a" * 5000: "application/json",
}


@pytest.mark.parametrize("accept", ACCEPTS, ids=lambda accept: ascii(accept[:40]))
def test_an_answer_comes_in_one_of_the_known_forms(client: FlaskClient, accept: str) -> None:
    response = client.get(PATH, headers={"Accept": accept})
    assert (response.status_code, response.mimetype) == (200, ACCEPTS[accept])
    assert response.headers["X-Content-Type-Options"] == "nosniff"


TAGS = {
    "*": 304,
    '"x"': 200,
    "W/*": 200,
    '"': 200,
    '""': 200,
    "x, y, z": 200,
    '"; DROP TABLE observations"': 200,
    "'": 200,
    "\\": 200,
    '"' + "f" * 4000 + '"': 200,
}


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: ascii(tag[:30]))
def test_a_tag_that_is_not_the_answers_brings_the_answer(client: FlaskClient, tag: str) -> None:
    assert client.get(PATH, headers={"If-None-Match": tag}).status_code == TAGS[tag]


BREAKS = ("\r\n", "\n", "\r", "\x0b", "\x85", "\u2028", "\u560a", "\u560d\u560a", "%0d%0a")
PLACES = {
    "/api/search/observations": "query",
    "/api/search/by-type": "type",
    "/api/search/by-concept": "concept",
    "/api/search/by-file": "filePath",
    "/api/context/recent": "project",
}


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("end", BREAKS, ids=ascii)
def test_a_line_break_in_a_value_adds_no_header_and_comes_back_as_data(
    client: FlaskClient, path: str, end: str
) -> None:
    value = f"x{end}Set-Cookie: a=1{end}{end}<html>"
    response = client.get(path, query_string={PLACES[path]: value})
    assert response.status_code == 200
    assert response.get_json()[PLACES[path]] == value
    assert "Set-Cookie" not in response.headers
    text = client.get(path, query_string={PLACES[path]: value, "render": "text"})
    header, *rest = text.get_data(as_text=True).split("\n")
    assert ("Set-Cookie" in header) == (PLACES[path] != "query")
    assert not [each for each in rest if "Set-Cookie" in each]


TYPES = {
    "": 415,
    "text/plain": 415,
    "text/html": 415,
    "application/x-www-form-urlencoded": 415,
    "multipart/form-data; boundary=x": 415,
    "application/xml": 415,
    "application/jsonx": 415,
    "json": 415,
    "application/json; charset=utf-16": 400,
    "application/problem+json": 201,
    "APPLICATION/JSON": 201,
}


@pytest.mark.parametrize("kind", TYPES)
def test_only_json_is_written(own_client: FlaskClient, kind: str) -> None:
    data = b'{"title":"x"}' if TYPES[kind] != 400 else b'\xff{"title":"x"}'
    response = own_client.post("/api/observations", data=data, content_type=kind)
    assert response.status_code == TYPES[kind]
    stored = own_client.get("/api/stats").get_json()["kinds"]["observations"]
    assert stored == (TYPES[kind] == 201)
