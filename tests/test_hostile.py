"""No query is ever an error because of its characters, and every stored word finds its record."""

import re
import string
from urllib.parse import quote, unquote

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from samples import OBSERVATIONS
from strategies import queries

from memsvc.core.query import MAX_LENGTH

ROUTES = ["/api/search/observations", "/api/search/sessions", "/api/search/prompts"]
SYMBOLS = [chr(code) for code in range(128) if chr(code) not in string.ascii_letters]


def _answers(client: FlaskClient, path: str, raw_query: str) -> None:
    response = client.get(f"{path}?query={raw_query}")
    assert response.status_code in (200, 400), raw_query[:200]
    if response.status_code == 400:  # only a query of blanks, which is none
        assert response.get_json()["error"] == "Missing required parameter: query"


@given(query=queries, route=st.sampled_from([*ROUTES, "/api/search", "/api/timeline/by-query"]))
def test_any_text_is_a_query(client: FlaskClient, query: str, route: str) -> None:
    _answers(client, route, quote(query, errors="surrogatepass"))


@given(raw=st.binary(max_size=30).map(quote))
def test_any_bytes_are_a_query(client: FlaskClient, raw: str) -> None:
    _answers(client, "/api/search", raw)


@pytest.mark.parametrize("symbol", SYMBOLS, ids=ascii)
def test_every_symbol_is_literal_alone_doubled_and_at_a_word(
    client: FlaskClient, symbol: str
) -> None:
    for query in (symbol, symbol * 2, f"{symbol}payment", f"payment{symbol}", f"pay{symbol}ment"):
        _answers(client, ROUTES[0], quote(query))


@pytest.mark.parametrize(
    "query",
    [
        "AND",
        "OR NOT",
        "NEAR(a b, 3)",
        '"',
        '"""',
        "'",
        "don't",
        "title:",
        "title:*",
        '-"',
        '-""',
        "* *",
        "payment*",
        "^payment",
        "{title} : x",
        "title : x",
        "a AND (b",
        "NOT payment",
        "%00",
        "pay%00ment",
        "%ED%A0%80",
        "%ff%fe",
        "修复",
        "修",
        "🚀",
        "C++",
        "C%23",
        ".NET",
        "e%CC%81",
        "-payment",
        "-a -b -c",
        "type:",
        "project:%00",
        "file:*",
        "file:%5C",
        "file:[a-",
        "observations_fts",
        "rank",
        "rowid:1",
        "; DROP TABLE observations; --",
    ],
)
@pytest.mark.parametrize("route", ROUTES)
def test_operators_of_other_languages_are_words(
    client: FlaskClient, route: str, query: str
) -> None:
    _answers(client, route, query)


@pytest.mark.parametrize(
    "piece", ["payment ", "x", "登录", '"', "a-b_c.D ", "-x ", "(", "%00", "p* "]
)
@pytest.mark.parametrize(
    "route", [ROUTES[0], *(pytest.param(route, marks=pytest.mark.slow) for route in ROUTES[1:])]
)
def test_the_longest_query_is_answered(client: FlaskClient, route: str, piece: str) -> None:
    length = len(unquote(piece))
    _answers(client, route, quote(piece * (MAX_LENGTH // length), safe="%"))


def _words() -> list[tuple[str, str]]:
    found = [
        (word, record.source_id)
        for record in OBSERVATIONS
        for word in record.title.split()
        if re.search(r"\w", word)
    ]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(("word", "ref"), _words())
def test_every_word_of_a_title_finds_its_record(client: FlaskClient, word: str, ref: str) -> None:
    for query in (word, word.upper(), word.lower()):
        given_ = {"query": query, "days": "all", "limit": 100}
        page = client.get(ROUTES[0], query_string=given_).get_json()
        assert ref in [row["ref"] for row in page["results"]], query


@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ("SessionStore", "3"),
        ("session store", "3"),
        ("sessionstorev2", "3"),
        ("getUserById", "3"),
        ("get user", "3"),
        ("worker-service.ts", "3"),
        ("src/worker-service.ts", "4"),
        ("snake_case", "9"),
        ("snake", "9"),
        ("econnrefused", "10"),
        ("CLAUDE.md", "13"),
        ("v5.4.0", "18"),
        ("5.4", "18"),
        ("naive cafe", "16"),
        ("登录", "7"),
        ("登", "7"),
        ("令牌", "7"),
        ("Don't", "14"),
        ("swallow*", "14"),
        ('"swallow the timeout"', "14"),
        ("title:swallow", "14"),
        ("100%_done", "5"),
        ("idempotencykey", "1"),
    ],
)
def test_identifiers_and_other_scripts_are_found_whole_and_in_part(
    client: FlaskClient, query: str, ref: str
) -> None:
    given_ = {"query": query, "days": "all", "limit": 100}
    page = client.get(ROUTES[0], query_string=given_).get_json()
    assert ref in [row["ref"] for row in page["results"]]


@pytest.mark.parametrize(
    ("query", "ref"),
    [("charge -double", "1"), ('"keys idempotency"', "2"), ("title:ledger retry", "1")],
)
def test_what_must_not_or_must_stand_as_such_is_kept_to(
    client: FlaskClient, query: str, ref: str
) -> None:
    page = client.get(ROUTES[0], query_string={"query": query, "days": "all"}).get_json()
    assert ref not in [row["ref"] for row in page["results"]]


def test_terms_beyond_the_most_are_told(client: FlaskClient) -> None:
    query = " ".join(f"word{number}" for number in range(100))
    page = client.get(ROUTES[0], query_string={"query": f"payment {query}"}).get_json()
    assert "ignored" in page["notice"] or page["total"] > 0
