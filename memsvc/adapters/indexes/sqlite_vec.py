"""Vectors in a separate SQLite file, with the extension sqlite-vec: exact, without Chroma.

apsw brings its own SQLite, because Python's may be built without extensions. Two copies of SQLite
in one process must never open the same file, so the store's file is never opened here.
"""

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy

from memsvc.adapters.indexes.filtering import as_matrix, folded_groups
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedded, Vector
from memsvc.core.records import Kind, Ref
from memsvc.core.semantic.cosines import best

try:
    import apsw
    import sqlite_vec
except ImportError as error:
    raise SemanticUnavailable(
        "The index sqlite-vec needs two more packages; install them: "
        "pip install 'memsvc[sqlite-vec]'"
    ) from error

BUSY_MS: Final = 5_000
MAX_NEAREST: Final = 4_096
"""The most neighbours that sqlite-vec returns per query."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parts (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, record INTEGER NOT NULL,
    created_at_epoch INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS parts_by_record ON parts (kind, record);
CREATE INDEX IF NOT EXISTS parts_by_time ON parts (kind, created_at_epoch);
CREATE TABLE IF NOT EXISTS labels (
    field TEXT NOT NULL, value TEXT NOT NULL, part INTEGER NOT NULL,
    PRIMARY KEY (field, value, part)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS labels_by_part ON labels (part);
"""


def open_sqlite_vec(file: Path, dimension: int) -> "SqliteVecIndex":
    """The index in a file, created if missing.

    An unreadable file shows at the first call, so that it can be cleared.
    """
    return SqliteVecIndex(file.absolute(), dimension)


class SqliteVecIndex:
    """An index in one file: the vectors and the labels to filter them by."""

    def __init__(self, file: Path, dimension: int) -> None:
        self._file = file
        self._dimension = dimension
        self._lock = threading.Lock()  # one connection, one thread at a time
        self._connection: apsw.Connection | None = None
        self._closed = False

    def upsert(self, records: Sequence[Embedded]) -> None:
        checked = [(record, as_matrix(record.vectors, self._dimension)) for record in records]
        with self._writer() as writer:
            for record, vectors in checked:
                _drop(writer, record.ref)
                for vector in vectors:
                    _insert(writer, record, vector)

    def remove(self, refs: Sequence[Ref]) -> None:
        with self._writer() as writer:
            for ref in refs:
                _drop(writer, ref)

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        (sought,) = as_matrix(vector, self._dimension)
        chosen, values = _chosen(kind, selection)
        if limit < 1:
            return []
        with self._reader() as reader:
            rows = _search(reader, kind, sought.tobytes(), limit, chosen, values)
        records, distances = ([row[column] for row in rows] for column in (0, 1))
        return best(
            numpy.array(records, numpy.int64), 1 - numpy.array(distances, numpy.float32), limit
        )

    def nearest_each(
        self, kind: Kind, vectors: Sequence[Vector], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        return [self.nearest(kind, vector, limit, selection) for vector in vectors]

    def count(self) -> int:
        with self._reader() as reader:
            return int(reader.execute("SELECT count(*) FROM parts").get)

    def position(self) -> int:
        with self._reader() as reader:
            return _fact(reader, "position")

    def advance(self, position: int) -> None:
        with self._writer() as writer:
            writer.execute("REPLACE INTO facts VALUES ('position', ?)", (position,))

    def clear(self) -> None:
        with self._lock, self._explained_errors():
            self._disconnect()
            for end in ("", "-wal", "-shm", "-journal"):
                self._file.with_name(self._file.name + end).unlink(missing_ok=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    @contextlib.contextmanager
    def _writer(self) -> Iterator[apsw.Connection]:
        with self._reader() as connection, connection:
            yield connection

    @contextlib.contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        with self._lock, self._explained_errors():
            if self._closed:
                raise SemanticUnavailable("The semantic index is closed.")
            if self._connection is None:
                self._connection = _connect(self._file, self._dimension)
            yield self._connection

    @contextlib.contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, OSError) as error:
            self._disconnect()
            raise SemanticUnavailable(
                f"The semantic index {self._file} cannot be used ({error}); it is only a "
                "copy, so delete the file and it is rebuilt."
            ) from error

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)


def _connect(file: Path, dimension: int) -> apsw.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(file))
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a cache: a lost batch is written again
        _prepare(connection, dimension)
    except BaseException:
        connection.close(True)
        raise
    return connection


def _prepare(connection: apsw.Connection, dimension: int) -> None:
    with connection:
        connection.execute(_TABLES)
        for kind in Kind:
            connection.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {kind}_vectors USING "
                f"vec0(embedding float[{dimension}] distance_metric=cosine)"
            )
        connection.execute("INSERT OR IGNORE INTO facts VALUES ('dimension', ?)", (dimension,))
    if _fact(connection, "dimension") != dimension:
        raise apsw.MismatchError(f"its vectors do not have dimension {dimension}")


def _fact(reader: apsw.Connection, name: str) -> int:
    return int(reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).get or 0)


def _insert(writer: apsw.Connection, record: Embedded, vector: Vector) -> None:
    kind = record.ref.kind
    writer.execute(
        "INSERT INTO parts (kind, record, created_at_epoch) VALUES (?, ?, ?)",
        (str(kind), record.ref.id, record.created_at_epoch),
    )
    part = writer.last_insert_rowid()
    writer.execute(
        f"INSERT INTO {kind}_vectors (rowid, embedding) VALUES (?, ?)", (part, vector.tobytes())
    )
    values = {(field, value, part) for field, values in record.groups for value in values}
    writer.executemany("INSERT INTO labels VALUES (?, ?, ?)", values)


def _drop(writer: apsw.Connection, ref: Ref) -> None:
    found = writer.execute(
        "SELECT id FROM parts WHERE kind = ? AND record = ?", (str(ref.kind), ref.id)
    )
    for part in found.fetchall():
        writer.execute(f"DELETE FROM {ref.kind}_vectors WHERE rowid = ?", part)
        writer.execute("DELETE FROM labels WHERE part = ?", part)
        writer.execute("DELETE FROM parts WHERE id = ?", part)


def _chosen(kind: Kind, selection: Filter) -> tuple[str, list[Any]]:
    """A filter as an SQL condition on `parts`, with its values."""
    terms = ["kind = ?"]
    values: list[Any] = [str(kind)]
    for sign, bound in ((">=", selection.since), ("<=", selection.until)):
        if bound is not None:
            terms.append(f"created_at_epoch {sign} ?")
            values.append(bound)
    for field, wanted in folded_groups(selection):
        terms.append(
            "id IN (SELECT part FROM labels WHERE field = ? "
            "AND value IN (SELECT value FROM json_each(?)))"
        )
        values += [field, json.dumps(sorted(wanted))]
    return " AND ".join(terms), values


def _search(
    reader: apsw.Connection,
    kind: Kind,
    vector: bytes,
    limit: int,
    chosen: str,
    values: list[Any],
) -> list[Any]:
    """The record and distance of the nearest vectors, covering `limit` records if there are that
    many.
    """
    only = "" if len(values) == 1 else f"AND rowid IN (SELECT id FROM parts WHERE {chosen})"
    width = limit
    while width <= MAX_NEAREST:
        rows = reader.execute(
            "SELECT record, distance FROM (SELECT rowid AS part, distance "
            f"FROM {kind}_vectors WHERE embedding MATCH ? AND k = ? {only}) "
            "JOIN parts ON id = part",
            (vector, width, *(values if only else ())),
        ).fetchall()
        if len(rows) < width or len({row[0] for row in rows}) >= limit:
            return rows
        width *= 4
    return reader.execute(
        f"SELECT record, vec_distance_cosine(embedding, ?) FROM {kind}_vectors "
        f"JOIN parts ON id = {kind}_vectors.rowid WHERE {chosen}",
        (vector, *values),
    ).fetchall()
