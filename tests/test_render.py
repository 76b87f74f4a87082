"""Answers as text: a header, one row a record, a next step; nothing in a record breaks a row."""

import re
import statistics
from typing import Any

import pytest
from flask.testing import FlaskClient

from memsvc.core.tokens import count_tokens

TEXT = {"Accept": "text/markdown"}


def _text(client: FlaskClient, path: str) -> str:
    response = client.get(path, headers=TEXT)
    assert response.status_code == 200
    return response.get_data(as_text=True)


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize(
    "path",
    [
        "/api/search?query=the+payment&days=all&limit=100",
        "/api/search/by-type?type=bugfix,decision",
        "/api/search/by-file?filePath=src",
        "/api/context/timeline?anchor=8",
    ],
)
def test_each_record_is_one_row(client: FlaskClient, ask: Any, path: str) -> None:
    page = client.get(path, headers={"Accept": "application/json"}).get_json()
    rows = _rows(_text(client, path))
    assert len(rows) == page["count"] > 3
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)


def test_a_row_costs_at_most_forty_tokens_at_the_median(client: FlaskClient) -> None:
    rows = _rows(_text(client, "/api/search?dateStart=2000-01-01&limit=100"))
    assert len(rows) == 31
    assert statistics.median(map(count_tokens, rows)) <= 40


def test_a_row_tells_ref_local_time_type_title_and_cost(client: FlaskClient, zone: Any) -> None:
    zone("America/New_York")
    (row,) = _rows(_text(client, "/api/search/by-type?type=refactor"))
    ref, when, kind_of_work, title, cost = (cell.strip() for cell in row.strip("| ").split("|"))
    full = client.get("/api/search/by-type?type=refactor").get_json()["results"][0]
    assert (ref, when, kind_of_work) == ("#6", "2026-11-04 09:00", "refactor")
    assert (title, cost) == ("Split the parser in two", str(full["read_tokens"]))


def test_the_header_tells_counts_strategy_window_and_cost(client: FlaskClient) -> None:
    text = _text(client, "/api/search/observations?query=double+charge&limit=1")
    header = text.splitlines()[0]
    assert "1 of 2" in header
    assert "fulltext" in header
    assert "90 days" in header
    assert "1 older" in header
    assert f"{count_tokens(text)} tokens" in header


def test_the_last_line_is_a_next_step(client: FlaskClient) -> None:
    more = _text(client, "/api/search/observations?query=payment&limit=1").splitlines()[-1]
    assert "offset=1" in more
    assert re.search(r"read \d+", more)


@pytest.mark.parametrize(
    "field", ["title", "type", "narrative", "subtitle", "project", "session_id"]
)
@pytest.mark.parametrize("text", ["a | b", "a\nb", "| a\r\n| b |", "a\u2028b", "\\| a", "\x1b[31m"])
def test_no_text_of_a_record_breaks_its_row(own_client: FlaskClient, field: str, text: str) -> None:
    own_client.post("/api/observations", json={"title": "marmot", field: f"marmot {text}"})
    for path in (
        "/api/search?query=marmot",
        "/api/context/timeline?anchor=1",
    ):
        (row,) = _rows(_text(own_client, path))
        assert len(re.findall(r"(?<!\\)\|", row)) == 6
        assert "\x1b" not in row


def test_full_format_shows_all_that_a_record_says(client: FlaskClient) -> None:
    text = _text(client, "/api/search/observations?query=idempotency+retry&format=full&limit=1")
    for said in (
        "A retry after a timeout",
        "- the key lives for 24 hours",
        "- src/payments/client.py",
    ):
        assert said in text


def test_one_record_as_text_keeps_its_lists(client: FlaskClient) -> None:
    text = _text(client, "/api/observation/1")
    assert "- the key lives for 24 hours" in text
    assert "gotcha" in text


def test_nothing_found_is_said_in_a_line_with_the_near_words(client: FlaskClient) -> None:
    text = _text(client, "/api/search/observations?query=chekcout")
    assert text.startswith("0 of 0")
    assert "checkout" in text


def test_a_session_and_a_prompt_are_named_as_their_refs(client: FlaskClient) -> None:
    text = _text(client, "/api/search?query=guide")
    assert "S3 |" in text
    assert "P5 |" in text


def test_the_anchor_of_a_timeline_is_flagged(client: FlaskClient) -> None:
    rows = _rows(_text(client, "/api/context/timeline?anchor=8"))
    assert [row for row in rows if "anchor" in row] == [row for row in rows if "Ties are" in row]
