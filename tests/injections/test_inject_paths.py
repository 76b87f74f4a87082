"""Paths are names, never files: in a filter, in a URL, as an id."""

import pytest
from flask.testing import FlaskClient
from pages import get, refs_of

STORED = (
    "../../etc/passwd",
    "/etc/passwd",
    "..\\..\\windows\\win.ini",
    "C:\\Windows\\win.ini",
    "\\\\server\\share\\x",
    "file:///etc/passwd",
    "http://evil.example/x.py",
    "a/../b.py",
    "a/%2e%2e/b.py",
    "~/.ssh/id_rsa",
    "$HOME/x.py",
    "`id`.py",
    "$(id).py",
    "x;rm -rf .py",
    "x|y.py",
    "x&y.py",
    "x y.py",
    "x'y.py",
    'x"y.py',
    "x%y.py",
    "x_y.py",
    "x[1].py",
    "x{1}.py",
    "x?.py",
    "x#1.py",
    "<x>.py",
    "..",
    "...",
    "-rf",
    "--help",
    "CON",
    "x.py\u202egnp.exe",
    "登录.py",
)


@pytest.mark.parametrize("path", STORED, ids=ascii)
def test_a_strange_path_finds_the_record_that_names_it_and_no_other(
    own_client: FlaskClient, path: str
) -> None:
    own_client.post("/api/observations", json={"title": "marmot", "files_read": [path]})
    own_client.post("/api/observations", json={"title": "other", "files_read": ["x/other.txt"]})
    assert refs_of(get(own_client, "/api/search/by-file", filePath=path)) == ["1"]
    assert own_client.get("/api/observation/1").get_json()["files_read"] == [path]


ABSENT = (
    *("../../etc/passwd", "/etc/passwd", "....//etc/passwd", "src/../../etc", "%2e%2e%2f"),
    *("src/payments/retry.py\x00.txt", "src/payments/retry.py%00", "src/payments/retry.pyx"),
    *("src/payments/retry.p_", "src/payments/%", "s%", "src/payments/retry.[p]y", "SRC/PAYMENTS"),
    *("payments/retry", "ayments/retry.py", "file:///src/payments", "~", "$HOME", "C:src"),
)


@pytest.mark.parametrize("path", ABSENT, ids=ascii)
def test_a_path_that_no_record_names_finds_nothing(client: FlaskClient, path: str) -> None:
    page = get(client, "/api/search/by-file", filePath=path)
    assert (page["total"], refs_of(page)) == (0, [])


BAD_ID = ("1'", "1;2", "1 OR 1", "-1", "+1", "1e3", "0x1", "1.0", "abc", "S1", "#1", "%00", "1%00")
FAR_ID = ("0", "10000000000000001", "999999999999999999")


@pytest.mark.parametrize("kind", ["observation", "session", "prompt"])
@pytest.mark.parametrize("id", [*BAD_ID, *FAR_ID])
def test_an_id_in_a_url_is_a_number(client: FlaskClient, kind: str, id: str) -> None:
    response = client.get(f"/api/{kind}/{id.replace('#', '%23').replace(' ', '%20')}")
    body = response.get_json()
    assert (response.status_code, body["code"], list(body["errors"])) == (
        *(400, "bad_parameter"),
        ["id"],
    )


@pytest.mark.parametrize("kind", ["observation", "session", "prompt"])
def test_a_number_that_no_record_has_is_not_found(client: FlaskClient, kind: str) -> None:
    response = client.get(f"/api/{kind}/4711")
    assert (response.status_code, response.get_json()["code"]) == (404, "no_such_record")


@pytest.mark.parametrize(
    "url",
    [
        *("/../etc/passwd", "/api/../../etc/passwd", "/static/app.py", "/.env", "/.git/config"),
        *("/api/observation/1/../../stats", "/api/observation/..%2f..%2fstats", "/api/search/"),
        *("/api/Search/observations/x", "/api/search/observations;x=1", "/api/search%2fhelpx"),
        *("/api/search/help.html", "/openapi.json/", "/openapi.yaml", "/worker.json"),
        *("/memsvc.db", "/api//nothing", "/%00", "/api/search/help%00", "/<script>"),
    ],
)
def test_a_url_outside_the_table_is_no_route(client: FlaskClient, url: str) -> None:
    response = client.get(url)
    if url in ("/api/search/", "/openapi.json/"):  # a slash more changes nothing
        assert response.get_json()["code" if url == "/api/search/" else "openapi"] in (
            *("bad_parameter", "3.1.0"),
        )
        return
    assert (response.status_code, response.mimetype) == (404, "application/problem+json")
    assert response.get_json()["code"] == "no_such_route"
