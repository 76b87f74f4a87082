"""SQL in any parameter of any route finds nothing, or is refused by name; it never runs."""

import pytest
from flask.testing import FlaskClient
from pages import get, rows_of

PAYLOADS = (
    "1' OR '1'='1",
    "1; DROP TABLE observations;--",
    '" UNION SELECT name FROM sqlite_master --',
)

COMMON = ("limit", "offset", "orderBy", "format", "dateStart", "dateEnd", "days", "max_tokens")
FILTERS = ("project", "type", "concepts", "files")
AROUND = ("depth_before", "depth_after", "kinds", "format")

ROUTES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "/api/search/observations": ({"query": "payment"}, (*COMMON, *FILTERS, "explain")),
    "/api/search/sessions": ({"query": "payment"}, (*COMMON, "project", "files", "explain")),
    "/api/search/prompts": ({"query": "payment"}, (*COMMON, "project", "explain")),
    "/api/search/by-type": ({"type": "bugfix"}, (*COMMON, "project", "concepts", "files")),
    "/api/search/by-concept": ({"concept": "gotcha"}, (*COMMON, "project", "type", "files")),
    "/api/search/by-file": ({"filePath": "src"}, (*COMMON, "project", "type", "concepts")),
    "/api/search": ({"query": "payment"}, (*COMMON, *FILTERS, "kinds")),
    "/api/context/recent": ({}, ("limit", "format", "render", *FILTERS)),
    "/api/context/timeline": ({"anchor": "8"}, (*AROUND, *FILTERS)),
    "/api/timeline/by-query": ({"query": "payment"}, ("mode", "limit", *AROUND, *FILTERS)),
    "/api/timeline": ({"anchor": "8"}, (*AROUND, *FILTERS)),
    "/api/context/inject": ({"render": "json"}, ("limit", "max_tokens", *FILTERS)),
    "/api/observations/batch": ({"ids": "1"}, ("orderBy", "max_tokens", "project")),
}
"""Every route with what it needs, and its other parameters."""

CASES = [
    pytest.param(route, name, payload, id=f"{route} {name}={payload}")
    for route, (_, names) in ROUTES.items()
    for name in names
    for payload in PAYLOADS
]

ONLY_ANCHOR = {"/api/context/timeline", "/api/timeline"}


@pytest.mark.parametrize(("route", "name", "payload"), CASES)
def test_sql_in_a_parameter_selects_nothing_or_is_refused(
    client: FlaskClient, route: str, name: str, payload: str
) -> None:
    given_ = {"render": "json", **ROUTES[route][0], name: payload}
    response = client.get(route, query_string=given_)
    body = response.get_json()
    if name in FILTERS:  # a name that no record carries
        assert response.status_code == 200
        assert [row["ref"] for row in rows_of(body)] == (["8"] if route in ONLY_ANCHOR else [])
    else:
        assert (response.status_code, body["code"]) == (400, "bad_parameter")
        assert list(body["errors"]) == [name]
        assert "allowed: " in body["error"]
    assert get(client, "/api/stats")["kinds"] == {"observations": 20, "sessions": 5, "prompts": 6}


REQUIRED = [
    pytest.param(route, name, payload, id=f"{route} {name}={payload}")
    for route, name in (
        ("/api/search/by-type", "type"),
        ("/api/search/by-concept", "concept"),
        ("/api/search/by-file", "filePath"),
    )
    for payload in (
        *PAYLOADS,
        "%",
        "_",
        "' OR 1 --",
        "\\",
        "''",
        ")",
        "x' ESCAPE '\\",
        "?",
        ":1",
        "bugfix\x00x",
        "gotcha\x00",
        "src\x00/x",
    )
]


@pytest.mark.parametrize(("route", "name", "payload"), REQUIRED)
def test_sql_in_a_name_is_a_name_that_nothing_has(
    client: FlaskClient, route: str, name: str, payload: str
) -> None:
    page = get(client, route, **{name: payload})
    assert (page[name], page["total"], rows_of(page)) == (payload, 0, [])


REFS = [
    pytest.param(route, name, payload, id=f"{route} {name}={payload}")
    for route, name in (
        ("/api/context/timeline", "anchor"),
        ("/api/timeline", "anchor"),
        ("/api/observations/batch", "ids"),
    )
    for payload in (*PAYLOADS, "1 OR 1", "S1--", "P1;", "#1'", "1/*", "0x1", "1e0", "-1", "+1")
]


@pytest.mark.parametrize(("route", "name", "payload"), REFS)
def test_sql_after_a_ref_is_no_ref(
    client: FlaskClient, route: str, name: str, payload: str
) -> None:
    response = client.get(route, query_string={name: payload})
    body = response.get_json()
    assert (response.status_code, body["code"], list(body["errors"])) == (
        *(400, "bad_parameter"),
        [name],
    )
    assert "123, #123, S12, P9" in body["error"]
