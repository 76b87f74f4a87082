"""Leaves nothing in the file of what was removed from it."""

import sqlite3
from typing import Final

from memsvc.adapters.sqlite.connections import Connections
from memsvc.core.records import SHAPES

MAX_LEVELS: Final = 1_000
"""Each `optimize` adds one or two levels to an index, and SQLite before 3.42 takes one of more than
2,000 for damaged.
"""

NEWER_STRUCTURE: Final = b"\xff\x00\x00\x01"
"""How the structure begins in versions that have few levels."""


def sweep(connections: Connections) -> bool:
    """Remove what is left of removed records; False if readers kept the log from being emptied.

    Deleted words stay in a full-text index until its segments are merged, copies of moved texts
    until the file is compacted, and old pages in the log until it is emptied. Indexes beside the
    file are asked to rebuild.
    """
    for shape in SHAPES.values():  # one at a time, so that other writers come in between
        with connections.transaction() as writer:
            optimize(writer, shape.table)
    with connections.transaction() as writer:
        writer.execute("UPDATE semantic SET rebuilds = rebuilds + 1")
    connections.compact()
    return connections.empty_wal()


def optimize(writer: sqlite3.Connection, table: str) -> None:
    """Merge the segments of a full-text index, so that deleted words are gone."""
    writer.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('optimize')")


def is_worn(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a full-text index has been optimized so often that it should be rebuilt."""
    return _levels(connection, table) >= MAX_LEVELS


def _levels(connection: sqlite3.Connection, table: str) -> int:
    """The levels of an index, as the record of its structure says (`fts5_index.c` of SQLite)."""
    sql = f"SELECT block FROM {table}_fts_data WHERE id = 10"
    (block,) = connection.execute(sql).fetchone() or (b"",)
    if block[4:8] == NEWER_STRUCTURE:
        return 0
    levels = 0
    for byte in block[4:]:
        levels = levels << 7 | byte & 127
        if byte < 128:
            break
    return levels
