"""The page for a browser shows names from memory as text, never as markup or as a template."""

import html

import pytest
from flask.testing import FlaskClient

PAYLOADS = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "event": "' onmouseover='alert(1)",
    "closing tags": "</p></section></body></html>",
    "svg": "<svg/onload=alert(1)>",
    "comment": "<!-- x",
    "comment end": "--><b>x",
    "cdata": "<![CDATA[x]]>",
    "style": "</style><style>*{display:none}",
    "iframe": "<iframe srcdoc='x'>",
    "base": "<base href=//evil.example>",
    "meta": '<meta http-equiv=refresh content="0;url=//evil.example">',
    "link": '<a href="javascript:alert(1)">x</a>',
    "expression": "{{ 7*7 }}",
    "statement": "{% include 'x' %}",
    "template comment": "{# x #}",
    "config": "{{ config.items() }}",
    "entity": "&lt;b&gt; &amp;amp;",
    "numeric entity": "&#60;b&#62;",
    "half a tag": "<b",
    "quotation marks": "\"x\" 'y'",
    "backslash": "\\x3cb\\x3e",
    "wide brackets": "＜script＞",
    "dangling": "<img src='//evil.example/?",
}

FIELDS = {"type": "types", "concepts": "concepts", "project": "projects"}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_name_is_shown_as_it_was_written(
    own_client: FlaskClient, field: str, payload: str
) -> None:
    value = [payload] if field == "concepts" else payload
    own_client.post("/api/observations", json={"title": "x", field: value})
    response = own_client.get("/api/search/help", headers={"Accept": "text/html"})
    page = response.get_data(as_text=True)
    # markupsafe, which jinja uses, writes two of the five entities otherwise than `html`
    shown = html.escape(payload).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    assert (response.status_code, response.mimetype) == (200, "text/html")
    line = next(each for each in page.split("\n") if f"<b>{FIELDS[field]}</b>" in each)
    assert f'<b>{FIELDS[field]}</b>: {shown} <span class="soft">1</span>' in line
    assert page.count("<script") == 0


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("path", ["/api/search/help", "/"])
def test_a_name_of_an_operation_is_refused_as_data(
    client: FlaskClient, path: str, payload: str
) -> None:
    response = client.get(
        path, query_string={"operation": payload}, headers={"Accept": "text/html"}
    )
    assert (response.status_code, response.mimetype) == (400, "application/problem+json")
    assert response.get_json()["errors"]["operation"][0].startswith(f"given {payload[:80]!r}; ")
