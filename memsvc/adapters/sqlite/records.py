"""Reads, writes and forgets records in SQLite."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from memsvc.adapters.sqlite.fulltext.index_words import record_subwords, record_tags
from memsvc.adapters.sqlite.labels import LabelIds, labels_of
from memsvc.core.dates import now_ms
from memsvc.core.ports.store import Origin, Outcome, Receipt, Title
from memsvc.core.records import (
    SHAPES,
    Kind,
    Record,
    Ref,
    WorkSession,
    content_hash,
    kind_of,
    work_hash,
)

Found = TypeVar("Found")

LISTS = frozenset({"facts", "concepts", "files_read", "files_modified", "files_edited"})


@cache
def columns(kind: Kind) -> tuple[str, ...]:
    """The columns of a kind's table that hold the record's fields, in the order of the class."""
    return tuple(field.name for field in fields(SHAPES[kind].record))


def read_records(reader: sqlite3.Connection, kind: Kind, ids: Sequence[int]) -> dict[int, Record]:
    """The records with these ids; missing ids are skipped."""
    names = ", ".join(columns(kind))
    rows = reader.execute(
        f"""SELECT {names} FROM {SHAPES[kind].table}
            WHERE id IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(ids)),),
    )
    return {record.id: record for record in (record_of(kind, row) for row in rows)}


def read_refs(
    refs: Iterable[Ref], read: Callable[[Kind, list[int]], Mapping[int, Found]]
) -> dict[Ref, Found]:
    """Read records of several kinds, with one query per kind."""
    wanted = list(refs)
    return {
        Ref(kind, id): found
        for kind in Kind
        if (ids := [ref.id for ref in wanted if ref.kind is kind])
        for id, found in read(kind, ids).items()
    }


def read_times(reader: sqlite3.Connection, kind: Kind, ids: Sequence[int]) -> dict[int, int]:
    """The creation times of the records with these ids; missing ids are skipped."""
    rows = reader.execute(
        f"""SELECT id, created_at_epoch FROM {SHAPES[kind].table}
            WHERE id IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(ids)),),
    )
    return dict(rows.fetchall())


def read_titles(reader: sqlite3.Connection, kind: Kind, ids: Sequence[int]) -> dict[int, Title]:
    """The titles of the records with these ids; missing ids are skipped."""
    rows = reader.execute(
        f"""SELECT id, {SHAPES[kind].title}, project FROM {SHAPES[kind].table}
            WHERE id IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(ids)),),
    )
    return {id: Title(text, project) for id, text, project in rows}


def read_origins(reader: sqlite3.Connection, kind: Kind, ids: Sequence[int]) -> dict[int, Origin]:
    """The origins of the records with these ids; missing ids are skipped."""
    length = " + ".join(f"length({name})" for name in SHAPES[kind].texts)
    rows = reader.execute(
        f"""SELECT id, project, session_id, {length} FROM {SHAPES[kind].table}
            WHERE id IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(ids)),),
    )
    return {id: Origin(*values) for id, *values in rows}


def record_of(kind: Kind, row: tuple[Any, ...]) -> Record:
    """The record that a row of `columns` holds."""
    values = dict(zip(columns(kind), row, strict=True))
    for name in LISTS & values.keys():
        values[name] = tuple(json.loads(values[name]))
    return SHAPES[kind].record(**values)


def write_record(
    writer: sqlite3.Connection,
    record: Record,
    merge_within: int | None,
    labels: LabelIds,
    *,
    keep_id: bool = False,
) -> Receipt:
    """Store a record once per source: stored, updated, unchanged, merged or forgotten.

    With `merge_within`, a new record is merged into one of the same source with the same content if
    they are at most that many ms apart; None never merges. With `keep_id`, a new record keeps its
    id if that is above all given so far.
    """
    receipt = preview(writer, record, merge_within)
    kind = kind_of(record)
    if receipt.outcome is Outcome.STORED:
        own = keep_id and record.id > last_id(writer, kind)
        new = record if own else replace(record, id=0)
        return Receipt(Outcome.STORED, Ref(kind, insert(writer, kind, new, labels)))
    if receipt.outcome is Outcome.UPDATED and receipt.ref:
        _update(writer, kind, replace(record, id=receipt.ref.id), labels)
    return receipt


def preview(connection: sqlite3.Connection, record: Record, merge_within: int | None) -> Receipt:
    """What writing a record would do; a new one has no ref yet."""
    kind = kind_of(record)
    record = with_time(connection, record)
    if _is_forgotten(connection, kind, record):
        return Receipt(Outcome.FORGOTTEN, None)
    if known := _stored(connection, kind, record):
        same = known == replace(record, id=known.id)
        return Receipt(Outcome.UNCHANGED if same else Outcome.UPDATED, Ref(kind, known.id))
    if merge_within is None:
        return Receipt(Outcome.STORED, None)
    if _has_forgotten_duplicate(connection, kind, record, merge_within):
        return Receipt(Outcome.FORGOTTEN, None)
    if duplicate := _duplicate(connection, kind, record, merge_within):
        return Receipt(Outcome.MERGED, Ref(kind, duplicate.id))
    return Receipt(Outcome.STORED, None)


def with_time(connection: sqlite3.Connection, record: Record) -> Record:
    """The record with a time: its own, otherwise that of its first write, otherwise now."""
    if record.created_at_epoch:
        return record
    known = _stored(connection, kind_of(record), record)
    return replace(record, created_at_epoch=known.created_at_epoch if known else now_ms())


def _stored(connection: sqlite3.Connection, kind: Kind, record: Record) -> Record | None:
    """The stored record with the same source and source id."""
    return _find(connection, kind, "source = ? AND source_id = ?", record.source, record.source_id)


def _is_forgotten(writer: sqlite3.Connection, kind: Kind, record: Record) -> bool:
    sql = "SELECT 1 FROM forgotten WHERE kind = ? AND source = ? AND source_id = ?"
    return writer.execute(sql, (kind, record.source, record.source_id)).fetchone() is not None


def _has_forgotten_duplicate(
    connection: sqlite3.Connection, kind: Kind, record: Record, merge_within: int
) -> bool:
    """Whether the record would be merged into a record that has been forgotten."""
    found = connection.execute(
        f"SELECT 1 FROM forgotten WHERE kind = ? AND {_DUPLICATE}",
        (kind, *_duplicate_values(record, merge_within)),
    )
    return found.fetchone() is not None


_DUPLICATE = "content_hash = ? AND source = ? AND created_at_epoch BETWEEN ? AND ?"


def _duplicate_values(record: Record, merge_within: int) -> tuple[object, ...]:
    moment = record.created_at_epoch
    return content_hash(record), record.source, moment - merge_within, moment + merge_within


def _find(writer: sqlite3.Connection, kind: Kind, condition: str, *values: object) -> Record | None:
    names = ", ".join(columns(kind))
    sql = f"SELECT {names} FROM {SHAPES[kind].table} WHERE {condition} LIMIT 1"
    row = writer.execute(sql, values).fetchone()
    return record_of(kind, row) if row else None


def _duplicate(
    writer: sqlite3.Connection, kind: Kind, record: Record, merge_within: int
) -> Record | None:
    """The earliest record of the same source with the same content at about the same time."""
    condition = f"{_DUPLICATE} ORDER BY created_at_epoch, id"
    return _find(writer, kind, condition, *_duplicate_values(record, merge_within))


def _update(writer: sqlite3.Connection, kind: Kind, record: Record, labels: LabelIds) -> None:
    known = _find(writer, kind, "id = ?", record.id)
    if known:
        _unlabel(writer, kind, known, labels)
    assignments = ", ".join(f"{name} = ?" for name in _stored_columns(kind))
    writer.execute(
        f"UPDATE {SHAPES[kind].table} SET {assignments} WHERE id = ?",
        (*_values(kind, record), record.id),
    )
    label(writer, kind, record, labels)
    if known:
        labels.drop_unused(kind, labels_of(known))
        _drop_empty_work_sessions(writer, known)


def last_id(connection: sqlite3.Connection, kind: Kind) -> int:
    """The highest id that a kind has given out, to forgotten records too."""
    sql = "SELECT seq FROM sqlite_sequence WHERE name = ?"
    found = connection.execute(sql, (SHAPES[kind].table,)).fetchone()
    return int(found[0]) if found else 0


def raise_last_id(writer: sqlite3.Connection, kind: Kind, id: int) -> None:
    """Let the next record of a kind have an id above this one."""
    if id > last_id(writer, kind):
        name = SHAPES[kind].table
        writer.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        writer.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, id))


def insert(writer: sqlite3.Connection, kind: Kind, record: Record, labels: LabelIds) -> int:
    """Insert a record that no other stands for, under its own id or, for 0, the next one."""
    names = ("id", *_stored_columns(kind))
    marks = ", ".join("?" for _ in names)
    cursor = writer.execute(
        f"INSERT INTO {SHAPES[kind].table} ({', '.join(names)}) VALUES ({marks})",
        (record.id or None, *_values(kind, record)),
    )
    new_id = int(cursor.lastrowid or 0)
    label(writer, kind, replace(record, id=new_id), labels)
    return new_id


@cache
def _stored_columns(kind: Kind) -> tuple[str, ...]:
    given = (name for name in columns(kind) if name != "id")
    return (*given, "content_hash", "parts", "tags")


def _values(kind: Kind, record: Record) -> list[object]:
    given = (getattr(record, name) for name in columns(kind) if name != "id")
    cells = [_list_cell(value) if isinstance(value, tuple) else value for value in given]
    return [*cells, content_hash(record), record_subwords(record), record_tags(record)]


def _list_cell(items: tuple[str, ...]) -> str:
    return json.dumps(items, ensure_ascii=False) if items else "[]"


def label(writer: sqlite3.Connection, kind: Kind, record: Record, labels: LabelIds) -> None:
    writer.executemany(
        "INSERT OR IGNORE INTO labelled (label, created_at_epoch, record) VALUES (?, ?, ?)",
        [
            (labels.of(kind, label), record.created_at_epoch, record.id)
            for label in labels_of(record)
        ],
    )


def _unlabel(writer: sqlite3.Connection, kind: Kind, record: Record, labels: LabelIds) -> None:
    writer.executemany(
        "DELETE FROM labelled WHERE label = ? AND created_at_epoch = ? AND record = ?",
        [
            (labels.of(kind, label), record.created_at_epoch, record.id)
            for label in labels_of(record)
        ],
    )


def forget_record(writer: sqlite3.Connection, ref: Ref, labels: LabelIds) -> bool:
    """Remove a record everywhere and keep imports from restoring it; False if it does not exist."""
    record = _find(writer, ref.kind, "id = ?", ref.id)
    if record is None:
        return False
    _remove(writer, ref.kind, record, labels)
    writer.execute(
        """INSERT OR IGNORE INTO forgotten (kind, source, source_id, content_hash,
               created_at_epoch) VALUES (?, ?, ?, ?, ?)""",
        (
            ref.kind,
            record.source,
            record.source_id,
            content_hash(record),
            record.created_at_epoch,
        ),
    )
    writer.executemany(
        "INSERT OR IGNORE INTO forgotten (kind, source, source_id) VALUES ('work', '', ?)",
        [(work_hash(*session),) for session in _drop_empty_work_sessions(writer, record)],
    )
    return True


def _remove(writer: sqlite3.Connection, kind: Kind, record: Record, labels: LabelIds) -> None:
    _unlabel(writer, kind, record, labels)
    labels.drop_unused(kind, labels_of(record))
    writer.execute(f"DELETE FROM {SHAPES[kind].table} WHERE id = ?", (record.id,))


def rewrite_record(
    writer: sqlite3.Connection, before: Record, after: Record, labels: LabelIds
) -> bool:
    """Overwrite a record, or drop it where another has its source and source id by now.

    False if it is not as `before` any more.
    """
    kind = kind_of(before)
    if _find(writer, kind, "id = ?", before.id) != before:
        return False
    twin = _stored(writer, kind, after)
    if twin and twin.id != before.id:
        _remove(writer, kind, before, labels)
        _drop_empty_work_sessions(writer, before)
        return True
    _update(writer, kind, after, labels)
    writer.execute(f"DELETE FROM {SHAPES[kind].table}_vectors WHERE id = ?", (before.id,))
    return True


def rename_forgotten(writer: sqlite3.Connection, name: Callable[[str], str]) -> int:
    """Change the sources and source ids of forgotten records; returns how many changed."""
    rows = writer.execute(
        "SELECT source, source_id, kind FROM forgotten WHERE kind <> 'work'"
    ).fetchall()
    renamed = [
        (name(source), name(source_id), kind, source, source_id) for source, source_id, kind in rows
    ]
    changed = [row for row in renamed if row[:2] != row[3:]]
    writer.executemany(
        """UPDATE OR REPLACE forgotten SET source = ?, source_id = ?
           WHERE kind = ? AND source = ? AND source_id = ?""",
        changed,
    )
    return len(changed)


def _drop_empty_work_sessions(writer: sqlite3.Connection, record: Record) -> list[tuple[str, str]]:
    """Remove a record's work session if it is now empty, or all work sessions of its project if the
    project is. Returns (project, session) of each.
    """
    project = record.project.casefold()
    if not _carried(writer, "project", project):
        condition, values = "project_key = ?", [project]
    elif not _carried(writer, "work", f"{project}\n{record.session_id}"):
        condition, values = "project_key = ? AND session_id = ?", [project, record.session_id]
    else:
        return []
    sql = f"DELETE FROM work_sessions WHERE {condition} RETURNING project_key, session_id"
    return writer.execute(sql, values).fetchall()


def _carried(writer: sqlite3.Connection, field: str, value: str) -> bool:
    """Whether any record of any kind has a label."""
    found = writer.execute(
        """SELECT 1 FROM labels WHERE kind IN (SELECT value FROM json_each(?)) AND field = ?
           AND value = ? AND EXISTS (SELECT 1 FROM labelled WHERE label = labels.id)""",
        (json.dumps(list(Kind)), field, value),
    )
    return found.fetchone() is not None


def touch_work_sessions(writer: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Create or extend the work sessions of these records so that they cover the records' times."""
    moments: dict[tuple[str, str, str], list[int]] = {}
    for record in records:
        session = (record.project.casefold(), record.session_id, record.project)
        moments.setdefault(session, []).append(record.created_at_epoch)
    writer.executemany(
        """INSERT INTO work_sessions (project_key, session_id, project, started_at_epoch,
               completed_at_epoch, last_at_epoch, status)
           VALUES (?, ?, ?, ?, NULL, ?, 'unknown')
           ON CONFLICT DO UPDATE SET
               started_at_epoch = min(started_at_epoch, excluded.started_at_epoch),
               last_at_epoch = max(last_at_epoch, excluded.last_at_epoch)""",
        [(*session, min(times), max(times)) for session, times in moments.items()],
    )


def write_work_session(writer: sqlite3.Connection, session: WorkSession) -> None:
    """Store a work session; its records may already exist.

    A forgotten one is stored again only if it has records again.
    """
    writer.execute(
        """INSERT INTO work_sessions (project_key, session_id, project, started_at_epoch,
               completed_at_epoch, last_at_epoch, status)
           SELECT ?1, ?2, ?3, ?4, ?5, iif(?8 > 0, ?8, coalesce(?5, ?4)), ?6
           WHERE EXISTS (SELECT 1 FROM work_sessions WHERE project_key = ?1 AND session_id = ?2)
               OR NOT EXISTS (SELECT 1 FROM forgotten
                   WHERE kind = 'work' AND source = '' AND source_id = ?7)
           ON CONFLICT DO UPDATE SET
               started_at_epoch = min(started_at_epoch, excluded.started_at_epoch),
               completed_at_epoch = coalesce(excluded.completed_at_epoch, completed_at_epoch),
               last_at_epoch = max(last_at_epoch, ?8),
               status = excluded.status""",
        (
            session.project.casefold(),
            session.session_id,
            session.project,
            session.started_at_epoch,
            session.completed_at_epoch,
            session.status,
            work_hash(session.project, session.session_id),
            session.last_at_epoch,
        ),
    )
