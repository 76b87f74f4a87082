"""Stores as earlier versions left them."""

import contextlib
import sqlite3
from pathlib import Path

from memsvc.adapters.sqlite.schema import migrations

_SCHEMA = "SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL"
_VIEWS = "SELECT name, sql FROM sqlite_master WHERE type = 'view'"
_COLUMNS = """SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
    WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%'"""


def first_schema(path: Path, step_count: int) -> None:
    """Make an empty store as the first steps leave it."""
    with _raw(path) as connection:
        for step in migrations.STEPS[:step_count]:
            assert migrations._apply(connection, step)


def bring_back(path: Path, step_count: int) -> None:
    """Leave of a store's schema what the first steps make; the rows stay."""
    first = path.with_name(f"first-{step_count}.db")
    first_schema(first, step_count)
    with _raw(first) as known, _raw(path) as connection:
        later = set(connection.execute(_SCHEMA)) - set(known.execute(_SCHEMA))
        for kind, name in later:
            connection.execute(f"DROP {kind} IF EXISTS {name}")
        _bring_back_columns(connection, known)
        connection.execute(f"PRAGMA user_version = {step_count}")


def _bring_back_columns(connection: sqlite3.Connection, known: sqlite3.Connection) -> None:
    """Bring back the views that later steps changed, and drop the columns that they added."""
    for name, _ in connection.execute(_VIEWS).fetchall():
        connection.execute(f"DROP VIEW {name}")
    for _, sql in known.execute(_VIEWS):
        connection.execute(sql)
    tables = {name for name, _ in known.execute(_COLUMNS)}
    for table, column in set(connection.execute(_COLUMNS)) - set(known.execute(_COLUMNS)):
        if table in tables:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


def _raw(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))
