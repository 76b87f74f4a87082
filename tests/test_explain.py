"""`explain=1` says why each record stands where it stands; the parts add up to the score."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from samples import OBSERVATIONS
from strategies import plain_queries

TITLE_WORDS = sorted({word for record in OBSERVATIONS for word in record.title.split()})
QUERIES = st.one_of(
    plain_queries, st.lists(st.sampled_from(TITLE_WORDS), min_size=1, max_size=5).map(" ".join)
)


@given(query=QUERIES, days=st.sampled_from([{}, {"days": "all"}, {"days": "30"}]))
def test_the_parts_add_up_to_the_score(
    client: FlaskClient, query: str, days: dict[str, str]
) -> None:
    given_ = {"query": query, "explain": "1", "limit": "100", **days}
    for row in client.get("/api/search", query_string=given_).get_json()["results"]:
        parts = row["explain"]
        total = parts["lexical"] + parts["semantic"] + parts["recency"]
        assert total == pytest.approx(row["score"], abs=1e-9)
        assert min(parts["lexical"], parts["semantic"], parts["recency"]) >= 0
        assert parts["terms"]


def test_tells_the_terms_and_where_they_stand_in_one_line(ask: Any) -> None:
    page = ask("/api/search/observations", query="idempotency retry", explain="1")
    first = page["results"][0]
    assert first["ref"] == "1"
    assert "subtitle" in first["explain"]["terms"]["retry"]
    assert "facts" in first["explain"]["terms"]["idempotency"]
    assert "\n" not in first["explain"]["line"]
    assert str(first["score"]) in first["explain"]["line"]


@pytest.mark.parametrize("query", ["idempotency retry", "payment", "catalogue import", "the"])
def test_the_line_says_what_the_fields_say(ask: Any, query: str) -> None:
    rows = ask("/api/search", query=query, explain="1", limit="20")["results"]
    assert rows
    for row in rows:
        told = row["explain"]
        where = "; ".join(f"{term} in {', '.join(told['terms'][term])}" for term in told["terms"])
        assert told["line"] == (
            f"{where} | full text {told['lexical']} + semantic {told['semantic']} "
            f"+ recency {told['recency']} = {row['score']}"
        )
        numbers = (told["lexical"], told["semantic"], told["recency"])
        assert all(number == round(number, 4) for number in numbers)
        assert told["semantic"] == 0
        assert (told["recency"] > 0) <= (not row.get("older", False))


def test_is_left_out_unless_asked_for(ask: Any) -> None:
    for given_ in ({}, {"explain": "0"}):
        rows = ask("/api/search/observations", query="payment", **given_)["results"]
        assert not any("explain" in row for row in rows)


def test_is_shown_in_text_and_in_full_format_too(client: FlaskClient, ask: Any) -> None:
    full = ask("/api/search/observations", query="idempotency", explain="1", format="full")
    line = full["results"][0]["explain"]["line"]
    text = client.get("/api/search/observations?query=idempotency&explain=1&render=text")
    assert line in text.get_data(as_text=True)


def test_a_list_without_a_query_has_nothing_to_explain(ask: Any) -> None:
    rows = ask("/api/search/by-type", type="bugfix", explain="1")["results"]
    assert rows
    assert not any("explain" in row or "score" in row for row in rows)


def test_more_of_the_words_score_higher(ask: Any) -> None:
    rows = ask("/api/search/observations", query="double charge checkout", days="all")["results"]
    assert [row["ref"] for row in rows][:2] == ["1", "17"]
    assert 0 < rows[1]["score"] < rows[0]["score"] <= 1
