"""Backups: made while everything goes on, whole, private, and restored to what they were."""

import contextlib
import os
import shutil
import sqlite3
import stat
import sys
import threading
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from old_stores import bring_back
from samples import RECORDS, fill, named, new_store
from workers import PATIENCE, Worker, running_worker, wait_until

from memsvc.adapters.sqlite.schema import migrations
from memsvc.adapters.sqlite.store import open_store
from memsvc.adapters.sqlite.upkeep import backups, copying
from memsvc.configuration.settings import load_settings
from memsvc.configuration.upkeep import back_up_today
from memsvc.core.errors import StoreUnavailable
from memsvc.core.filters import EVERYTHING
from memsvc.core.ports.upkeep import Stopped
from memsvc.core.records import Kind, Ref
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.daily_backups import DailyBackups

DAY_ONE = date(2026, 11, 8)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the samples in its store."""
    path = tmp_path / "home"
    path.mkdir()
    with contextlib.closing(new_store(path / "memsvc.db")) as store:
        fill(store)
    monkeypatch.setenv("MEMSVC_HOME", str(path))
    monkeypatch.delenv("MEMSVC_PORT", raising=False)
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(cli.memsvc, [str(word) for word in words])


def contents(store: Path) -> list[object]:
    with contextlib.closing(open_store(store)) as opened:
        return list(opened.contents(EVERYTHING))


def forget(home: Path, id: int) -> None:
    with contextlib.closing(open_store(home / "memsvc.db")) as store:
        assert store.forget(Ref(Kind.OBSERVATION, id))


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_is_restored_to_the_same_records_and_the_store_before_is_kept(home) -> None:
    before = contents(home / "memsvc.db")
    made = run("backup", home / "mine.db")
    assert made.exit_code == 0
    assert f"{len(RECORDS)} records" in made.stdout
    forget(home, 1)
    later = contents(home / "memsvc.db")
    restored = run("restore", home / "mine.db")
    assert restored.exit_code == 0
    assert "memsvc start" in restored.stdout
    assert contents(home / "memsvc.db") == before
    (kept,) = (home / "backups").iterdir()
    assert kept.name.startswith("before-restore-")
    assert contents(kept) == later


def test_a_backup_made_while_a_worker_writes_holds_all_that_was_acknowledged_before(
    home: Path, tmp_path: Path
) -> None:
    with running_worker(home) as worker:
        writing = threading.Event()
        stopping = threading.Event()

        def write() -> None:
            for number in range(10_000):
                body = {"title": f"during {number}"}
                assert worker.post("/api/observations", body).status_code == 201
                writing.set()
                if stopping.is_set():
                    return

        thread = threading.Thread(target=write)
        acknowledged = worker.post("/api/observations", {"title": "before"}).json()
        thread.start()
        assert writing.wait(PATIENCE)
        result = run("backup", tmp_path / "b.db")
        stopping.set()
        thread.join()
        assert result.exit_code == 0, result.output
    ref = int(acknowledged["results"][0]["ref"])
    with contextlib.closing(open_store(tmp_path / "b.db")) as store:
        assert store.records([Ref(Kind.OBSERVATION, ref)])
        assert store.count(Kind.OBSERVATION, EVERYTHING) > 20


def test_a_backup_is_one_private_file_without_forgotten_text(home: Path) -> None:
    with contextlib.closing(open_store(home / "memsvc.db")) as store:
        receipt = store.write([named("a", narrative="xyzzyplugh")])[0]
        assert receipt.ref
        store.forget(receipt.ref)
    old = os.umask(0)
    try:
        assert run("backup").exit_code == 0
    finally:
        os.umask(old)
    (kept,) = (home / "backups").iterdir()
    assert b"xyzzyplugh" not in kept.read_bytes()
    if sys.platform != "win32":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_an_existing_file_is_replaced_only_by_force(home: Path) -> None:
    (home / "b.db").write_text("something dear")
    refused = run("backup", home / "b.db")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert (home / "b.db").read_text() == "something dear"
    assert run("backup", "--force", home / "b.db").exit_code == 0
    assert contents(home / "b.db") == contents(home / "memsvc.db")


def test_the_store_itself_is_no_target_not_even_by_force(home: Path) -> None:
    before = (home / "memsvc.db").read_bytes()
    assert run("backup", "--force", home / "memsvc.db").exit_code == 2
    assert run("restore", home / "memsvc.db").exit_code == 2
    assert (home / "memsvc.db").read_bytes() == before


def test_a_target_that_cannot_be_written_is_one_sentence(home: Path) -> None:
    (home / "file").write_text("")
    result = run("backup", home / "file" / "b.db")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "cannot be written" in result.stderr


def test_a_full_disk_is_one_sentence_and_leaves_no_file(home, tmp_path, monkeypatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(
        copying.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1_000, total=0, used=0)
    )
    result = run("backup", tmp_path / "other" / "b.db")
    assert result.exit_code == 1
    assert "MB free" in result.stderr
    assert left_in(tmp_path / "other") == []


@pytest.mark.skipif(not shutil.which("prlimit"), reason="Linux limits the size of files")
def test_a_disk_that_fills_up_half_way_leaves_no_file(home: Path, tmp_path: Path) -> None:
    import resource
    import signal

    (tmp_path / "other").mkdir()
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, kept[1]))
        result = run("backup", tmp_path / "other" / "b.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)
        signal.signal(signal.SIGXFSZ, before)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert left_in(tmp_path / "other") == []


def test_a_restore_is_refused_while_a_worker_runs(home: Path) -> None:
    assert run("backup", home / "b.db").exit_code == 0
    with running_worker(home):
        refused = run("restore", home / "b.db")
        assert refused.exit_code == 1
        assert "memsvc stop" in refused.stderr
    assert run("restore", home / "b.db").exit_code == 0


def test_a_restore_is_refused_while_any_program_has_the_store_open(home: Path) -> None:
    assert run("backup", home / "b.db").exit_code == 0
    with contextlib.closing(open_store(home / "memsvc.db")) as store:
        store.write([named("open")])
        refused = run("restore", home / "b.db")
    assert refused.exit_code == 1
    assert "in use" in refused.stderr
    assert b"open" in str(contents(home / "memsvc.db")).encode()


def test_a_dry_run_verifies_and_changes_nothing(home: Path) -> None:
    assert run("backup", home / "b.db").exit_code == 0
    forget(home, 1)
    before = contents(home / "memsvc.db"), left_in(home)
    result = run("restore", "--dry-run", home / "b.db")
    assert f"{len(RECORDS)} records" in result.stdout
    assert (contents(home / "memsvc.db"), left_in(home)) == before


def _no_store(path: Path) -> None:
    path.write_text("something else " * 1_000)


def _another_programs(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")


def _newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations.STEPS) + 1}")


def _damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for page in range(20, 40):
        data[page * 4096 : page * 4096 + 4096] = os.urandom(4096)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "There is no file"),
        (_no_store, "damaged"),
        (lambda path: path.write_bytes(b""), "empty"),
        (_newer, "newer memsvc"),
        (_damaged, "damaged"),
    ],
)
def test_what_is_no_usable_backup_is_refused_and_the_store_stays(home, spoil, said) -> None:
    assert run("backup", home / "b.db").exit_code == 0
    before = contents(home / "memsvc.db")
    spoil(home / "b.db")
    for words in (["restore", "--dry-run"], ["restore"]):
        refused = run(*words, home / "b.db")
        assert refused.exit_code in (1, 2)
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert contents(home / "memsvc.db") == before


def test_another_programs_database_is_refused(home: Path) -> None:
    _another_programs(home / "b.db")
    assert "another program" in run("restore", home / "b.db").stderr


def test_a_store_in_ruins_is_moved_aside_by_a_restore(home: Path) -> None:
    before = contents(home / "memsvc.db")
    assert run("backup", home / "b.db").exit_code == 0
    ruins = b"ruins " * 20_000
    (home / "memsvc.db").write_bytes(ruins)
    assert run("restore", home / "b.db").exit_code == 0
    assert contents(home / "memsvc.db") == before
    (kept,) = (home / "backups").iterdir()
    assert kept.name.startswith("damaged-")
    assert kept.read_bytes() == ruins


def test_a_log_left_by_another_file_is_not_read_into_the_restored_one(home: Path) -> None:
    before = contents(home / "memsvc.db")
    assert run("backup", home / "b.db").exit_code == 0
    (home / "memsvc.db").unlink()
    (home / "memsvc.db-wal").write_bytes(os.urandom(9_000))
    assert run("restore", home / "b.db").exit_code == 0
    assert contents(home / "memsvc.db") == before


def test_a_backup_from_before_a_schema_step_is_restored_and_migrated(home: Path) -> None:
    before = contents(home / "memsvc.db")
    assert run("backup", home / "old.db").exit_code == 0
    bring_back(home / "old.db", 2)
    assert run("restore", home / "old.db").exit_code == 0
    assert contents(home / "memsvc.db") == before


def test_semantic_search_finds_no_ghosts_after_a_restore(home: Path) -> None:
    """What was written after the backup is neither found nor in the way of what comes next."""
    with running_worker(home, MEMSVC_SEMANTIC="exact") as worker:
        _await_index(worker)
    assert run("backup", home / "b.db").exit_code == 0
    with running_worker(home, MEMSVC_SEMANTIC="sqlite-vec") as worker:
        for number in range(5):
            worker.post("/api/observations", {"title": f"A ghost in the attic {number}"})
        _await_index(worker)
    assert run("restore", home / "b.db").exit_code == 0
    with running_worker(home, MEMSVC_SEMANTIC="sqlite-vec") as worker:
        new = worker.post("/api/observations", {"title": "Bread is baked at dawn"}).json()
        _await_index(worker)
        found = worker.get("/api/search", query="ghost attic", limit=30).json()["results"]
        assert not [row for row in found if "ghost" in str(row).lower()]
        near = worker.get("/api/search", query="loaves from the oven early", limit=5).json()
        assert new["results"][0]["ref"] in [str(row["ref"]) for row in near["results"]]


def _await_index(worker: Worker) -> None:
    def is_done() -> bool:
        state = worker.get("/api/readiness").json()["parts"]["semantic"]
        return bool(state["ok"]) and not state["waiting"]

    wait_until(is_done)


def test_before_a_schema_step_the_store_is_kept_as_it_was(home: Path) -> None:
    bring_back(home / "memsvc.db", 2)
    with contextlib.closing(open_store(home / "memsvc.db")):
        (kept,) = (home / "backups").iterdir()
    assert kept.name.startswith("before-schema-003-")
    assert copying.inspect(kept).schema == 2
    assert copying.inspect(kept).records == len(RECORDS)


def test_the_last_three_backups_from_before_schema_steps_are_kept(home: Path) -> None:
    for _ in range(5):
        bring_back(home / "memsvc.db", 2)
        (home / "first-2.db").unlink()
        open_store(home / "memsvc.db").close()
    assert len(list((home / "backups").iterdir())) == 3


def test_a_new_store_is_migrated_without_a_backup(tmp_path: Path) -> None:
    open_store(tmp_path / "memsvc.db").close()
    assert not (tmp_path / "backups").exists()


def test_without_room_for_a_backup_a_store_is_not_migrated(home, monkeypatch) -> None:
    bring_back(home / "memsvc.db", 2)
    before = (home / "memsvc.db").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(
            copying.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1, total=0, used=0)
        )
        with pytest.raises(StoreUnavailable, match="a backup is made first"):
            open_store(home / "memsvc.db")
    assert (home / "memsvc.db").read_bytes() == before
    assert len(contents(home / "memsvc.db")) > len(RECORDS)


# -- one a day ------------------------------------------------------------------------------------


def go_on() -> bool:
    return False


def test_a_backup_a_day_is_kept_for_a_week(home: Path) -> None:
    settings = load_settings()
    for day in range(10):
        assert back_up_today(settings, DAY_ONE + timedelta(day), go_on)
        assert back_up_today(settings, DAY_ONE + timedelta(day), go_on) is None
    days = [f"daily-{DAY_ONE + timedelta(day)}.db" for day in range(2, 10)]
    assert left_in(home / "backups") == days


def test_daily_backups_leave_all_others_alone(home: Path) -> None:
    assert run("backup").exit_code == 0
    os.utime(next((home / "backups").iterdir()), (0, 0))
    back_up_today(load_settings(), DAY_ONE, go_on)
    assert len(left_in(home / "backups")) == 2


@pytest.mark.parametrize("days", ["0", "7"])
def test_an_empty_store_and_0_days_mean_no_daily_backups(home, tmp_path, monkeypatch, days) -> None:
    if days == "7":
        monkeypatch.setenv("MEMSVC_HOME", str(tmp_path))
        new_store(tmp_path / "memsvc.db").close()
    monkeypatch.setenv("MEMSVC_BACKUPS", days)
    assert back_up_today(load_settings(), DAY_ONE, go_on) is None


def test_a_nearly_full_disk_gets_no_daily_backup(home: Path, monkeypatch) -> None:
    size = (home / "memsvc.db").stat().st_size
    usage = SimpleNamespace(free=int(1.9 * size), total=0, used=0)
    monkeypatch.setattr(backups.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(StoreUnavailable, match="make room"):
        back_up_today(load_settings(), DAY_ONE, go_on)
    assert not (home / "backups").exists()


def test_a_copy_that_is_asked_to_stop_leaves_nothing(home: Path, monkeypatch) -> None:
    monkeypatch.setattr(copying, "STEPS", 100)
    with pytest.raises(Stopped):
        back_up_today(load_settings(), DAY_ONE, lambda: True)
    assert left_in(home / "backups") == []


def test_what_a_killed_backup_left_is_removed_by_the_next(home: Path) -> None:
    (home / "backups").mkdir()
    (home / "backups" / ".daily-2026-11-07.db.123.part").write_bytes(b"half")
    back_up_today(load_settings(), DAY_ONE, go_on)
    assert left_in(home / "backups") == [f"daily-{DAY_ONE}.db"]


def test_stopping_breaks_off_the_backup_that_is_being_made() -> None:
    begun = threading.Event()

    def make(stopped) -> None:
        begun.set()
        while not stopped():
            pass
        raise Stopped

    made = DailyBackups(make)
    made.start()
    assert begun.wait(PATIENCE)
    made.stop()


def test_a_failed_backup_is_logged_and_tried_again(monkeypatch, caplog) -> None:
    monkeypatch.setattr("memsvc.entrypoints.daily_backups.CHECK_SECONDS", 0.001)
    tried = threading.Semaphore(0)

    def make(stopped) -> None:
        tried.release()
        raise StoreUnavailable("the disk is full")

    made = DailyBackups(make)
    made.start()
    assert all(tried.acquire(timeout=PATIENCE) for _ in range(3))
    made.stop()
    assert "the disk is full" in caplog.text


def test_a_worker_makes_the_backup_of_today_by_itself(home: Path) -> None:
    with running_worker(home) as worker:
        wait_until(lambda: any((home / "backups").glob("daily-*.db")))
        assert worker.stop() == 0
    (kept,) = (home / "backups").iterdir()
    assert contents(kept) == contents(home / "memsvc.db")
    assert "backups: 1, the newest of" in run("status").stdout
