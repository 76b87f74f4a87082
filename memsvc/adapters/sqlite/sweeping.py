"""Leaves nothing in the file of what was removed from it."""

import contextlib
import sqlite3

from memsvc.adapters.sqlite.connections import BUSY_SECONDS, Connections, store_errors
from memsvc.core.records import SHAPES


def sweep(connections: Connections) -> bool:
    """Remove what is left of removed records; False if readers kept the log from being emptied.

    Deleted words stay in a full-text index until its segments are merged, and old pages in the log
    until it is emptied. Indexes beside the file are asked to rebuild.
    """
    for shape in SHAPES.values():  # one at a time, so that other writers come in between
        with connections.transaction() as writer:
            optimize(writer, shape.table)
    with connections.transaction() as writer:
        writer.execute("UPDATE semantic SET rebuilds = rebuilds + 1")
    return _empty_log(connections)


def optimize(writer: sqlite3.Connection, table: str) -> None:
    """Merge the segments of a full-text index, so that deleted words are gone."""
    writer.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('optimize')")


def _empty_log(connections: Connections) -> bool:
    path = connections.path
    with (
        store_errors(path),
        contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection,
    ):
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
