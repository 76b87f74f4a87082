"""Everything in a store, to be exported; and what an import takes over besides records."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Final

from memsvc.adapters.sqlite.listing import selected
from memsvc.adapters.sqlite.records import columns, raise_last_id, record_of
from memsvc.adapters.sqlite.work_sessions import selected_work
from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import WORK, Trace
from memsvc.core.records import SHAPES, Kind, Record, WorkSession

WORK_COLUMNS: Final = tuple(field.name for field in fields(WorkSession))


def read_contents(
    reader: sqlite3.Connection, selection: Filter
) -> Iterator[WorkSession | Record | Trace]:
    """Work sessions, records by kind and id, and traces if everything is selected."""
    yield from _work_sessions(reader, selection)
    for kind in Kind:
        yield from _records(reader, kind, selection)
    if selection == EVERYTHING:
        yield from _traces(reader)


def _work_sessions(reader: sqlite3.Connection, selection: Filter) -> Iterator[WorkSession]:
    condition, values = selected_work(selection)
    rows = reader.execute(
        f"""SELECT {", ".join(WORK_COLUMNS)} FROM work_sessions AS w WHERE {condition}
            ORDER BY project_key, session_id""",
        values,
    )
    return (WorkSession(**dict(zip(WORK_COLUMNS, row, strict=True))) for row in rows)


def _records(reader: sqlite3.Connection, kind: Kind, selection: Filter) -> Iterator[Record]:
    chosen, values = selected(reader, kind, selection)
    condition = "" if selection == EVERYTHING else f"WHERE id IN (SELECT id FROM ({chosen}))"
    names = ", ".join(columns(kind))
    rows = reader.execute(
        f"SELECT {names} FROM {SHAPES[kind].table} {condition} ORDER BY id",
        values if condition else (),
    )
    return (record_of(kind, row) for row in rows)


def _traces(reader: sqlite3.Connection) -> Iterator[Trace]:
    rows = reader.execute(
        """SELECT kind, source, source_id, content_hash, created_at_epoch FROM forgotten
           ORDER BY kind, source, source_id"""
    )
    return (Trace(*row) for row in rows)


def adopt(
    writer: sqlite3.Connection, traces: Iterable[Trace], last_ids: Mapping[Kind, int]
) -> None:
    """Take over traces of what does not exist here, and ids that were given out elsewhere."""
    for trace in traces:
        if not _exists(writer, trace):
            adopt_trace(writer, trace)
    for kind, id in last_ids.items():
        raise_last_id(writer, kind, id)


def adopt_trace(writer: sqlite3.Connection, trace: Trace) -> None:
    """Note that something has been forgotten, unless that is noted already."""
    writer.execute(
        """INSERT OR IGNORE INTO forgotten (kind, source, source_id, content_hash,
               created_at_epoch) VALUES (?, ?, ?, ?, ?)""",
        (trace.kind, trace.source, trace.source_id, trace.content_hash, trace.created_at_epoch),
    )


def _exists(writer: sqlite3.Connection, trace: Trace) -> bool:
    if trace.kind == WORK:
        return False  # a work session that exists is not touched by its trace
    sql = f"SELECT 1 FROM {SHAPES[Kind(trace.kind)].table} WHERE source = ? AND source_id = ?"
    return writer.execute(sql, (trace.source, trace.source_id)).fetchone() is not None
