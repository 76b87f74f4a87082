"""Doctor: every fault is found with its remedy, and what can be mended is."""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from fake_semantic import indexed
from old_stores import bring_back
from samples import RECORDS, fill, named, new_store
from workers import running_worker

from memsvc.adapters.sqlite.integrity import problems
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.upkeep.pages import Pages
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import Outcome
from memsvc.core.records import SHAPES, Kind, Record, Ref, kind_of
from memsvc.entrypoints.cli import main as cli

PAGE = 4096


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing wrong: the samples, their vectors, and a backup."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    with contextlib.closing(new_store(path / "memsvc.db")) as store:
        fill(store)
        indexed(store)
    monkeypatch.setenv("MEMSVC_HOME", str(path))
    monkeypatch.delenv("MEMSVC_PORT", raising=False)
    for each in (path, *path.iterdir()):
        each.chmod(0o700 if each.is_dir() else 0o600)
    assert run("backup").exit_code == 0
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(cli.memsvc, [str(word) for word in words])


def opened(home: Path) -> contextlib.closing[SqliteStore]:
    return contextlib.closing(open_store(home / "memsvc.db"))


@contextlib.contextmanager
def raw(home: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(
        sqlite3.connect(home / "memsvc.db", isolation_level=None)
    ) as connection:
        yield connection


def faults(*words: str) -> dict[str, str]:
    """The parts with a fault, each with its remedy."""
    found = json.loads(run("doctor", "--json", *words).stdout)["findings"]
    return {each["part"]: each["remedy"] for each in found if not each["ok"]}


def test_a_healthy_store_has_no_faults(home: Path) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.stdout
    assert "FAULT" not in result.stdout
    assert json.loads(run("doctor", "--json").stdout)["ok"] is True


def test_without_a_store_it_says_how_to_get_one(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEMSVC_HOME", str(tmp_path / "none"))
    result = run("doctor")
    assert result.exit_code == 1
    assert "memsvc import" in result.stdout
    assert not (tmp_path / "none").exists()


FAULTS = {
    "DELETE FROM observations_fts_docsize WHERE id = 3": "full text of observations",
    "INSERT INTO observations_fts (rowid, title) VALUES (900, 'ghost')": (
        "full text of observations"
    ),
    "INSERT INTO prompts_fts (prompts_fts) VALUES ('delete-all')": "full text of prompts",
    "INSERT INTO observations_vectors VALUES (900, 'x', x'00')": "vectors of observations",
    "DELETE FROM sessions_vectors WHERE id = 2": "vectors of sessions",
    "INSERT INTO pending (kind, record, created_at_epoch) VALUES ('prompt', 900, 0)": (
        "vectors of prompts"
    ),
    "INSERT INTO costs VALUES ('observation', 900, 1, 1)": "costs of observations",
    "DELETE FROM costs WHERE kind = 'session' AND record = 2": "costs of sessions",
    "INSERT INTO labelled SELECT id, 5, 900 FROM labels WHERE kind = 'prompt' LIMIT 1": (
        "labels of prompts"
    ),
    "DELETE FROM labelled WHERE record = 7": "labels of observations",
    "INSERT INTO labelled VALUES (90000, 5, 1)": "labels",
    "INSERT INTO path_endings VALUES ('x.py', 90000)": "labels",
}


@pytest.mark.parametrize(("sql", "part"), FAULTS.items(), ids=FAULTS.values())
def test_a_fault_is_found_with_its_remedy_and_mended(home: Path, sql: str, part: str) -> None:
    with opened(home) as store:
        before = list(store.contents(EVERYTHING))
    with raw(home) as connection:
        connection.execute(sql)
    assert part in faults()
    assert "--fix" in faults()[part]
    fixed = run("doctor", "--fix")
    assert fixed.exit_code == 0, fixed.stdout
    assert fixed.stdout.startswith("done: ")
    assert faults() == {}
    with opened(home) as store:
        assert list(store.contents(EVERYTHING)) == before
        selection = Filter((("project", ("shop", "api", "docs")),))
        assert sum(store.count(kind, selection) for kind in Kind) == len(RECORDS)


def test_words_that_differ_from_the_records_are_found_and_mended(home: Path) -> None:
    with raw(home) as connection:
        connection.execute("DROP TRIGGER observations_au")
        connection.execute("UPDATE observations SET title = 'something else' WHERE id = 5")
    assert "words of observations" in faults()
    run("doctor", "--fix")
    assert "words of observations" not in faults()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_what_others_could_read_is_found_and_closed(home: Path) -> None:
    home.chmod(0o755)
    (home / "memsvc.db").chmod(0o644)
    (home / "backups").chmod(0o750)
    assert faults() == {"permissions": "memsvc doctor --fix"}
    assert run("doctor", "--fix").exit_code == 0
    modes = {path.stat().st_mode & 0o777 for path in (home, home / "backups")}
    assert modes == {0o700}
    assert (home / "memsvc.db").stat().st_mode & 0o777 == 0o600


def test_a_disk_that_is_nearly_full_is_a_fault(home: Path, monkeypatch) -> None:
    usage = SimpleNamespace(free=1_000, total=0, used=0)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    assert "make room" in faults()["disk"]


def test_a_store_without_backups_or_with_old_ones_only_is_a_fault(home: Path) -> None:
    (kept,) = (home / "backups").iterdir()
    os.utime(kept, (0, 0))
    assert "memsvc backup" in faults()["backups"]
    kept.unlink()
    assert "memsvc backup" in faults()["backups"]


def test_a_store_that_waits_for_its_migration_is_told_of(home: Path) -> None:
    with raw(home) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert faults()["schema"] == "memsvc start"


def test_a_locked_store_is_a_fault_but_none_to_be_salvaged(home: Path, monkeypatch) -> None:
    monkeypatch.setattr("memsvc.adapters.sqlite.upkeep.checks.BUSY_SECONDS", 0)
    before = (home / "memsvc.db").read_bytes()
    with raw(home) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
        result = run("doctor", "--fix")
    assert result.exit_code == 1
    assert "locked" in result.stdout
    assert (home / "memsvc.db").read_bytes()[100:] == before[100:]


def test_it_runs_while_a_worker_serves_and_writes(home: Path) -> None:
    with running_worker(home) as worker:
        told = json.loads(run("doctor", "--json").stdout)
        assert {each["part"]: each["detail"] for each in told["findings"]}["worker"] == (
            f"running on {worker.address}"
        )
        assert worker.post("/api/observations", {"title": "after"}).status_code == 201
    assert {each["part"] for each in told["findings"] if not each["ok"]} <= {"permissions"}


# -- damaged pages --------------------------------------------------------------------------------


class Traced(Pages):
    """Remembers which pages were read."""

    def __init__(self, path: Path) -> None:
        self.read: set[int] = set()
        super().__init__(path)

    def _page(self, number: int) -> bytes:
        self.read.add(number)
        return super()._page(number)


def pages_of(store: Path) -> dict[Ref, set[int]]:
    """The pages that each record is on, counted from 0."""
    columns = {}
    with contextlib.closing(sqlite3.connect(store)) as connection:
        for kind, shape in SHAPES.items():
            columns[len(connection.execute(f"PRAGMA table_info({shape.table})").fetchall())] = kind
    found = {}
    with contextlib.closing(Traced(store)) as traced:
        for number in range(1, store.stat().st_size // PAGE + 1):
            rows = traced._rows_on(number)
            while True:
                traced.read = {number}
                row = next(rows, None)
                if row is None:
                    break
                if row.rowid is not None and len(row.values) in columns:
                    ref = Ref(columns[len(row.values)], row.rowid)
                    found[ref] = {page - 1 for page in traced.read}
    return found


@pytest.fixture
def large_home(home: Path) -> Path:
    """The same with enough records for tables of several levels, long ones among them."""
    with opened(home) as store:
        store.write(
            named(f"large {number}", narrative=f"text {number} " * (number % 7) * (number % 300))
            for number in range(600)
        )
        for id in (21, 22, 300):
            assert store.forget(Ref(Kind.OBSERVATION, id))
    return home


def damage(store: Path, pages: set[int], seed: int) -> None:
    noise = random.Random(seed)
    with store.open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(noise.randbytes(PAGE))


def records_in(store: SqliteStore) -> dict[Ref, Record]:
    found = (each for each in store.contents(EVERYTHING) if isinstance(each, Record))
    return {Ref(kind_of(each), each.id): each for each in found}


@pytest.mark.parametrize("seed", range(6))
def test_records_on_undamaged_pages_are_saved_unaltered(large_home: Path, seed: int) -> None:
    path = large_home / "memsvc.db"
    with opened(large_home) as store:
        before = records_in(store)
    places = pages_of(path)
    assert places.keys() == before.keys()
    noise = random.Random(seed)
    count = path.stat().st_size // PAGE
    hit = {noise.randrange(1, count) for _ in range(1 + 6 * seed)} | ({0} if seed % 2 else set())
    damage(path, hit, seed)
    fixed = run("doctor", "--fix")
    if "done: saved" not in fixed.stdout:  # the noise fell on free pages
        assert fixed.exit_code == 0, fixed.output
        return
    assert faults() == {}, fixed.output
    with opened(large_home) as store:
        after = records_in(store)
        assert {ref: before[ref] for ref in after} == after
        untouched = {ref for ref, pages in places.items() if not pages & hit}
        assert untouched <= after.keys()
        assert list(problems(store.connections.reader())) == []
        new = store.write([named("new")])[0]
        assert new.outcome is Outcome.STORED
    (kept,) = (large_home / "backups").glob("damaged-*.db")
    assert kept.stat().st_size == count * PAGE


def test_a_damaged_store_of_an_older_version_is_saved_into_a_new_one(large_home: Path) -> None:
    path = large_home / "memsvc.db"
    bring_back(path, 4)
    hit = set(range(20, path.stat().st_size // PAGE, 7))
    damage(path, hit, 1)
    assert "done: saved" in run("doctor", "--fix").stdout
    assert faults() == {}


def test_what_was_forgotten_is_not_saved_and_stays_forgotten(large_home: Path) -> None:
    damage(large_home / "memsvc.db", {0}, 1)
    assert run("doctor", "--fix").exit_code == 0
    with opened(large_home) as store:
        assert not store.records([Ref(Kind.OBSERVATION, 300)])
        assert store.write([named("large 0")])[0].outcome is Outcome.FORGOTTEN
        assert store.last_ids()[Kind.OBSERVATION] == 620


def test_refs_that_are_lost_are_named_and_counted(large_home: Path) -> None:
    path = large_home / "memsvc.db"
    hit = min(pages_of(path)[Ref(Kind.OBSERVATION, 400)])
    damage(path, {hit}, 1)
    told = run("doctor", "--fix").stdout
    assert "400" in told.partition("known to be lost")[2]
    assert "memsvc restore" in told
    with opened(large_home) as store:
        assert store.write([named("new")])[0].ref == Ref(Kind.OBSERVATION, 621)


def test_vectors_of_saved_records_are_kept(home: Path) -> None:
    with opened(home) as store:
        vectors = SqliteVectors(store.connections)
        assert vectors.count_pending() == 0
    path = home / "memsvc.db"
    damage(path, {min(pages_of(path)[Ref(Kind.PROMPT, 1)])}, 1)
    assert run("doctor", "--fix").exit_code == 0
    with opened(home) as store:
        vectors = SqliteVectors(store.connections)
        count = sum(store.count(kind, EVERYTHING) for kind in Kind)
        assert count < len(RECORDS)
        assert vectors.count_pending() < count // 2


def test_what_was_committed_to_the_log_alone_is_saved(home: Path, tmp_path: Path) -> None:
    """As a worker leaves it that was killed, with the first page of its file lost."""
    copy = tmp_path / "copy"
    copy.mkdir()
    with opened(home) as store:
        store.write([named("in the log")])
        for ending in ("", "-wal"):
            shutil.copy(f"{home / 'memsvc.db'}{ending}", f"{copy / 'memsvc.db'}{ending}")
    for ending in ("", "-wal"):
        shutil.copy(f"{copy / 'memsvc.db'}{ending}", f"{home / 'memsvc.db'}{ending}")
    with contextlib.closing(Pages(home / "memsvc.db")) as pages:
        assert any("in the log" in row.values for row in pages.rows())


def test_a_damaged_store_is_left_alone_while_a_worker_runs(large_home: Path) -> None:
    path = large_home / "memsvc.db"
    with running_worker(large_home):
        damage(path, {min(pages_of(path)[Ref(Kind.OBSERVATION, 400)])}, 1)
        before = path.read_bytes()
        refused = run("doctor", "--fix")
        assert refused.exit_code == 1
        assert "memsvc stop" in refused.output
        assert path.read_bytes() == before


def test_a_file_of_nothing_but_noise_is_left_as_it_is(home: Path) -> None:
    noise = random.Random(1).randbytes(40 * PAGE)
    (home / "memsvc.db").write_bytes(noise)
    result = run("doctor", "--fix")
    assert result.exit_code == 1
    assert "memsvc restore" in result.output
    assert (home / "memsvc.db").read_bytes() == noise
    assert not list(home.glob(".*salvaged*"))
