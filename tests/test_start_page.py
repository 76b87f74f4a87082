"""The page that a work session starts with: recent work, within a budget, by time alone."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from samples import DAY, HOUR, NOW, numbered, services_over
from strategies import names, texts

from benchmarks.sample import run_command, sample_worker
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.services import SWITCHED_OFF, Services
from memsvc.application.session_start import DEFAULT_TOKENS, MAX_TOKENS
from memsvc.core.records import Observation, Record, Summary
from memsvc.core.tokens import count_tokens
from memsvc.entrypoints.http.app import create_app

PATH = "/api/context/inject"


def page(client: FlaskClient, **given_: Any) -> str:
    response = client.get(PATH, query_string=given_)
    assert (response.status_code, response.mimetype) == (200, "text/markdown")
    return response.get_data(as_text=True)


def refs(text: str) -> list[str]:
    return re.findall(r"^#(\d+) ", text, re.M)


def test_it_lists_the_newest_observations_oldest_first_under_their_days(
    client: FlaskClient, zone: Any
) -> None:
    zone("UTC")
    text = page(client, project="shop", limit=3)
    assert refs(text) == ["9", "2", "1"]
    assert "newest 3 of 9 observations, oldest first" in text
    assert re.search(
        r"^2026-11-08\n#2 11:00 decision Chose idempotency keys over a lock \(\d+\)\n"
        r"#1 12:00 bugfix Fixed the double charge at checkout \(\d+\)$",
        text,
        re.M,
    )


def test_it_says_what_the_last_summary_learned_and_left_to_do(client: FlaskClient) -> None:
    text = page(client, project="shop")
    assert re.search(r"^Last summary S1 .*: Find out why customers are charged twice$", text, re.M)
    assert "learned: the bank answers late, the retry charges again\n" in text
    assert "next steps: watch the ledger\n" in text


def test_it_says_what_it_all_costs_and_how_to_dig_deeper(client: FlaskClient) -> None:
    text = page(client, project="shop", limit=2)
    assert re.search(
        r"Reading all of these: \d+ tokens; learning them cost 1200, so reading saves \d+%\.", text
    )
    assert "memsvc search WORDS" in text
    assert "memsvc timeline 1 " in text
    assert text.endswith("memsvc read 1,2\n")
    assert f"{count_tokens(text)} tokens" in text.splitlines()[0]


def test_every_command_that_it_names_runs_as_printed() -> None:
    with sample_worker() as address:
        (line,) = re.findall(r"^More: (.*)$", run_command("memsvc context", address), re.M)
        for command in line.split(" · "):
            assert command.startswith("memsvc ")
            printed = run_command(command.replace("WORDS", "refund"), address)
            assert re.search(r"^(\||###) ", printed, re.M), command


def test_it_names_the_projects_where_there_are_several(client: FlaskClient) -> None:
    assert page(client).startswith("# Memory · newest ")
    for both in ("shop,docs", "docs,shop"):
        assert "bugfix shop: Fixed the double charge" in page(client, project=both)
    one = page(client, project="shop")
    assert one.startswith("# Memory of shop · newest ")
    assert "shop:" not in one


def test_what_it_says_of_costs_is_of_the_rows_that_fit(client: FlaskClient) -> None:
    body = client.get(PATH, query_string={"max_tokens": 450, "render": "json"}).get_json()
    rows = body["results"]
    assert 0 < body["count"] < body["total"]
    assert body["economics"]["read_tokens"] == sum(row["read_tokens"] for row in rows)
    assert [row["ref"] for row in rows][:2] == ["1", "2"]


def test_it_is_text_unless_json_is_asked_for(client: FlaskClient) -> None:
    assert client.get(PATH).mimetype == "text/markdown"
    assert client.get(PATH, headers={"Accept": "*/*"}).mimetype == "text/markdown"
    assert client.get(f"{PATH}?render=json").is_json
    assert client.get(PATH, headers={"Accept": "application/json"}).is_json


def test_an_empty_store_is_a_welcome_of_two_lines(own_client: FlaskClient) -> None:
    lines = page(own_client).splitlines()
    assert len(lines) == 2
    assert "no records yet" in lines[0]
    assert "memsvc import" in lines[1]


def test_a_project_without_memories_is_two_lines_that_name_the_nearest(client: FlaskClient) -> None:
    lines = page(client, project="shopp").splitlines()
    assert len(lines) == 2
    assert "Projects with records: shop." in lines[1]


def test_a_store_of_summaries_alone_shows_the_last_one(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    own_store.write(numbered([Summary(request="Tidy up", next_steps="the attic")]))
    text = page(own_client)
    assert "Last summary S1" in text
    assert "next steps: the attic" in text
    assert "memsvc read S1" in text


@pytest.mark.parametrize("text", ["a\nb", "a\r\n# b", "a\u2028#7 b", "\x1b[31m", "a\u0085# b"])
@pytest.mark.parametrize("field", ["title", "type", "project", "session_id"])
def test_a_record_stays_on_its_line_whatever_it_holds(
    own_client: FlaskClient, field: str, text: str
) -> None:
    own_client.post("/api/observations", json={"title": "marmot", field: f"marmot {text}"})
    own_client.post("/api/sessions", json={"request": text, "learned": text, "next_steps": text})
    written = page(own_client)
    assert refs(written) == ["1"]
    assert [line[:2] for line in written.splitlines()].count("# ") == 1
    assert "\x1b" not in written


@pytest.mark.parametrize("budget", [None, 2000, 100_000])
def test_it_stays_below_nine_thousand_characters(
    own_client: FlaskClient, own_store: SqliteStore, budget: int | None
) -> None:
    made: list[Record] = [
        Observation(title=f"{number} " + "word " * 24, created_at_epoch=NOW - number * HOUR)
        for number in range(100)
    ]
    summary = Summary(request="r", learned="learned " * 5000, next_steps="next " * 5000)
    own_store.write(numbered([*made, summary]))
    text = page(own_client, limit=100, **({"max_tokens": budget} if budget else {}))
    assert len(text) < 9000
    assert count_tokens(text) <= min(budget or DEFAULT_TOKENS, MAX_TOKENS)
    assert refs(text)[-1] == "1"
    assert "learned: learned" in text


@pytest.mark.parametrize("semantic", ["none", "off"])
def test_it_needs_no_semantic_index(store: SqliteStore, semantic: str) -> None:
    services = services_over(store)
    if semantic == "off":
        services = Services(store, services.clock, None, SWITCHED_OFF)
    body = create_app(services).test_client().get(f"{PATH}?render=json").get_json()
    assert body["strategy"] == "temporal"
    assert "degraded" not in body


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteStore, FlaskClient]]:
    """One file for many small stores, each a project of its own."""
    opened = open_store(tmp_path_factory.mktemp("worlds") / "memsvc.db")
    yield opened, create_app(services_over(opened)).test_client()
    opened.close()


OBSERVATIONS = st.builds(
    Observation,
    title=texts.filter(bool),
    narrative=texts,
    type=st.one_of(st.sampled_from(["bugfix", "decision"]), st.text(max_size=40)),
    concepts=names,
    created_at_epoch=st.integers(NOW - 400 * DAY, NOW),
    session_id=st.sampled_from(["work-1", "work-2"]),
    discovery_tokens=st.integers(0, 10**9),
)
SUMMARIES = st.builds(
    Summary,
    request=texts.filter(bool),
    learned=texts,
    next_steps=texts,
    created_at_epoch=st.integers(NOW - 400 * DAY, NOW),
)
BUDGETS = st.one_of(st.integers(100, 400), st.integers(100, 20_000))


@given(
    observations=st.lists(OBSERVATIONS, max_size=8),
    copies=st.integers(1, 12),
    summaries=st.lists(SUMMARIES, max_size=2),
    budget=BUDGETS,
    render=st.sampled_from(["text", "text", "json"]),
    suffix=st.sampled_from(["", "字" * 20, "p" * 300]),
)
def test_no_store_makes_it_cost_more_than_its_budget(
    worlds: tuple[SqliteStore, FlaskClient],
    observations: list[Observation],
    copies: int,
    summaries: list[Summary],
    budget: int,
    render: str,
    suffix: str,
) -> None:
    store, client = worlds
    project = f"{store.generation()}-{suffix}"
    made = numbered([*observations * copies, *summaries])
    own = [_in_project(record, project, number) for number, record in enumerate(made)]
    store.write(own)
    response = client.get(
        PATH,
        query_string={"project": project, "max_tokens": budget, "render": render, "limit": 100},
    )
    text = response.get_data(as_text=True)
    assert response.status_code == 200
    assert count_tokens(text) <= budget
    assert len(text) < 9000
    assert own or render == "json" or len(text.splitlines()) == 2


def _in_project(record: Record, project: str, number: int) -> Record:
    return replace(record, project=project, source=project, source_id=str(number))
