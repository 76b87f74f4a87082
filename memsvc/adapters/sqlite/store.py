"""The store in one SQLite file, full-text index included."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from memsvc.adapters.sqlite import contents, listing, records, statistics
from memsvc.adapters.sqlite.connections import (
    BUSY_SECONDS,
    Connections,
    is_damage,
    is_locked,
    read_readable,
    store_errors,
)
from memsvc.adapters.sqlite.fulltext import named, ranking, spelling
from memsvc.adapters.sqlite.fulltext.explaining import matched_terms
from memsvc.adapters.sqlite.fulltext.search import Frequencies, Scope, TextSearch, scope_of
from memsvc.adapters.sqlite.integrity import rebuild_fulltext, table_problems
from memsvc.adapters.sqlite.labels import LabelIds
from memsvc.adapters.sqlite.schema import migrations
from memsvc.adapters.sqlite.schema.mending import mend_fulltext
from memsvc.adapters.sqlite.upkeep.backups import back_up_before_migration
from memsvc.adapters.sqlite.upkeep.sweeping import is_worn, optimize, sweep
from memsvc.adapters.sqlite.work_sessions import (
    all_work_sessions,
    count_work_sessions,
    recent_work,
    rename_work_session,
)
from memsvc.core.economics import Economics
from memsvc.core.errors import StoreUnavailable
from memsvc.core.filters import Filter
from memsvc.core.naming.commits import Commit
from memsvc.core.ports.store import (
    Hit,
    Origin,
    Point,
    Project,
    Receipt,
    Terms,
    Title,
    Trace,
    WorkEntry,
)
from memsvc.core.query import Query
from memsvc.core.records import SHAPES, Kind, Record, Ref, WorkSession, kind_of

Result = TypeVar("Result")

FIRST_PATIENCE = 0.2
PATIENCE = 1.0
"""Seconds of one try to open a locked store, at first and later; SQLite asks ten times a second."""

MAX_CACHED = 512  # cached answers per generation of the store


def open_store(path: Path, patience: float = BUSY_SECONDS) -> "SqliteStore":
    """The store in this file, created, migrated or mended first.

    It waits so many seconds for other programs. Raises StoreUnavailable, StoreDamaged or
    StoreTooNew, and then leaves the file as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"The folder {path.parent} cannot be created ({error.strerror}); set MEMSVC_HOME to a "
            "writable folder."
        ) from error
    damage = _bring_up_to_date(path, patience)
    connections = Connections(path, patience)
    connections.file.note_damage(damage)
    return SqliteStore(connections)


def await_store(path: Path, waiting: Callable[[], None]) -> "SqliteStore":
    """The same as soon as no other program has the file locked; `waiting` is called until then."""
    patience = FIRST_PATIENCE
    while True:
        try:
            return open_store(path, patience)
        except StoreUnavailable as error:
            if not is_locked(error.__cause__):
                raise
        waiting()
        patience = PATIENCE


def _bring_up_to_date(path: Path, patience: float) -> str:
    """Migrate and mend a file; says what is damaged in it, if that is not all of it."""
    with store_errors(path), contextlib.closing(sqlite3.connect(path, patience)) as connection:
        connection.isolation_level = None
        migrations.check_owner(connection)
        if migrations.pending(connection):
            back_up_before_migration(path, connection, datetime.now())
            connection.execute("PRAGMA journal_mode = WAL")
            migrations.migrate(connection)
        try:
            mend_fulltext(connection)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return str(error)
        return ""


class SqliteStore:
    """The Store port on one SQLite file."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._cache: dict[tuple[object, ...], object] = {}
        self._cache_lock = threading.Lock()
        self._frequencies = Frequencies()
        self._examining = threading.Lock()
        self._renewing = threading.Lock()

    @property
    def connections(self) -> Connections:
        """The connections to the file, for other data stored in it."""
        return self._connections

    def close(self) -> None:
        """Close every connection; work in the background is broken off."""
        with contextlib.ExitStack() as stack:
            for lock in (self._examining, self._renewing):
                while not lock.acquire(timeout=0.05):
                    self._connections.interrupt()
                stack.callback(lock.release)
            self._connections.close()

    def generation(self) -> int:
        sql = "SELECT number FROM generation"
        return int(self._read().execute(sql).fetchone()[0])

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connections.snapshot():
            yield

    def write(
        self,
        records_: Iterable[Record],
        work_sessions: Iterable[WorkSession] = (),
        *,
        merge_within: int | None = None,
        keep_ids: bool = False,
    ) -> list[Receipt]:
        with self._connections.transaction() as writer:
            write = partial(
                _write_one, writer, LabelIds(writer), merge_within=merge_within, keep_id=keep_ids
            )
            written = [write(record) for record in records_]
            kept = (record for record, receipt in written if receipt.ref)
            records.touch_work_sessions(writer, kept)
            for session in work_sessions:
                records.write_work_session(writer, session)
            writer.execute("UPDATE generation SET number = number + 1")
        return [receipt for _, receipt in written]

    def preview(
        self, records_: Iterable[Record], *, merge_within: int | None = None
    ) -> list[Receipt]:
        with self.snapshot():
            reader = self._read()
            return [records.preview(reader, record, merge_within) for record in records_]

    def forget(self, ref: Ref) -> bool:
        with self._connections.transaction() as writer:
            writer.execute("UPDATE generation SET number = number + 1")
            found = records.forget_record(writer, ref, LabelIds(writer))
            if found:
                optimize(writer, SHAPES[ref.kind].table)
        if found:
            self._connections.empty_wal()
            self._renew_worn(ref.kind)
        return found

    def _renew_worn(self, kind: Kind) -> None:
        """Rebuild an index that was optimized very often, in the background."""
        if is_worn(self._read(), SHAPES[kind].table) and self._renewing.acquire(blocking=False):
            threading.Thread(target=self._renew, args=(kind,), name="renew", daemon=True).start()

    def _renew(self, kind: Kind) -> None:
        try:
            with contextlib.suppress(StoreUnavailable), self._connections.transaction() as writer:
                rebuild_fulltext(writer, kind)
        finally:
            self._renewing.release()

    def forget_all(self, refs: Iterable[Ref]) -> int:
        with self._connections.transaction() as writer:
            labels = LabelIds(writer)
            writer.execute("UPDATE generation SET number = number + 1")
            return sum(records.forget_record(writer, ref, labels) for ref in refs)

    def rewrite(
        self,
        records_: Iterable[tuple[Record, Record]] = (),
        work_sessions: Iterable[tuple[WorkSession, WorkSession]] = (),
    ) -> list[Ref]:
        with self._connections.transaction() as writer:
            labels = LabelIds(writer)
            for named, renamed in work_sessions:
                rename_work_session(writer, named, renamed)
            done = [
                after
                for before, after in records_
                if records.rewrite_record(writer, before, after, labels)
            ]
            records.touch_work_sessions(writer, done)
            writer.execute("UPDATE generation SET number = number + 1")
        return [Ref(kind_of(record), record.id) for record in done]

    def rename_forgotten(self, name: Callable[[str], str]) -> int:
        with self._connections.transaction() as writer:
            return records.rename_forgotten(writer, name)

    def sweep(self) -> bool:
        is_empty = sweep(self._connections)
        for kind in Kind:
            self._renew_worn(kind)
        return is_empty

    def work_sessions(self) -> list[WorkSession]:
        return all_work_sessions(self._read())

    def from_sources(self, kind: Kind, sources: Sequence[str]) -> set[int]:
        return listing.from_sources(self._read(), kind, sources)

    def project_from(self, kind: Kind, family: str, source_id: str) -> str | None:
        return listing.project_from(self._read(), kind, family, source_id)

    def last_ids(self) -> dict[Kind, int]:
        return {kind: records.last_id(self._read(), kind) for kind in Kind}

    def contents(self, selection: Filter) -> Iterator[WorkSession | Record | Trace]:
        with self._connections.snapshot() as reader:
            yield from contents.read_contents(reader, selection)

    def adopt(self, traces: Iterable[Trace], last_ids: Mapping[Kind, int]) -> None:
        with self._connections.transaction() as writer:
            contents.adopt(writer, traces, last_ids)

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        def read(some: Sequence[Ref]) -> list[tuple[Ref, Record]]:
            return list(
                records.read_refs(some, partial(records.read_records, self._read())).items()
            )

        return dict(read_readable(read, list(refs), self._connections.file.note_damage))

    def commits(self, commit: Commit) -> list[Ref]:
        return [Ref(Kind.OBSERVATION, id) for id in named.ids_of(self._read(), commit)]

    def page(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
        offset: int,
    ) -> list[Hit]:
        return listing.select_page(
            self._read(), kinds, selection, newest_first=newest_first, limit=limit, offset=offset
        )

    def count(self, kind: Kind, selection: Filter) -> int:
        return self._cached(
            ("count", kind, selection),
            lambda reader: listing.count_selected(reader, kind, selection),
        )

    def neighbours(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        point: Point,
        *,
        before: bool,
        limit: int,
    ) -> list[Hit]:
        return listing.neighbours(self._read(), kinds, selection, point, before=before, limit=limit)

    def rank(self, kind: Kind, query: Query, selection: Filter, depth: int) -> list[Hit]:
        return ranking.rank(self._search(kind, query, selection), depth)

    def rank_among(self, kind: Kind, query: Query, ids: Sequence[int]) -> list[Hit]:
        condition = "{id} IN (SELECT value FROM json_each(?))"
        parameters: list[object] = [json.dumps(list(ids))]
        if ids and not query.only_excludes:  # the index can start and stop at an id
            condition += f" AND {SHAPES[kind].table}_fts.rowid BETWEEN ? AND ?"
            parameters += [min(ids), max(ids)]
        scope = Scope(condition=condition, parameters=tuple(parameters))
        search = replace(self._search(kind, query, Filter()), scope=scope)
        return ranking.rank(search, len(ids))

    def count_matches(self, kind: Kind, query: Query, selection: Filter) -> int:
        return self._cached(
            ("matches", kind, query, selection),
            lambda reader: ranking.count(self._search(kind, query, selection)),
        )

    def rest(
        self,
        kind: Kind,
        query: Query,
        selection: Filter,
        *,
        without: Sequence[int],
        limit: int,
        offset: int,
    ) -> list[Hit]:
        search = self._search(kind, query, selection)
        return ranking.rest(search, without=without, limit=limit, offset=offset)

    def matches_by_time(
        self,
        kind: Kind,
        query: Query,
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
    ) -> list[Hit]:
        search = self._search(kind, query, selection)
        return ranking.by_time(search, newest_first=newest_first, limit=limit)

    def matched_terms(self, kind: Kind, ids: Sequence[int], query: Query) -> dict[int, Terms]:
        return matched_terms(self._search(kind, query, Filter()), ids)

    def suggest(self, kind: Kind, query: Query) -> list[str]:
        return spelling.suggest(self._search(kind, query, Filter()))

    def _search(self, kind: Kind, query: Query, selection: Filter) -> TextSearch:
        reader = self._read()
        scope = scope_of(reader, kind, selection, walks_index=not query.only_excludes)
        known = self._frequencies, self.generation(), scope
        return TextSearch(reader, kind, query, *known, self._connections.file.note_damage)

    def count_values(self, kind: Kind, field: str) -> dict[str, int]:
        return self._cached(
            ("values", kind, field), lambda reader: statistics.count_values(reader, kind, field)
        )

    def projects(self, until: int | None = None) -> list[Project]:
        return self._cached(
            ("projects", until), lambda reader: statistics.list_projects(reader, until)
        )

    def days(self, since: int) -> dict[str, int]:
        return self._cached(("days", since), lambda reader: statistics.count_days(reader, since))

    def economics(self) -> Economics:
        return self._cached(("economics",), statistics.economics)

    def count_work_sessions(self, selection: Filter) -> int:
        return count_work_sessions(self._read(), selection)

    def recent_work(self, selection: Filter, *, limit: int, most: int) -> list[WorkEntry]:
        return recent_work(self._read(), selection, limit=limit, most=most)

    def check(self) -> None:
        self._connections.check()

    def examine(self) -> None:
        with self._examining, contextlib.suppress(StoreUnavailable):  # which `check` tells
            for finding in table_problems(self._read()):
                self._connections.file.note_damage(finding)

    def coverage(self, query: Query, ref: Ref) -> float:
        return ranking.coverage(self._search(ref.kind, query, Filter()), ref.id)

    def matches_among(
        self, kind: Kind, query: Query, selection: Filter, ids: Sequence[int]
    ) -> set[int]:
        return ranking.among(self._search(kind, query, selection), ids)

    def selected_ids(self, kind: Kind, selection: Filter) -> list[int]:
        return listing.selected_ids(self._read(), kind, selection)

    def selected_among(self, kind: Kind, selection: Filter, ids: Sequence[int]) -> set[int]:
        return listing.selected_among(self._read(), kind, selection, ids)

    def titles(self, refs: Iterable[Ref]) -> dict[Ref, Title]:
        def read(some: Sequence[Ref]) -> list[tuple[Ref, Title]]:
            return list(records.read_refs(some, partial(records.read_titles, self._read())).items())

        return dict(read_readable(read, list(refs), self._connections.file.note_damage))

    def origins(self, refs: Iterable[Ref]) -> dict[Ref, Origin]:
        def read(some: Sequence[Ref]) -> list[tuple[Ref, Origin]]:
            reader = self._read()
            return list(records.read_refs(some, partial(records.read_origins, reader)).items())

        return dict(read_readable(read, list(refs), self._connections.file.note_damage))

    def times(self, refs: Iterable[Ref]) -> dict[Ref, int]:
        return records.read_refs(refs, partial(records.read_times, self._read()))

    def _read(self) -> sqlite3.Connection:
        return self._connections.reader()

    def _cached(
        self, key: tuple[object, ...], compute: Callable[[sqlite3.Connection], Result]
    ) -> Result:
        """The cached answer for this generation of the store."""
        with self.snapshot():  # nobody writes between the generation and its answer
            full_key = (self.generation(), *key)
            with self._cache_lock:
                if full_key in self._cache:
                    return self._cache[full_key]  # type: ignore[return-value]
            answer = compute(self._read())
        with self._cache_lock:
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[full_key] = answer
        return answer


def _write_one(
    writer: sqlite3.Connection,
    labels: LabelIds,
    record: Record,
    *,
    merge_within: int | None,
    keep_id: bool,
) -> tuple[Record, Receipt]:
    record = records.with_time(writer, record)
    return record, records.write_record(writer, record, merge_within, labels, keep_id=keep_id)
