"""Answers as text: a header, one row a record, a next step; nothing in a record breaks a row."""

import re
import statistics
from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import DAY, NOW

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
    assert (title, cost) == ("Split the parser in two", "whole")
    assert full["whole"]


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


# -- rows worth their tokens ----------------------------------------------------------------------

HASH = "4f0c1d2e3a" + "5b6978" * 5


def _read(client: FlaskClient, ref: str) -> list[str]:
    """A record as text, by each of the two routes that read it."""
    kind = {"S": "session", "P": "prompt"}.get(ref[0], "observation")
    one = f"/api/{kind}/{ref.lstrip('SP')}"
    return [_text(client, f"/api/observations/batch?ids={ref}"), _text(client, one)]


def test_reading_a_record_costs_what_its_row_says(client: FlaskClient) -> None:
    costs = {}
    for row in _rows(_text(client, "/api/search?dateStart=2000-01-01&limit=100")):
        ref, *_, cost = (cell.strip(" #") for cell in row.strip("| ").split("|"))
        if cost != "whole":
            costs[ref] = int(cost)
    assert len(costs) > 5
    for ref, cost in costs.items():
        assert [count_tokens(text) for text in _read(client, ref)] == [cost, cost]


def test_reading_several_records_costs_little_more_than_their_sum(client: FlaskClient) -> None:
    page = _text(client, "/api/search/observations?query=idempotency+retry&limit=2")
    refs = [row.split("|")[1].strip(" #") for row in _rows(page)]
    to_read = sum(int(row.strip("| ").split("|")[-1]) for row in _rows(page))
    delivered = count_tokens(_text(client, f"/api/observations/batch?ids={','.join(refs)}"))
    assert 0 <= delivered - to_read <= 10


def test_costs_in_json_are_those_of_reading_json(client: FlaskClient) -> None:
    for row in client.get("/api/search?dateStart=2000-01-01&limit=100").get_json()["results"]:
        answer = client.get(f"/api/{row['kind']}/{row['id']}").get_data(as_text=True)
        assert row["read_tokens"] == count_tokens(answer)


@pytest.mark.parametrize(
    ("more", "cost", "whole"),
    [
        ({}, "whole", True),
        ({"files_modified": ["a.py"], "concepts": ["gotcha"]}, "whole", True),
        ({"subtitle": "Seen at noon", "narrative": "Seen\nat  noon"}, r"\d+", True),
        ({"narrative": "Seen at noon"}, r"\d+", False),
        ({"facts": ["seen"]}, r"\d+", False),
        ({"title": "marmot " * 30}, r"\d+", False),
        ({"title": "marmot\nseen"}, r"\d+", False),
    ],
    ids=str,
)
def test_a_row_says_when_there_is_nothing_more_to_read(
    own_client: FlaskClient, more: dict[str, Any], cost: str, whole: bool
) -> None:
    own_client.post("/api/observations", json={"title": "A marmot", **more})
    (row,) = _rows(_text(own_client, "/api/search?query=marmot"))
    assert re.search(rf"\| {cost} \|$", row)
    (found,) = own_client.get("/api/search?query=marmot").get_json()["results"]
    assert found.get("whole", False) is whole


def test_a_prompt_of_one_line_is_whole(own_client: FlaskClient) -> None:
    own_client.post("/api/prompts", json=[{"prompt_text": "go on"}, {"prompt_text": "go\non"}])
    rows = _rows(_text(own_client, "/api/search/prompts?query=go&orderBy=date_asc"))
    assert [row.endswith("| whole |") for row in rows] == [True, False]


def test_only_records_with_more_to_read_are_suggested(own_client: FlaskClient) -> None:
    records = [{"title": "marmot one"}, {"title": "marmot two", "narrative": "Seen at noon."}]
    own_client.post("/api/observations", json=records)
    assert _text(own_client, "/api/search?query=marmot").endswith("\nRead: memsvc read 2\n")


def _remember(client: FlaskClient, *ages: int) -> None:
    notes = [
        {"title": f"marmot {n}", "created_at_epoch": NOW - age * DAY} for n, age in enumerate(ages)
    ]
    client.post("/api/observations", json=notes)


@pytest.mark.parametrize(
    ("ages", "path", "marked", "said"),
    [
        ((1, 200), "", 1, "90 days · 1 older ·"),
        ((1, 2), "", 0, "90 days ·"),
        ((200, 300), "", 0, "90 days · 2 older ·"),
        ((1, 200, 300), "&limit=1&offset=1", 0, "90 days · 2 older, all of these ·"),
        ((1, 200, 300), "&format=full&limit=1&offset=1", 0, "90 days · 2 older, all of these ·"),
    ],
    ids=["some", "none", "all", "all of a page", "all in full"],
)
def test_rows_are_marked_as_older_only_where_they_differ(
    own_client: FlaskClient, ages: tuple[int, ...], path: str, marked: int, said: str
) -> None:
    _remember(own_client, *ages)
    header, *lines = _text(own_client, f"/api/search?query=marmot{path}").splitlines()
    assert sum(" older |" in line or line == "older: True" for line in lines) == marked
    assert said in header


@pytest.mark.parametrize(
    ("subtitle", "shown"),
    [
        ("It is a cold day.", False),
        ("It is a…", False),
        ("It is a cold day. Marmots sleep then, all of them.", True),
        ("Marmots sleep", True),
    ],
)
def test_a_subtitle_with_which_the_narrative_begins_is_read_once(
    own_client: FlaskClient, subtitle: str, shown: bool
) -> None:
    narrative = "It is\na cold day. Marmots sleep then."
    note = {"title": "marmot", "subtitle": subtitle, "narrative": narrative}
    own_client.post("/api/observations", json=note)
    for text in _read(own_client, "1"):
        assert (f"subtitle: {subtitle}" in text) is shown
    assert own_client.get("/api/observation/1").get_json()["subtitle"] == subtitle


def test_text_shows_ten_digits_of_a_commit_and_json_all(own_client: FlaskClient) -> None:
    note = {
        "title": f"Revert {HASH}",
        "narrative": f"This reverts commit {HASH}.\nSee v{HASH[:7]}.",
        "facts": [f"from {HASH}", f"sha256 {HASH}{HASH}"],
        "files_modified": [f"objects/{HASH}"],
        "source": "git:api",
        "source_id": HASH,
    }
    own_client.post("/api/observations", json=note)
    (row,) = _rows(_text(own_client, "/api/search?query=reverts"))
    assert f"| Revert {HASH[:10]} |" in row
    for text in _read(own_client, "1"):
        assert f"reverts commit {HASH[:10]}." in text
        assert f"source_id: {HASH[:10]}\n" in text
        assert f"- from {HASH[:10]}\n- sha256 {HASH}{HASH}\n" in text
        assert f"- objects/{HASH}\n" in text
    assert own_client.get("/api/observation/1").get_json().items() >= note.items()


def test_one_record_reads_the_same_by_both_routes(client: FlaskClient) -> None:
    for ref in ("1", "S1", "P1"):
        batch, one = _read(client, ref)
        assert batch == one
    assert "missing" in _text(client, "/api/observations/batch?ids=1,999")
