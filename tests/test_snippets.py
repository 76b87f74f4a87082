"""A snippet is the piece of a record that shows why it was found."""

import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from samples import OBSERVATIONS

from memsvc.core.words import STOP_WORDS

LONGEST = 160 + 8 * 4 + 4 * 40


def _snippet(client: FlaskClient, narrative: str, query: str) -> str:
    client.post("/api/observations", json={"id": 1, "title": "marmot", "narrative": narrative})
    (row,) = client.get("/api/search", query_string={"query": f"marmot {query}"}).get_json()[
        "results"
    ]
    return row.get("snippet", "")


@pytest.mark.parametrize(
    ("narrative", "query", "marked"),
    [
        ("The token has expired.", "token", "**token**"),
        ("Tokens expire.", "token", "**Tokens**"),
        ("Retries retried the retry.", "retry", "**retry**"),
        ("It calls getUserById twice.", "getUserById", "**getUserById**"),
        ("登录令牌过期。", "令牌", "**令牌**"),
        ("See src/main.py for it.", "main.py", "main"),
        ("İİİİİİİİ: the token, in İzmir", "token", "the **token**, in"),  # two in lower case
        ("a_token and xtoken, TOKEN_b", "token", "a_**token** and xtoken, **TOKEN**_b"),
    ],
)
def test_marks_the_words_looked_for(
    own_client: FlaskClient, narrative: str, query: str, marked: str
) -> None:
    assert marked in _snippet(own_client, narrative, query)


def test_shows_the_piece_where_the_words_stand_together(own_client: FlaskClient) -> None:
    narrative = f"A token. {'filler ' * 200} the refresh token outlived its session. {'end ' * 200}"
    snippet = _snippet(own_client, narrative, "refresh token session")
    assert "**refresh** **token** outlived its **session**" in snippet
    assert snippet.startswith("… ")
    assert snippet.endswith(" …")


def test_a_record_found_by_its_title_alone_needs_none(ask: Any) -> None:
    rows = ask("/api/search/observations", query="ECONNREFUSED")["results"]
    assert "snippet" not in rows[0]


@given(
    words=st.lists(
        st.sampled_from(sorted({w for o in OBSERVATIONS for w in o.narrative.split()})),
        min_size=1,
        max_size=6,
    )
)
def test_is_a_short_single_line_of_the_record(client: FlaskClient, words: list[str]) -> None:
    query = {"query": " ".join(words), "days": "all", "limit": "100"}
    for row in client.get("/api/search/observations", query_string=query).get_json()["results"]:
        snippet = row.get("snippet", "")
        assert len(snippet) <= LONGEST
        assert "\n" not in snippet
        assert snippet.count("**") % 2 == 0


STOP = ["the", "is", "that", "was", "other", "before", "why"]


@given(
    stop=st.lists(st.sampled_from([*STOP, "others", '"the token"', "title:the"]), max_size=5),
    words=st.lists(st.sampled_from(["token", "session", "retries"]), max_size=3),
)
def test_never_marks_a_stop_word(client: FlaskClient, stop: list[str], words: list[str]) -> None:
    query = {"query": " ".join([*stop, *words]) or "the", "days": "all", "limit": "100"}
    for row in client.get("/api/search", query_string=query).get_json()["results"]:
        marked = {word.lower() for word in re.findall(r"\*\*(.*?)\*\*", row.get("snippet", ""))}
        assert not marked & STOP_WORDS


def test_shows_the_piece_with_the_telling_words(own_client: FlaskClient) -> None:
    narrative = f"Why was it that the others did this? {'filler ' * 60} the refresh token. The end."
    snippet = _snippet(own_client, narrative, "why was the refresh token that others did")
    assert "the **refresh** **token**. The end." in snippet
