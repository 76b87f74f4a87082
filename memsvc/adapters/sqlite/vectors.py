"""The vectors in the store: which are missing, their values, and what an index has yet to apply."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy

from memsvc.adapters.sqlite.connections import Connections
from memsvc.adapters.sqlite.records import read_records, read_refs
from memsvc.core.filters import value_groups
from memsvc.core.ports.vectors import Change, Embedded, Pending, Vector, dimension_of
from memsvc.core.records import SHAPES, Kind, Record, Ref

STORED = numpy.float16
"""Half precision: half the disk space, and cosines change by less than .001."""

LEAD = "-lead"
"""Suffix of the fingerprint of a vector that stands for a record until all its texts are embedded.
"""

AGES = 1 << 50
"""Milliseconds that a record in the queue is moved back by when its lead is embedded, so that those
without one come first. More than any two dates lie apart.
"""

MOVED = f"created_at_epoch < {-AGES // 2}"
"""Whether a record in the queue was moved back."""


class SqliteVectors:
    """The VectorStore port, in the same file as the records."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def store_name(self) -> str:
        return str(self._one("SELECT name FROM semantic"))

    def rebuilds(self) -> int:
        return int(self._one("SELECT rebuilds FROM semantic"))

    def ask_rebuild(self) -> None:
        with self._connections.transaction() as writer:
            writer.execute("UPDATE semantic SET rebuilds = rebuilds + 1")

    def queue_others(self, fingerprint: str) -> None:
        with self._connections.transaction() as writer:
            for kind in Kind:
                _put_back(writer, kind, fingerprint)
                _queue_others(writer, kind, fingerprint)

    def pending(self, limit: int) -> list[Pending]:
        with self._connections.snapshot() as reader:
            rows = reader.execute(
                f"""SELECT sequence, kind, record, {MOVED} FROM pending
                    ORDER BY created_at_epoch DESC, record DESC, kind DESC LIMIT ?""",
                (limit,),
            ).fetchall()
        return [Pending(row[0], Ref(Kind(row[1]), row[2]), bool(row[3])) for row in rows]

    def count_pending(self) -> int:
        return int(self._one("SELECT count(*) FROM pending"))

    def count_unknown(self) -> int:
        return int(
            self._one(f"SELECT count(*) FROM pending WHERE created_at_epoch >= {-AGES // 2}")
        )

    def keep_leads(self, done: Sequence[tuple[Pending, Vector]], fingerprint: str) -> None:
        with self._connections.transaction() as writer:
            for pending, vectors in done:
                _keep_lead(writer, pending, fingerprint, vectors)

    def keep_vectors(self, done: Sequence[tuple[Pending, Vector]], fingerprint: str) -> None:
        with self._connections.transaction() as writer:
            for pending, vectors in done:
                _keep(writer, pending, fingerprint, vectors)

    def vectors(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> dict[int, Vector]:
        with self._connections.snapshot() as reader:
            return _read_vectors(reader, kind, ids, fingerprint)

    def embedded_among(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> set[int]:
        with self._connections.snapshot() as reader:
            return {id for (id,) in _select(reader, "id", kind, ids, fingerprint)}

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        with self._connections.snapshot() as reader:
            return _changes_after(reader, position, limit, fingerprint)

    def count_changes(self, position: int) -> int:
        return int(self._one("SELECT count(*) FROM changes WHERE sequence > ?", position))

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        with self._connections.snapshot() as reader:
            return read_refs(refs, partial(read_records, reader))

    def _one(self, sql: str, *values: object) -> Any:
        with self._connections.snapshot() as reader:
            return reader.execute(sql, values).fetchone()[0]


def _queue_others(writer: sqlite3.Connection, kind: Kind, fingerprint: str) -> None:
    table = SHAPES[kind].table
    writer.execute(
        f"""INSERT OR IGNORE INTO pending (kind, record, created_at_epoch)
            SELECT ?, record.id, record.created_at_epoch FROM {table} AS record
            LEFT JOIN {table}_vectors AS kept ON kept.id = record.id
            WHERE kept.id IS NULL OR kept.fingerprint <> ?""",
        (kind, fingerprint),
    )


def _put_back(writer: sqlite3.Connection, kind: Kind, fingerprint: str) -> None:
    """Let records whose lead is of another fingerprint wait where they began to."""
    writer.execute(
        f"""UPDATE pending SET created_at_epoch = created_at_epoch + {AGES}
            WHERE kind = ? AND {MOVED} AND record NOT IN
            (SELECT id FROM {SHAPES[kind].table}_vectors WHERE fingerprint = ?)""",
        (kind, fingerprint + LEAD),
    )


def _keep(writer: sqlite3.Connection, done: Pending, fingerprint: str, vectors: Vector) -> None:
    """Store the vectors of a record unless it was changed or forgotten meanwhile."""
    if writer.execute("DELETE FROM pending WHERE sequence = ?", (done.sequence,)).rowcount:
        _put(writer, done.ref, fingerprint, vectors)


def _keep_lead(
    writer: sqlite3.Connection, done: Pending, fingerprint: str, vectors: Vector
) -> None:
    """Store the lead of a record that still waits without one, and move the record back."""
    moved = f"""UPDATE pending SET created_at_epoch = created_at_epoch - {AGES}
                WHERE sequence = ? AND NOT {MOVED}"""
    if writer.execute(moved, (done.sequence,)).rowcount:
        _put(writer, done.ref, fingerprint + LEAD, vectors)


def _put(writer: sqlite3.Connection, ref: Ref, fingerprint: str, vectors: Vector) -> None:
    writer.execute(
        f"""INSERT INTO {SHAPES[ref.kind].table}_vectors (id, fingerprint, vectors)
            VALUES (?, ?, ?) ON CONFLICT DO UPDATE
            SET fingerprint = excluded.fingerprint, vectors = excluded.vectors""",
        (ref.id, fingerprint, vectors.astype(STORED).tobytes()),
    )


def _read_vectors(
    reader: sqlite3.Connection, kind: Kind, ids: Iterable[int], fingerprint: str
) -> dict[int, Vector]:
    """The vectors of these records with this fingerprint, their leads too."""
    dimension = dimension_of(fingerprint)
    rows = _select(reader, "id, vectors", kind, ids, fingerprint)
    return {id: _unpacked(blob, dimension) for id, blob in rows}


def _select(
    reader: sqlite3.Connection, columns: str, kind: Kind, ids: Iterable[int], fingerprint: str
) -> sqlite3.Cursor:
    return reader.execute(
        f"""SELECT {columns} FROM {SHAPES[kind].table}_vectors
            WHERE id IN (SELECT value FROM json_each(?)) AND fingerprint IN (?, ?)""",
        (json.dumps(list(ids)), fingerprint, fingerprint + LEAD),
    )


def _changes_after(
    reader: sqlite3.Connection, position: int, limit: int, fingerprint: str
) -> list[Change]:
    """The next changes that an index at this position has to apply, in order.

    A change without vectors means that the record is to be removed.
    """
    rows = reader.execute(
        "SELECT sequence, kind, record FROM changes WHERE sequence > ? ORDER BY sequence LIMIT ?",
        (position, limit),
    ).fetchall()
    refs = [Ref(Kind(kind), id) for _, kind, id in rows]
    embedded = {
        each.ref: each for kind in Kind for each in _embedded(reader, kind, refs, fingerprint)
    }
    return [Change(row[0], ref, embedded.get(ref)) for row, ref in zip(rows, refs, strict=True)]


def _embedded(
    reader: sqlite3.Connection, kind: Kind, refs: Sequence[Ref], fingerprint: str
) -> list[Embedded]:
    ids = [ref.id for ref in refs if ref.kind is kind]
    if not ids:
        return []
    records = read_records(reader, kind, ids)
    return [
        Embedded(Ref(kind, id), records[id].created_at_epoch, value_groups(records[id]), vectors)
        for id, vectors in _read_vectors(reader, kind, ids, fingerprint).items()
        if id in records
    ]


def _unpacked(blob: bytes, dimension: int) -> Vector:
    return numpy.frombuffer(blob, STORED).astype(numpy.float32).reshape(-1, dimension)
