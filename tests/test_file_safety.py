"""The store's file under attack: deleted, replaced, damaged, locked, while a worker runs."""

import contextlib
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_semantic import DIMENSION, semantic_over, settle
from samples import NOW, fill, services_over
from workers import PATIENCE, Worker, running_worker, start_worker, wait_until

from memsvc.adapters.indexes.exact import ExactIndex
from memsvc.adapters.sqlite import integrity
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.services import Services
from memsvc.core.filters import Filter
from memsvc.core.query import parse
from memsvc.core.records import SHAPES, Kind, Ref
from memsvc.entrypoints.http.app import create_app

SECRET = "xylophonist"


@contextlib.contextmanager
def _raw(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def _post(worker: Worker, *titles: str) -> Any:
    return worker.post("/api/observations", [{"title": title, "id": title} for title in titles])


def _titles(path: Path) -> set[str]:
    with _raw(path) as connection:
        return {title for (title,) in connection.execute("SELECT title FROM observations")}


# -- the file is whole ----------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_after_a_clean_stop_the_one_file_holds_every_acknowledged_record(
    live: Worker, tmp_path: Path, sign: signal.Signals
) -> None:
    titles = [f"record {number}" for number in range(30)]
    for title in titles:
        assert _post(live, title).status_code == 201
        live.get("/api/search", query=title)
    assert live.stop(sign) == 0
    copy = tmp_path / "elsewhere" / "memsvc.db"
    copy.parent.mkdir()
    shutil.copy(live.home / "memsvc.db", copy)
    assert _titles(copy) == set(titles)
    assert not list(live.home.glob("memsvc.db-*"))


def test_a_store_that_was_used_and_closed_is_one_file(
    own_store: SqliteStore, tmp_path: Path
) -> None:
    fill(own_store)
    own_store.count(Kind.OBSERVATION, Filter())
    own_store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["memsvc.db"]


def test_what_is_forgotten_is_in_none_of_the_files(live: Worker) -> None:
    answer = live.post("/api/observations", {"title": f"the {SECRET} plays"})
    ref = answer.json()["results"][0]["ref"]
    _post(live, "another record")
    assert any(_holds(path) for path in live.home.glob("memsvc.db*"))
    live.get("/api/search", query=SECRET)
    assert live.session.delete(f"{live.address}/api/observation/{ref}").status_code == 200
    assert not [path.name for path in live.home.glob("memsvc.db*") if _holds(path)]


def _holds(path: Path) -> bool:
    return SECRET[:6].encode() in path.read_bytes()


def test_what_a_long_read_keeps_in_the_log_goes_when_it_ends(
    own_store: SqliteStore, tmp_path: Path
) -> None:
    client = create_app(services_over(own_store)).test_client()
    ref = client.post("/api/observations", json={"title": SECRET}).get_json()["results"][0]["ref"]
    with own_store.snapshot():
        own_store.generation()
        assert client.delete(f"/api/observation/{ref}").status_code == 200
    assert not [path.name for path in tmp_path.glob("memsvc.db*") if _holds(path)]


# -- deleted or replaced --------------------------------------------------------------------------


def _delete(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    os.replace(copy, path)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("attack", [_delete, _replace])
def test_a_file_lost_under_a_running_worker_is_a_503_for_writes_reads_and_readiness(
    live: Worker, suffix: str, attack: Callable[[Path], None]
) -> None:
    assert _post(live, "before").status_code == 201
    attack(live.home / f"memsvc.db{suffix}")
    for answer in (
        _post(live, "after"),
        live.get("/api/search", query="before"),
        live.get("/api/observation/1"),
        live.get("/api/stats"),
    ):
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (503, "store_replaced")
        assert f"memsvc.db{suffix} was" in problem["detail"]
        assert "memsvc stop; memsvc start" in problem["detail"]
        assert str(live.home) not in answer.text
    ready = live.get("/api/readiness", render="json")
    assert (ready.status_code, ready.json()["parts"]["store"]["ok"]) == (503, False)
    assert live.get("/api/health").status_code == 200


def test_a_database_emptied_under_a_running_worker_is_a_503_too(live: Worker) -> None:
    assert _post(live, "before").status_code == 201
    os.truncate(live.home / "memsvc.db", 0)
    for answer in (_post(live, "after"), live.get("/api/search", query="before")):
        assert (answer.status_code, answer.json()["code"]) == (503, "store_replaced")
    assert live.get("/api/readiness", render="json").status_code == 503


@pytest.mark.parametrize("attack", [_delete, _replace])
def test_what_was_acknowledged_survives_the_loss_of_the_log_and_a_kill(
    live: Worker, attack: Callable[[Path], None]
) -> None:
    assert _post(live, "before").status_code == 201
    attack(live.home / "memsvc.db-wal")
    assert _post(live, "after").status_code == 503
    live.stop(signal.SIGKILL)
    with running_worker(live.home) as again:
        assert again.get("/api/search", query="before").json()["total"] == 1


def test_an_old_log_put_in_place_of_ours_takes_nothing_back(live: Worker, tmp_path: Path) -> None:
    log, old = live.home / "memsvc.db-wal", tmp_path / "old-log"
    assert _post(live, "marmot").status_code == 201
    shutil.copy(log, old)
    assert _post(live, "badger").status_code == 201
    os.replace(old, log)
    assert _post(live, "otter").status_code == 503
    live.stop(signal.SIGKILL)
    with running_worker(live.home) as again:
        assert again.get("/api/search", query="marmot badger").json()["total"] == 2
        assert again.stop() == 0
    with _raw(live.home / "memsvc.db") as connection:
        assert list(integrity.problems(connection)) == []


def test_a_file_lost_between_check_and_commit_is_not_acknowledged(
    own_store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_and_lose(*_: object) -> None:
        (tmp_path / "memsvc.db").unlink()

    monkeypatch.setattr("memsvc.adapters.sqlite.records.touch_work_sessions", write_and_lose)
    client = create_app(services_over(own_store)).test_client()
    answer = client.post("/api/observations", json={"title": "lost"})
    assert (answer.status_code, answer.get_json()["code"]) == (503, "store_replaced")


def test_a_store_moved_away_and_back_serves_again_and_the_worker_never_writes_beside_it(
    live: Worker,
) -> None:
    path, aside = live.home / "memsvc.db", live.home / "aside.db"
    assert _post(live, "marmot").status_code == 201
    path.rename(aside)
    assert _post(live, "badger").status_code == 503
    assert not path.exists()
    aside.rename(path)
    assert _post(live, "otter").status_code == 201
    found = live.get("/api/search", query="marmot badger otter").json()
    assert {row["title"] for row in found["results"]} == {"marmot", "otter"}


def test_the_log_of_a_store_put_in_place_of_ours_survives_our_end(
    live: Worker, tmp_path: Path
) -> None:
    _post(live, "ours")
    other = tmp_path / "other"
    with running_worker(other) as second:
        _post(second, "theirs")
        second.stop(signal.SIGKILL)
    for name in ("memsvc.db-wal", "memsvc.db-shm", "memsvc.db"):
        os.replace(other / name, live.home / name)
    live.stop()
    assert _titles(live.home / "memsvc.db") == {"theirs"}


# -- damaged pages --------------------------------------------------------------------------------


def _damage(path: Path, table: str) -> None:
    """Overwrite the last leaf page of a table."""
    with _raw(path) as connection:
        (page,) = connection.execute(
            "SELECT max(pageno) FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,)
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Worker]:
    """A worker over a store whose newest observations cannot be read."""
    with contextlib.closing(open_store(tmp_path / "memsvc.db")) as store:
        client = create_app(services_over(store)).test_client()
        body = [{"title": f"marmot {number}", "narrative": "z " * 900} for number in range(40)]
        assert client.post("/api/observations", json=body).status_code == 201
    _damage(tmp_path / "memsvc.db", "observations")
    with running_worker(tmp_path) as worker:
        yield worker


def _store_part(worker: Worker) -> Any:
    return worker.get("/api/readiness", render="json").json()["parts"]["store"]


def test_damaged_pages_make_the_worker_not_ready_and_refuse_writes(damaged: Worker) -> None:
    wait_until(lambda: "table observations" in _store_part(damaged)["detail"])
    detail = _store_part(damaged)["detail"]
    assert "damaged" in detail
    assert "memsvc doctor --fix" in detail
    answer = _post(damaged, "new")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_damaged")
    assert str(damaged.home) not in answer.text


def test_reads_of_a_damaged_store_serve_what_is_readable(damaged: Worker) -> None:
    wait_until(lambda: not _store_part(damaged)["ok"])
    assert damaged.get("/api/observation/1").json()["title"] == "marmot 0"
    batch = damaged.get("/api/observations/batch", ids="1,2,40")
    assert batch.status_code == 200
    assert [row["title"] for row in batch.json()["results"]] == ["marmot 0", "marmot 1"]
    assert damaged.get("/api/observation/40").status_code == 503
    found = damaged.get("/api/search", query="marmot", limit=100, days="all")
    assert found.status_code == 200
    assert "marmot 0" in found.text


def test_damage_that_a_read_comes_upon_is_remembered(
    own_store: SqliteStore, tmp_path: Path
) -> None:
    fill(own_store)
    own_store.close()
    _damage(tmp_path / "memsvc.db", "observations")
    with contextlib.closing(open_store(tmp_path / "memsvc.db")) as store:
        client = create_app(services_over(store)).test_client()
        assert client.get("/api/observation/20").status_code == 503
        assert client.get("/api/readiness").status_code == 503
        assert client.post("/api/observations", json={"title": "x"}).status_code == 503


# -- full text ------------------------------------------------------------------------------------

QUERIES = ["idempotency keys", "payment -x", '"session store"', "swallow*", "登录", "title:ledger"]


def _answers(store: SqliteStore) -> list[object]:
    return [
        [store.rank(kind, parse(query), Filter(), 50) for query in QUERIES]
        + [store.suggest(kind, parse("idempotncy")), store.count_values(kind, "project")]
        for kind in Kind
    ]


@pytest.mark.parametrize("kind", list(Kind))
def test_fts5_checks_and_rebuilds_every_index_and_the_answers_stay_the_same(
    own_store: SqliteStore, tmp_path: Path, kind: Kind
) -> None:
    fill(own_store)
    before = _answers(own_store)
    with _raw(tmp_path / "memsvc.db") as connection:
        assert integrity.fulltext_problems(connection, kind) == ""
        integrity.rebuild_fulltext(connection, kind)
        assert integrity.fulltext_problems(connection, kind) == ""
        assert list(integrity.problems(connection)) == []
    assert _answers(own_store) == before


ATTACKS = {
    "index dropped": "DROP TABLE {}_fts",
    "vocabulary dropped": "DROP TABLE {}_vocab",
    "trigger dropped": "DROP TRIGGER {}_ai",
    "view dropped": "DROP VIEW {}_text",
    "index emptied": "INSERT INTO {0}_fts ({0}_fts) VALUES ('delete-all')",
    "shadow table dropped": "DROP TABLE {}_fts_idx",
    "configuration dropped": "DROP TABLE {}_fts_config",
    "index scrambled": "UPDATE {}_fts_data SET block = x'00112233445566778899' WHERE id > 1",
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("kind", list(Kind))
def test_a_missing_or_broken_index_is_rebuilt_at_the_next_start(
    own_store: SqliteStore, tmp_path: Path, kind: Kind, attack: str
) -> None:
    path = tmp_path / "memsvc.db"
    fill(own_store)
    before = _answers(own_store)
    own_store.close()
    with _raw(path) as connection:
        connection.execute(ATTACKS[attack].format(SHAPES[kind].table))
    with contextlib.closing(open_store(path)) as store:
        assert _answers(store) == before
        client = create_app(services_over(store)).test_client()
        assert client.post("/api/observations", json={"title": SECRET}).status_code == 201
        assert client.get(f"/api/search?query={SECRET}").get_json()["total"] == 1
    with _raw(path) as connection:
        assert [integrity.fulltext_problems(connection, kind) for kind in Kind] == [""] * len(Kind)


@pytest.mark.parametrize("attack", ["index dropped", "shadow table dropped", "index scrambled"])
def test_an_index_that_breaks_while_serving_is_told_and_mended_by_the_next_start(
    live: Worker, attack: str
) -> None:
    _post(live, "the marmot", "the badger", "the otter")
    with _raw(live.home / "memsvc.db") as connection:
        connection.execute(ATTACKS[attack].format("observations"))
    answer = live.get("/api/search/observations", query="marmot")
    assert (answer.status_code, answer.json()["code"]) == (503, "fulltext_broken")
    assert "memsvc stop; memsvc start" in answer.json()["detail"]
    assert live.get("/api/search/by-type", type="discovery").status_code == 200
    parts = live.get("/api/readiness", render="json").json()["parts"]
    assert (parts["store"]["ok"], parts["fulltext"]["ok"]) == (True, False)
    live.stop()
    with running_worker(live.home) as again:
        assert again.get("/api/search/observations", query="marmot").json()["total"] == 1
        assert again.get("/api/readiness").json()["ready"]


def test_a_break_in_the_middle_that_a_search_came_upon_is_mended_too(tmp_path: Path) -> None:
    """The first and the last record are found; only the mark of the search tells."""
    path = tmp_path / "memsvc.db"
    with contextlib.closing(open_store(path)) as store:
        client = create_app(services_over(store)).test_client()
        for number in range(6):
            client.post("/api/observations", json={"title": f"marmot{number} aaa", "id": number})
        with _raw(path) as connection:
            connection.execute(
                """UPDATE observations_fts_data SET block = x'0000'
                   WHERE id = (SELECT max(id) FROM observations_fts_data WHERE id NOT IN (
                       SELECT max(id) FROM observations_fts_data))"""
            )
        assert client.get("/api/search/observations?query=aaa").status_code == 503
    with contextlib.closing(open_store(path)) as store:
        assert store.count_matches(Kind.OBSERVATION, parse("aaa"), Filter()) == 6


# -- readiness ------------------------------------------------------------------------------------


def test_readiness_asks_each_part_and_says_so_in_a_sentence(
    live_semantic: Worker,
) -> None:
    _post(live_semantic, "the marmot digs")
    wait_until(lambda: _part(live_semantic, "semantic")["ok"])
    wait_until(lambda: _part(live_semantic, "semantic")["waiting"] == 0)
    answer = live_semantic.get("/api/readiness")
    assert answer.status_code == 200
    assert all(part["ok"] and part["detail"] for part in answer.json()["parts"].values())


def _part(worker: Worker, name: str) -> Any:
    return worker.get("/api/readiness", render="json").json()["parts"][name]


def test_a_record_that_the_semantic_index_has_lost_makes_it_not_ready(
    own_store: SqliteStore,
) -> None:
    fill(own_store)
    index = ExactIndex(DIMENSION)
    semantic = semantic_over(own_store, index=index)
    settle(semantic)
    client = create_app(Services(own_store, lambda: NOW, semantic)).test_client()
    assert client.get("/api/readiness").get_json()["parts"]["semantic"]["ok"]
    index.remove([Ref(Kind.SESSION, number) for number in range(1, 6)])
    told = client.get("/api/readiness").get_json()
    part = told["parts"]["semantic"]
    assert (part["ok"], "session" in part["detail"]) == (False, True)
    assert "memsvc index --rebuild" in part["detail"]
    assert told["ready"]


def test_a_full_disk_makes_the_store_not_ready(
    own_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsvc.adapters.sqlite.open_file.MIN_FREE", 2**62)
    answer = create_app(services_over(own_store)).test_client().get("/api/readiness")
    assert answer.status_code == 503
    assert "is full" in answer.get_json()["parts"]["store"]["detail"]


def test_a_writer_at_work_does_not_make_the_worker_unready(live: Worker) -> None:
    with _raw(live.home / "memsvc.db") as other:
        other.execute("BEGIN IMMEDIATE")
        assert live.get("/api/readiness").status_code == 200


def test_records_that_the_index_has_lost_make_full_text_not_ready(live: Worker) -> None:
    _post(live, "the marmot digs")
    with _raw(live.home / "memsvc.db") as other:
        other.execute("INSERT INTO observations_fts (observations_fts) VALUES ('delete-all')")
    part = _part(live, "fulltext")
    assert not part["ok"]
    assert "observation 1" in part["detail"]


# -- locked at start ------------------------------------------------------------------------------


def test_a_worker_waits_for_a_locked_store_says_so_and_serves_when_it_is_free(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memsvc.db"
    open_store(path).close()
    with _raw(path) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE generation SET number = number + 1")
        process = start_worker(tmp_path)
        try:
            assert process.stderr is not None
            assert process.stdout is not None
            assert "locked by another program; waiting" in process.stderr.readline()
            assert process.poll() is None
            other.execute("COMMIT")
            other.close()
            assert process.stdout.readline().startswith("memsvc is running on")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_worker_that_waits_for_its_store_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "memsvc.db"
    open_store(path).close()
    with _raw(path) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        process = start_worker(tmp_path)
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
