"""Saves what is readable of a damaged store into a new one.

A record is saved only if its content has the hash that was stored with it: none is altered.
"""

import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy

from memsvc.adapters.sqlite.contents import WORK_COLUMNS, adopt_trace
from memsvc.adapters.sqlite.labels import LabelIds
from memsvc.adapters.sqlite.records import (
    columns,
    insert,
    raise_last_id,
    record_of,
    touch_work_sessions,
)
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.upkeep.pages import Pages, Row, Value
from memsvc.adapters.sqlite.upkeep.restoring import move_aside, put_in_place, require_unused
from memsvc.adapters.sqlite.vectors import STORED
from memsvc.core.errors import StoreDamaged
from memsvc.core.ports.store import WORK, Trace
from memsvc.core.ports.upkeep import Salvage
from memsvc.core.ports.vectors import dimension_of
from memsvc.core.records import SHAPES, Kind, Record, WorkSession, content_hash, kind_of

BATCH: Final = 1_000
"""Records written in one transaction."""

UNIT: Final = 0.01
"""How far the length of a stored vector may be from 1, squared."""

_WORK_ROW: Final = (str, str, str, int, (int, type(None)), int, str)
_TRACE_ROW: Final = (str, str, str, int, int)
_COST_ROW: Final = (str, int, int, int)
_SEQUENCE_ROW: Final = (str, int)
_TABLES: Final = {shape.table: kind for kind, shape in SHAPES.items()}


@dataclass(slots=True)
class _Found:
    """What is known of a store besides its records."""

    sessions: list[WorkSession] = field(default_factory=list)
    traces: dict[tuple[str, str, str], Trace] = field(default_factory=dict)
    known: dict[Kind, set[int]] = field(default_factory=lambda: {kind: set() for kind in Kind})
    last_ids: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    generation: int = 0

    def note_saved(self, record: Record) -> None:
        """A record is in the new store."""
        kind = kind_of(record)
        self.known[kind].discard(record.id)
        self.last_ids[kind] = max(self.last_ids[kind], record.id)


def salvage(store: Path, now: datetime, progress: Callable[[int], None]) -> Salvage:
    """Replace a damaged store by a new one with all that is readable, and keep the damaged file.

    `progress` gets the number of records saved so far. Raises StoreUnavailable while any program
    has the store open, and StoreDamaged if there is nothing to be saved.
    """
    require_unused(store)
    new = store.with_name(f".{store.name}.salvaged")
    _remove(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with contextlib.closing(open_store(new)) as target:
            saved, missing, lost = _save_rows(store, target, progress)
            vectors = _save_vectors(store, target)
        if not sum(saved.values()):
            raise StoreDamaged(
                f"Nothing in {store.name} is readable; restore a backup: memsvc restore FILE"
            )
        kept = move_aside(store, now)
        put_in_place(new, store)
    finally:
        _remove(new)
    return Salvage(saved, missing, lost, vectors, kept)


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _save_rows(
    store: Path, target: SqliteStore, progress: Callable[[int], None]
) -> tuple[dict[Kind, int], dict[Kind, int], tuple[str, ...]]:
    """Save all but vectors: records saved and missing of each kind, and the refs known to be lost.

    An id is missing that was given out, unless its record was forgotten.
    """
    saved = Counter[Kind]()
    with contextlib.closing(Pages(store)) as pages:
        found = _survey(pages)
        target.write([], found.sessions)
        for batch in _batches(_records(pages, _layouts(target), found)):
            for record in _insert_all(target, batch):
                found.note_saved(record)
                saved[kind_of(record)] += 1
            progress(saved.total())
    _finish(target, found)
    forgotten = Counter(trace.kind for trace in found.traces.values())
    missing = {
        kind: max(len(found.known[kind]), found.last_ids[kind] - saved[kind] - forgotten[kind])
        for kind in Kind
    }
    lost = [f"{SHAPES[kind].letter}{id}" for kind in Kind for id in sorted(found.known[kind])]
    return {kind: saved[kind] for kind in Kind}, missing, tuple(lost)


def _finish(target: SqliteStore, found: _Found) -> None:
    """Write what depends on the records: traces, ids that were given out, the generation."""
    with target.connections.transaction() as writer:
        for trace in found.traces.values():
            adopt_trace(writer, trace)
        for kind, id in found.last_ids.items():
            raise_last_id(writer, kind, id)
        writer.execute("UPDATE generation SET number = number + ?", (found.generation,))


def _survey(pages: Pages) -> _Found:
    """Everything but the records: the last ids, which records there are, what was forgotten."""
    found = _Found()
    for row in pages.rows():
        values = row.values
        if row.rowid is None:
            _note_index_row(found, values)
        elif _fits(values, _SEQUENCE_ROW) and values[0] in _TABLES:
            kind, id = _TABLES[str(values[0])], int(values[1])  # type: ignore[arg-type]
            found.last_ids[kind] = max(found.last_ids[kind], id)
        elif row.rowid == 1 and _fits(values, (type(None), int)):
            found.generation = max(found.generation, int(values[1]))  # type: ignore[arg-type]
    for kind in Kind:
        highest = max(found.known[kind], default=0)
        found.last_ids[kind] = max(found.last_ids[kind], highest)
    return found


def _note_index_row(found: _Found, values: tuple[Value, ...]) -> None:
    """Tables without rowids are stored like indexes; here each has its own number of columns."""
    if _fits(values, _COST_ROW) and values[0] in tuple(Kind):
        found.known[Kind(str(values[0]))].add(int(values[1]))  # type: ignore[arg-type]
    elif _fits(values, _TRACE_ROW) and values[0] in (*Kind, WORK):
        trace = Trace(*values)  # type: ignore[arg-type]
        found.traces[trace.kind, trace.source, trace.source_id] = trace
    elif _fits(values, _WORK_ROW):
        named = dict(zip(_WORK_TABLE, values, strict=True))
        given = {name: named[name] for name in WORK_COLUMNS}
        found.sessions.append(WorkSession(**given))  # type: ignore[arg-type]


_WORK_TABLE: Final = (
    *("project_key", "session_id", "project", "started_at_epoch"),
    *("completed_at_epoch", "last_at_epoch", "status"),
)


def _fits(values: tuple[Value, ...], types: tuple[type | tuple[type, ...], ...]) -> bool:
    return len(values) == len(types) and all(map(isinstance, values, types))


def _layouts(store: SqliteStore) -> dict[Kind, tuple[str, ...]]:
    """The columns of each kind's table, in their order."""
    reader = store.connections.reader()
    return {
        kind: tuple(name for _, name, *_ in reader.execute(f"PRAGMA table_info({shape.table})"))
        for kind, shape in SHAPES.items()
    }


def _records(pages: Pages, layouts: dict[Kind, tuple[str, ...]], found: _Found) -> Iterator[Record]:
    """The records on all pages that are as they were written, without those that were forgotten."""
    for row in pages.rows():
        for kind, layout in layouts.items():
            record = _whole_record(kind, layout, row)
            if record and (kind, record.source, record.source_id) not in found.traces:
                yield record


def _whole_record(kind: Kind, layout: tuple[str, ...], row: Row) -> Record | None:
    """The record that a row holds, if its content has the stored hash; an older row is shorter."""
    named = dict(zip(layout, row.values, strict=False))
    if row.rowid is None or "content_hash" not in named or len(row.values) > len(layout):
        return None
    named["id"] = row.rowid
    shape = SHAPES[kind].record
    defaults = {each.name: each.default for each in fields(shape)}
    try:
        cells = tuple(named.get(name, defaults[name]) for name in columns(kind))
        record = record_of(kind, cells)
        return record if content_hash(record) == named["content_hash"] else None
    except (TypeError, ValueError):
        return None


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _insert_all(store: SqliteStore, batch: list[Record]) -> list[Record]:
    """Insert records under their own ids; of two with the same id, the first."""
    written = []
    with store.connections.transaction() as writer:
        labels = LabelIds(writer)
        for record in batch:
            with contextlib.suppress(sqlite3.IntegrityError):
                insert(writer, kind_of(record), record, labels)
                written.append(record)
        touch_work_sessions(writer, written)
    return written


def _save_vectors(store: Path, target: SqliteStore) -> int:
    """Copy the vectors of saved records that can be read and are still of unit length."""
    uri = f"{store.absolute().as_uri()}?mode=ro"
    saved = 0
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as source:
        for kind, shape in SHAPES.items():
            ids = [
                id for (id,) in target.connections.reader().execute(f"SELECT id FROM {shape.table}")
            ]
            for start in range(0, len(ids), BATCH):
                rows = list(
                    _vector_rows(source, f"{shape.table}_vectors", ids[start : start + BATCH])
                )
                saved += len(rows)
                with target.connections.transaction() as writer:
                    writer.executemany(f"INSERT INTO {shape.table}_vectors VALUES (?, ?, ?)", rows)
                    writer.executemany(
                        "DELETE FROM pending WHERE kind = ? AND record = ?",
                        [(kind, id) for id, _, _ in rows],
                    )
    return saved


def _vector_rows(
    source: sqlite3.Connection, table: str, ids: list[int]
) -> Iterator[tuple[int, str, bytes]]:
    for id in ids:
        try:
            row = source.execute(
                f"SELECT id, fingerprint, vectors FROM {table} WHERE id = ?", (id,)
            ).fetchone()
            if row and _are_vectors(row[1], row[2]):
                yield row
        except (sqlite3.DatabaseError, ValueError, TypeError):
            continue


def _are_vectors(fingerprint: str, blob: bytes) -> bool:
    found = numpy.frombuffer(blob, STORED).astype(numpy.float32)
    lengths = numpy.square(found.reshape(-1, dimension_of(fingerprint))).sum(axis=1)
    return bool(len(lengths)) and bool((abs(lengths - 1) < UNIT).all())
