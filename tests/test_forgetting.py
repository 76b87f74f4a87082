"""Forgetting all records that match: what is selected, and that nothing of it is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from samples import NOW, RECORDS, fill, named
from workers import Worker, wait_until

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.application.privacy import forgetting
from memsvc.application.services import Services
from memsvc.core.filters import EVERYTHING, FIELDS, FilterField
from memsvc.core.query import parse
from memsvc.core.records import Kind, Ref
from memsvc.entrypoints.cli.main import memsvc
from memsvc.entrypoints.http.app import create_app


@pytest.fixture
def client(own_store: SqliteStore) -> FlaskClient:
    """The routes over samples of the test's own."""
    fill(own_store)
    return create_app(Services(own_store, lambda: NOW)).test_client()


def forget(client: FlaskClient, **given: Any) -> dict[str, Any]:
    response = client.post("/api/forget", json=given)
    assert response.status_code == 200, response.get_data(as_text=True)
    found: dict[str, Any] = response.get_json()
    return found


def held(store: SqliteStore) -> set[str]:
    return {str(Ref(kind, id)) for kind in Kind for id in store.selected_ids(kind, EVERYTHING)}


EVERY = {
    *(str(number) for number in range(1, 21)),
    *(f"S{number}" for number in range(1, 6)),
    *(f"P{number}" for number in range(1, 7)),
}


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"project": "docs"}, {"5", "13", "16", "S3", "P5"}),
        ({"type": "decision"}, {"2", "11", "17"}),
        ({"concepts": "gotcha", "type": "bugfix"}, {"1", "10"}),
        ({"files": "src/payments/client.py"}, {"1", "2", "S1"}),
        ({"query": "double charge"}, {"1", "17"}),
        ({"query": "double charge type:decision"}, {"17"}),
        ({"query": '"charged twice"'}, {"S1", "P1"}),
        ({"query": "double charge -ledger"}, {"1"}),
        ({"query": "-charge", "type": "decision"}, {"2", "11"}),
        ({"until": "2026-02-01"}, {"19", "20", "S5", "P6"}),
        ({"since": "3h"}, {"1", "2", "S1"}),
        ({"dateStart": "3h", "type": "bugfix"}, {"1"}),
        ({"since": "2026-11-06", "until": "2026-11-06"}, {"4", "P2"}),
        ({"source": "samples", "project": "docs"}, {"5", "13", "16", "S3", "P5"}),
        ({"source": "samples"}, EVERY),
        ({"source": "none such"}, set()),
        ({"project": "none such"}, set()),
        ({"query": "charge", "project": "docs"}, set()),
    ],
)
def test_what_matches_every_criterion_is_forgotten_and_nothing_else(
    client: FlaskClient, own_store: SqliteStore, given: dict[str, str], gone: set[str]
) -> None:
    rehearsed = forget(client, **given, dry_run="1")
    assert held(own_store) == EVERY
    assert (rehearsed["found"], rehearsed["forgotten"]) == (len(gone), 0)
    done = forget(client, **given)
    assert EVERY - held(own_store) == gone
    assert done == rehearsed | {"dry_run": False, "forgotten": len(gone)}


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_every_filter_selects_as_it_does_for_searches(
    client: FlaskClient, field: FilterField
) -> None:
    for value in sorted({value for record in RECORDS for value in field.values(record)} - {""}):
        given = {field.parameter: value}
        listed = client.get("/api/search", query_string=given | {"days": "all"}).get_json()
        assert forget(client, **given, dry_run="1")["found"] == listed["total"] > 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing says what to forget"),
        ({"dry_run": "1"}, "nothing says what to forget"),
        ({"query": " "}, "nothing says what to forget"),
        ({"query": "-charge"}, "nothing says what to forget"),
        ({"query": "!!!", "project": "docs"}, "no letter or digit"),
        ({"query": " ".join(f"w{number}" for number in range(70))}, "terms too many"),
        ({"project": " , "}, "no value in it"),
        ({"projct": "docs"}, "did you mean project?"),
        ({"since": "2026-11-06", "until": "2026-11-05"}, "after until"),
        ({"project": "docs", "dry_run": "maybe"}, "allowed: 0, 1"),
    ],
)
def test_a_request_that_may_mean_less_than_it_forgets_is_refused(
    client: FlaskClient, own_store: SqliteStore, given: dict[str, str], said: str
) -> None:
    response = client.post("/api/forget", json=given)
    assert response.status_code == 400
    assert said in response.get_json()["error"]
    assert held(own_store) == EVERY


def test_a_form_of_another_site_forgets_nothing(client: FlaskClient) -> None:
    assert client.post("/api/forget?project=docs").status_code == 415
    assert client.post("/api/forget", data={"project": "docs"}).status_code == 415


def test_the_answer_names_the_newest_records(client: FlaskClient) -> None:
    told = forget(client, project="docs", dry_run="1")
    counts = {name: told[name] for name in ("observations", "sessions", "prompts")}
    assert counts == {"observations": 3, "sessions": 1, "prompts": 1}
    assert told["newest"][0] == {
        "ref": "5",
        "kind": "observation",
        "day": "2026-11-05",
        "title": "Renamed 100%_done.txt | and a pipe",
    }


def test_what_was_forgotten_stays_away_when_it_is_written_again(
    client: FlaskClient, own_store: SqliteStore
) -> None:
    forget(client, project="docs")
    receipts = own_store.write(RECORDS)
    assert sum(receipt.outcome == "forgotten" for receipt in receipts) == 5


def test_nothing_of_a_forgotten_text_is_left_in_any_file(
    tmp_path: Path, own_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "BATCH", 7)
    own_store.write(
        named(
            f"kept{number}" if number % 2 else f"zanzibar{number}",
            project="open" if number % 2 else "zanzibarproject",
            narrative="some words " * 50 + ("" if number % 2 else "zanzibarword"),
            files_read=() if number % 2 else (f"src/zanzibarfile{number}.py",),
        )
        for number in range(100)
    )
    client = create_app(Services(own_store, lambda: NOW)).test_client()
    assert forget(client, project="zanzibarproject")["forgotten"] == 50
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix != "":
            text = path.read_bytes().lower()
            assert b"zanzibarproject" not in text
            assert b"zanzibarword" not in text
            assert b"zanzibarfile" not in text
    assert len(held(own_store)) == 50


def test_the_command_forgets_as_the_route_does(live: Worker) -> None:
    live.post("/api/observations", [{"title": "one", "project": p} for p in ("a", "b")])
    env = {"MEMSVC_HOME": str(live.home), "MEMSVC_PORT": live.port}

    def run(*words: str) -> Any:
        return CliRunner().invoke(memsvc, ["forget", *words], env=env)

    rehearsed = json.loads(run("--project", "a", "--dry-run", "--json").stdout)
    assert (rehearsed["found"], rehearsed["forgotten"]) == (1, 0)
    assert "forgotten: 1" in run("--project", "a").stdout
    assert json.loads(run("--project", "a", "--json").stdout)["found"] == 0
    refused = run()
    assert refused.exit_code == 2
    assert "nothing says what to forget" in refused.stderr
    assert run("observation", "2").exit_code == 0


def test_the_files_of_the_semantic_index_keep_nothing_of_it(live_semantic: Worker) -> None:
    def semantic() -> dict[str, Any]:
        found: dict[str, Any] = live_semantic.get("/api/readiness").json()["parts"]["semantic"]
        return found

    def kept_in() -> list[str]:
        files = [path for path in live_semantic.home.rglob("*") if path.is_file()]
        return [path.name for path in files if b"zanzibar" in path.read_bytes().lower()]

    items = [{"title": f"note {number}", "project": "zanzibar"} for number in range(10)]
    live_semantic.post("/api/observations", [*items, {"title": "kept"}])
    wait_until(lambda: semantic()["ok"] and not semantic()["waiting"])
    assert "chroma.sqlite3" in kept_in()
    assert live_semantic.post("/api/forget", {"project": "zanzibar"}).json()["forgotten"] == 10
    wait_until(
        lambda: semantic()["rebuilds"] == 1 and semantic()["ok"] and not semantic()["waiting"]
    )
    assert kept_in() == []


def test_an_index_that_lost_records_very_often_is_rebuilt_before_it_breaks(
    own_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes an index for damaged after 2,000 rounds of writing and forgetting."""
    text = " ".join(f"word{number}" for number in range(200))
    own_store.write([named(f"kept {number}", narrative=f"payment {text}") for number in range(40)])
    for number in range(12):
        _write_and_forget(own_store, number)
    assert _levels(own_store) > 5
    monkeypatch.setattr("memsvc.adapters.sqlite.upkeep.sweeping.MAX_LEVELS", 5)
    _write_and_forget(own_store, 12)
    wait_until(lambda: _levels(own_store) <= 5)
    assert own_store.count_matches(Kind.OBSERVATION, parse("payment"), EVERYTHING) == 40


def _write_and_forget(store: SqliteStore, number: int) -> None:
    (receipt,) = store.write([named(f"fleeting {number}")])
    assert receipt.ref
    store.forget(receipt.ref)


def _levels(store: SqliteStore) -> int:
    """The levels of the index of observations; one byte holds up to 127."""
    sql = "SELECT block FROM observations_fts_data WHERE id = 10"
    return int(store.connections.reader().execute(sql).fetchone()[0][4])
