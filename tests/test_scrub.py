"""Scrubbing: private parts and secrets are taken out of what is stored already."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from planted import Planted, plant, planted_secrets
from samples import NOW, fill, named
from test_privacy import HIDDEN, answered, items_of, leaked
from workers import Worker

from memsvc.adapters.secrets import mask_secrets
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.privacy.scrubbing import scrub
from memsvc.application.services import Services
from memsvc.core.filters import EVERYTHING
from memsvc.core.records import Kind, Observation, Ref, WorkSession
from memsvc.entrypoints.cli.main import memsvc
from memsvc.entrypoints.http.app import create_app
from memsvc.schemas.records import load_record

TOKEN = plant(Random("scrub"), "github ghp").secret
MASKED = "[secret: github pat]"
FIRST = Ref(Kind.OBSERVATION, 1)


@pytest.fixture(scope="module")
def planted() -> list[Planted]:
    return planted_secrets(Random("scrubbed"), 5)


def fill_unmasked(home: Path, planted: list[Planted]) -> None:
    """A store as an older version filled it."""
    store = open_store(home / "memsvc.db")
    records = [load_record(item, source="api") for item in items_of(planted)]
    sessions = [
        WorkSession(session_id=record.session_id, started_at_epoch=NOW)
        for record in records
        if record.session_id
    ]
    store.write(records, sessions)
    (gone,) = store.write([Observation(title="x", source="api", source_id=TOKEN)])
    assert gone.ref
    store.forget(gone.ref)
    store.close()


def run(*words: str) -> Any:
    result = CliRunner().invoke(memsvc, ["scrub", *words])
    assert result.exit_code == 0, result.output
    return result


def test_nothing_private_and_no_secret_is_left_in_any_file(
    home: Path, planted: list[Planted]
) -> None:
    fill_unmasked(home, planted)
    assert leaked(home, planted)
    before = json.loads(run("--dry-run", "--json").stdout)
    assert leaked(home, planted)
    report = json.loads(run("--json").stdout)
    assert report == before | {"dry_run": False, "forgotten_names": 1}
    assert len(report["records"]) == len(planted)
    assert sum(report["secrets"].values()) >= 200
    assert leaked(home, [*planted, Planted("forgotten", TOKEN, TOKEN)]) == []
    assert HIDDEN not in answered(home)
    assert TOKEN not in json.dumps(report)
    again = json.loads(run("--json").stdout)
    assert (again["records"], again["secrets"], again["work_sessions"]) == ([], {}, 0)


def test_what_is_imported_again_after_scrubbing_is_unchanged_or_stays_away(
    home: Path, planted: list[Planted]
) -> None:
    fill_unmasked(home, planted)
    run()
    store = open_store(home / "memsvc.db")
    client = create_app(Services(store, lambda: NOW, mask=mask_secrets)).test_client()
    told = client.post("/api/import", json={"observations": items_of(planted)}).get_json()
    assert told["unchanged"] == len(planted)
    gone = client.post("/api/observations", json={"title": "x", "source_id": TOKEN}).get_json()
    assert gone["forgotten"] == 1
    store.close()


def test_full_text_labels_and_vectors_follow(own_store: SqliteStore) -> None:
    vectors = SqliteVectors(own_store.connections)
    own_store.write([named(f"The key is {TOKEN}", project=TOKEN, files_read=(f"a/{TOKEN}/b",))])
    while waiting := vectors.pending(10):
        import numpy

        rows = [(each, numpy.ones((1, 4), numpy.float32)) for each in waiting]
        vectors.keep_vectors(rows, "4-model")
    scrub(own_store, mask_secrets)
    client = create_app(Services(own_store, lambda: NOW)).test_client()
    found = client.get("/api/search", query_string={"query": "github", "days": "all"}).get_json()
    assert found["results"][0]["title"] == f"The key is {MASKED}"
    assert client.get(f"/api/search?query={TOKEN}&days=all").get_json()["total"] == 0
    assert [each.name for each in own_store.projects()] == [MASKED]
    assert own_store.count_values(Kind.OBSERVATION, "file") == {f"a/{MASKED}/b": 1}
    assert vectors.vectors(Kind.OBSERVATION, [1], "4-model") == {}
    assert vectors.count_pending() == 1
    assert vectors.rebuilds() == 1


def test_a_work_session_keeps_its_times_and_state_under_its_new_name(
    own_store: SqliteStore,
) -> None:
    session = WorkSession(
        session_id=f"run {TOKEN}",
        project="shop",
        started_at_epoch=NOW - 500,
        completed_at_epoch=NOW,
        status="completed",
    )
    own_store.write([named("a", session_id=f"run {TOKEN}", project="shop")], [session])
    scrub(own_store, mask_secrets)
    (kept,) = own_store.work_sessions()
    assert replace(kept, session_id=session.session_id, last_at_epoch=0) == session
    assert TOKEN not in kept.session_id
    assert [
        entry.counts[Kind.OBSERVATION]
        for entry in own_store.recent_work(EVERYTHING, limit=5, most=5)
    ] == [1]


def test_a_record_of_nothing_but_private_parts_is_forgotten(own_store: SqliteStore) -> None:
    own_store.write([named("<private>all of it</private>"), named("open")])
    report = scrub(own_store, mask_secrets)
    assert report.forgotten == ["1"]
    assert own_store.selected_ids(Kind.OBSERVATION, EVERYTHING) == [2]


def test_two_records_that_say_the_same_once_masked_become_one(own_store: SqliteStore) -> None:
    unmasked = create_app(Services(own_store, lambda: NOW)).test_client()
    masking = create_app(Services(own_store, lambda: NOW, mask=mask_secrets)).test_client()
    item = {"title": f"The key is {TOKEN}", "created_at_epoch": NOW}
    assert unmasked.post("/api/observations", json=item).get_json()["stored"] == 1
    assert masking.post("/api/observations", json=item).get_json()["stored"] == 1
    scrub(own_store, mask_secrets)
    (left,) = own_store.records([FIRST, Ref(Kind.OBSERVATION, 2)]).values()
    assert isinstance(left, Observation)
    assert left.title == f"The key is {MASKED}"


def test_clean_records_stay_as_they_are(own_store: SqliteStore) -> None:
    fill(own_store)
    generation = own_store.generation()
    report = scrub(own_store, mask_secrets)
    assert (report.scanned, report.found) == (31, False)
    assert own_store.generation() == generation


def test_it_works_beside_a_running_worker_and_its_writers(live: Worker) -> None:
    items = [{"title": f"key {number}: {TOKEN}"} for number in range(200)]
    unmasked = open_store(live.home / "memsvc.db")
    create_app(Services(unmasked, lambda: NOW)).test_client().post("/api/observations", json=items)
    unmasked.close()
    stored: list[int] = []

    def write() -> None:
        for number in range(20):
            answer = live.post("/api/observations", {"title": f"new {number}"})
            stored.append(answer.status_code)

    writer = threading.Thread(target=write)
    writer.start()
    result = CliRunner().invoke(
        memsvc, ["scrub"], env={"MEMSVC_HOME": str(live.home), "MEMSVC_SEMANTIC": "off"}
    )
    writer.join()
    assert result.exit_code == 0, result.output
    assert stored == [201] * 20
    found = live.get("/api/search", query="key", days="all", limit=100).json()
    assert found["total"] == 200
    assert TOKEN not in json.dumps(found)


def test_the_report_names_the_backups_that_still_hold_it(home: Path) -> None:
    store = open_store(home / "memsvc.db")
    store.write([named(f"The key is {TOKEN}")])
    store.close()
    (home / "backups").mkdir()
    (home / "backups" / "monday.db").write_bytes(b"old")
    text = run().stdout
    assert str(home / "backups" / "monday.db") in text
    assert "2 secrets masked: github pat (2)" in text
    assert "changed: 1" in text
    assert "nothing private and no secret" in run().stdout
