"""The SQLite file: made, brought up to date, guarded, never half written, never leaking."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from old_stores import bring_back, first_schema
from profiles import HALF
from samples import fill, new_store, numbered
from strategies import records

from memsvc.adapters.sqlite.connections import immediate
from memsvc.adapters.sqlite.labels import labels_of
from memsvc.adapters.sqlite.schema import migrations
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.core.errors import StoreDamaged, StoreTooNew, StoreUnavailable
from memsvc.core.filters import Filter
from memsvc.core.naming.commits import Commit
from memsvc.core.ports.store import Outcome
from memsvc.core.query import parse
from memsvc.core.records import SHAPES, Kind, Observation, Record, Ref, kind_of


@contextlib.contextmanager
def _raw(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def _tables(path: Path) -> set[str]:
    with _raw(path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def test_a_new_store_has_run_every_step(tmp_path: Path) -> None:
    open_store(tmp_path / "deep" / "memsvc.db").close()
    with _raw(tmp_path / "deep" / "memsvc.db") as connection:
        assert migrations.pending(connection) == []
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("step_count", range(1, len(migrations.STEPS)))
def test_an_old_store_without_rows_is_brought_up_to_date(tmp_path: Path, step_count: int) -> None:
    first_schema(tmp_path / "old.db", step_count)
    open_store(tmp_path / "old.db").close()
    open_store(tmp_path / "new.db").close()
    assert _tables(tmp_path / "old.db") == _tables(tmp_path / "new.db")


def test_the_rows_of_an_old_store_are_there_after_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "memsvc.db"
    store = open_store(path)
    fill(store)
    store.close()
    bring_back(path, 1)
    store = open_store(path)
    with contextlib.closing(store):
        assert [store.count(kind, Filter()) for kind in Kind] == [20, 5, 6]
        assert store.rank(Kind.OBSERVATION, parse("idempotency"), Filter(), 10)
        assert store.forget(Ref(Kind.OBSERVATION, 1))


def test_commits_of_an_old_store_are_known_by_their_hash_and_learn_their_authors(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memsvc.db"
    hash = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
    commit = Observation(title="Fix", source="git:shop", source_id=hash, author="Zoë")
    store = open_store(path)
    store.write([replace(commit, author="")])
    store.close()
    bring_back(path, 5)
    with contextlib.closing(open_store(path)) as store:
        [ref] = store.commits(Commit(hash[:7]))
        assert store.rank(Kind.OBSERVATION, parse(hash[:9]), Filter(), 10)[0].ref == ref
        assert not store.rank(Kind.OBSERVATION, parse("author:zoe"), Filter(), 10)
        store.write([commit])
        assert store.rank(Kind.OBSERVATION, parse("author:zoe"), Filter(), 10)[0].ref == ref


def test_a_step_that_fails_leaves_no_trace_and_can_be_run_again(tmp_path: Path) -> None:
    path = tmp_path / "memsvc.db"
    first_schema(path, 1)
    with _raw(path) as connection:
        connection.execute("CREATE TABLE forgotten (x)")
        with pytest.raises(sqlite3.OperationalError):
            migrations.migrate(connection)
        assert migrations.pending(connection) == list(migrations.STEPS[1:])
        connection.execute("DROP TABLE forgotten")
        assert migrations.migrate(connection) == list(migrations.STEPS[1:])
        assert migrations.migrate(connection) == []


def test_two_who_open_a_new_store_at_once_both_succeed(tmp_path: Path) -> None:
    opened: list[SqliteStore] = []
    threads = [
        threading.Thread(target=lambda: opened.append(open_store(tmp_path / "memsvc.db")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    for store in opened:
        store.close()


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_store_from_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "memsvc.db"
    open_store(path).close()
    with _raw(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = _files(tmp_path)
    with pytest.raises(StoreTooNew, match=r"newer memsvc.*Upgrade"):
        open_store(path)
    assert _files(tmp_path) == before


def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "memsvc.db"
    with _raw(path) as connection:
        connection.execute("CREATE TABLE observations (title)")
    before = _files(tmp_path)
    with pytest.raises(StoreDamaged, match="another program"):
        open_store(path)
    assert _files(tmp_path) == before


@pytest.mark.parametrize(
    "content", [b"not a database at all", b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_damaged_file_is_one_sentence_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memsvc.db"
    path.write_bytes(content)
    with pytest.raises(StoreDamaged, match="damaged") as raised:
        open_store(path)
    assert "memsvc.db" in raised.value.detail
    assert str(tmp_path) not in raised.value.detail
    assert "\n" not in raised.value.detail
    assert path.read_bytes() == content


def test_a_place_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable, match="MEMSVC_HOME"):
        open_store(tmp_path / "file" / "memsvc.db")
    with pytest.raises(StoreUnavailable):
        open_store(tmp_path)


def test_opening_and_closing_leaks_no_file_and_no_thread(tmp_path: Path) -> None:
    def use() -> None:
        store = open_store(tmp_path / "memsvc.db")
        store.write(numbered([Observation(title="x")]))
        store.count(Kind.OBSERVATION, Filter())
        store.close()

    use()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(50):
        use()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


def test_a_store_that_another_program_locks_is_a_sentence(
    own_store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsvc.adapters.sqlite.connections.BUSY_SECONDS", 0.0)
    with (
        _raw(tmp_path / "memsvc.db") as other,
        immediate(other),
        pytest.raises(StoreUnavailable, match="locked by another program"),
    ):
        fill(own_store)


ACTIONS = st.lists(
    st.one_of(
        st.lists(records, min_size=1, max_size=4),
        st.builds(Ref, st.sampled_from(list(Kind)), st.integers(1, 6)),
    ),
    min_size=1,
    max_size=8,
)


@HALF
@given(actions=ACTIONS)
def test_index_and_labels_agree_with_the_rows_whatever_is_written_and_forgotten(
    tmp_path_factory: pytest.TempPathFactory, actions: list[list[Record] | Ref]
) -> None:
    path = tmp_path_factory.mktemp("history") / "memsvc.db"
    with contextlib.closing(new_store(path)) as store:
        expected = _play(store, actions)
        assert _stored(store) == expected
    _check_index(path)
    _check_labels(path, expected)


def _play(store: SqliteStore, actions: list[list[Record] | Ref]) -> dict[Ref, Record]:
    """Write and forget, and keep the same account in a dictionary."""
    account: dict[Ref, Record] = {}
    for action in actions:
        if isinstance(action, Ref):
            assert store.forget(action) == (account.pop(action, None) is not None)
            continue
        for record, receipt in zip(action, store.write(action), strict=True):
            if receipt.outcome is Outcome.FORGOTTEN:
                assert receipt.ref is None
                continue
            assert receipt.ref is not None
            account[receipt.ref] = replace(record, id=receipt.ref.id)
    return account


def _stored(store: SqliteStore) -> dict[Ref, Record]:
    hits = store.page(list(Kind), Filter(), newest_first=True, limit=10_000, offset=0)
    return store.records(hit.ref for hit in hits)


def _check_index(path: Path) -> None:
    """Hold the index, word by word, against one made anew from the rows."""
    with _raw(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for shape in SHAPES.values():
            fts = f"{shape.table}_fts"
            connection.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('integrity-check', 1)")
            _rebuild(connection, shape.table)
            assert _instances(connection, "main", fts) == _instances(connection, "temp", "anew")
            connection.execute("DROP TABLE temp.anew")


def _rebuild(connection: sqlite3.Connection, table: str) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table}_fts)")]
    connection.execute(
        f"""CREATE VIRTUAL TABLE temp.anew USING fts5(
            {", ".join(columns)}, tokenize='porter unicode61 remove_diacritics 2')"""
    )
    connection.execute(
        f"""INSERT INTO temp.anew (rowid, {", ".join(columns)})
            SELECT id, {", ".join(columns)} FROM {table}_text"""
    )


def _instances(connection: sqlite3.Connection, schema: str, fts: str) -> list[tuple[object, ...]]:
    connection.execute(
        f"CREATE VIRTUAL TABLE temp.words USING fts5vocab('{schema}', '{fts}', 'instance')"
    )
    found = connection.execute("SELECT term, doc, col, offset FROM temp.words").fetchall()
    connection.execute("DROP TABLE temp.words")
    return sorted(found)


def _check_labels(path: Path, expected: dict[Ref, Record]) -> None:
    sql = """SELECT labels.kind, field, value, record, created_at_epoch
             FROM labelled JOIN labels ON labels.id = labelled.label"""
    with _raw(path) as connection:
        carried = set(connection.execute(sql))
        orphans = connection.execute(
            "SELECT count(*) FROM labelled WHERE label NOT IN (SELECT id FROM labels)"
        )
        assert orphans.fetchone() == (0,)
    assert carried == {
        (str(kind_of(record)), label.field, label.value, ref.id, record.created_at_epoch)
        for ref, record in expected.items()
        for label in labels_of(record)
    }
