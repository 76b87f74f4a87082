"""The first layer: one ranked index over observations, session summaries and prompts."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import DAY, HOUR, NOW, numbered

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.records import Observation, Prompt, Record, Summary, kind_of


def crowd(count: int = 150) -> list[Record]:
    """Observations that hold one word of the question, more than candidates are looked at."""
    return [
        Observation(
            title=f"Note {number}", narrative="the walrus slept", created_at_epoch=NOW - HOUR
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "answer",
    [
        Prompt(prompt_text="why did the walrus sing at dawn?", created_at_epoch=NOW - DAY),
        Summary(request="Why the walrus sang at dawn", created_at_epoch=NOW - DAY),
        Observation(title="The walrus sings at dawn", created_at_epoch=NOW - DAY),
    ],
    ids=["prompt", "session", "observation"],
)
def test_the_best_answer_comes_first_whatever_its_kind(
    own_client: FlaskClient, own_store: SqliteStore, answer: Record
) -> None:
    own_store.write(numbered([*crowd(), answer]))
    page = own_client.get("/api/search?query=walrus+sing+dawn").get_json()
    assert page["results"][0]["kind"] == kind_of(answer)
    assert "dawn" in page["results"][0]["title"]
    scores = [row["score"] for row in page["results"]]
    assert scores == sorted(scores, reverse=True)


def test_no_kind_crowds_another_out(own_client: FlaskClient, own_store: SqliteStore) -> None:
    """Each kind says the same of each of forty things; all three answer each question."""
    things = [f"walrus{number} lamp{number} fjord" for number in range(40)]
    shapes: list[Record] = [
        record
        for thing in things
        for record in (
            Observation(title=thing, created_at_epoch=NOW - HOUR),
            Summary(request=thing, created_at_epoch=NOW - HOUR),
            Prompt(prompt_text=thing, created_at_epoch=NOW - HOUR),
        )
    ]
    own_store.write(numbered([*shapes, *crowd()]))
    for number in range(40):
        page = own_client.get(f"/api/search?query=lamp{number}+fjord&limit=3").get_json()
        assert [row["title"] for row in page["results"]] == [things[number]] * 3
        assert {row["kind"] for row in page["results"]} == {"observation", "session", "prompt"}


def test_a_filter_stands_for_a_query(ask: Any) -> None:
    page = ask("/api/search", project="docs")
    assert (page["strategy"], page["total"]) == ("filter", len(page["results"]))
    assert page["project"] == "docs"
    assert page["results"]
    assert {row["kind"] for row in ask("/api/search", kinds="prompt")["results"]} == {"prompt"}
    assert ask("/api/search", days=5)["total"] > 0


@pytest.mark.parametrize("given", [{}, {"query": " "}, {"kinds": "prompt,session,observation"}])
def test_neither_query_nor_filter_is_refused_and_names_both(
    refuse: Any, given: dict[str, str]
) -> None:
    problem = refuse("/api/search", **given)
    assert problem["error"] == "Missing required parameter: query"
    (message,) = problem["errors"]["query"]
    assert "kinds, type, concepts, files, project, during, dateStart" in message
