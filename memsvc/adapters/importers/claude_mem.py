"""Reads claude-mem databases, old and new schema, without changing them.

A row is identified by its id and its time, which an upgrade of claude-mem keeps: imported again, it
updates the same record. The time distinguishes the rows of two databases, such as those of two
machines, which both count from 1.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from memsvc.adapters.importers.claude_mem_database import (
    SESSIONS,
    count_rows,
    open_database,
    record_rows,
    repeated_observations,
    session_rows,
)
from memsvc.adapters.importers.claude_mem_rows import (
    OBSERVATION_TEXTS,
    TABLES,
    read_record,
    read_session,
    source_id,
)
from memsvc.core.ports.sources import Counter, Item, Reading
from memsvc.core.records import Observation, Prompt, Record

FOREVER_MS: Final = 2**53
"""A merge window (ms) that covers all times."""

PROMPT_MERGE_MS: Final = 60_000
"""Nobody repeats a prompt on purpose within this many ms; "continue" may well come again later."""


def default_database() -> Path:
    """Where claude-mem keeps its database on this machine."""
    folder = os.environ.get("CLAUDE_MEM_DATA_DIR")
    return (Path(folder) if folder else Path.home() / ".claude-mem") / "claude-mem.db"


def read_claude_mem(path: Path | None = None) -> Reading:
    """Read a claude-mem database, by default the one of this machine; it is opened read-only.

    Raises SourceUnreadable if the file is missing or is not a claude-mem database.
    """
    path = path or default_database()
    counter = Counter()
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(open_database(path))
        total = sum(count_rows(connection, name) for name in (SESSIONS, *(t.name for t in TABLES)))
        window = _merge_window(connection)
        items = _read(connection, counter, closing=stack.pop_all())
    return Reading(str(path), items, "rows", total, counter.position, window)


def _merge_window(connection: sqlite3.Connection) -> Callable[[Record], int | None]:
    repeated = frozenset(
        source_id("observation", id, epoch)
        for id, epoch in repeated_observations(connection, OBSERVATION_TEXTS)
    )

    def window(record: Record) -> int | None:
        if isinstance(record, Observation):
            return FOREVER_MS if record.source_id in repeated else None
        return PROMPT_MERGE_MS if isinstance(record, Prompt) else FOREVER_MS

    return window


def _read(
    connection: sqlite3.Connection, counter: Counter, closing: contextlib.ExitStack
) -> Iterator[Item]:
    with closing:
        for row in session_rows(connection):
            counter.done += 1
            if session := read_session(row):
                yield session
        for table in TABLES:
            for row in record_rows(connection, table.name, table.columns):
                counter.done += 1
                yield read_record(table, row)
