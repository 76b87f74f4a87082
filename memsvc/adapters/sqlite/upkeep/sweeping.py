"""Leaves nothing in the file of what was removed from it."""

import sqlite3

from memsvc.adapters.sqlite.connections import Connections
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
    return connections.empty_wal()


def optimize(writer: sqlite3.Connection, table: str) -> None:
    """Merge the segments of a full-text index, so that deleted words are gone."""
    writer.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('optimize')")
