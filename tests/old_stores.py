"""Stores as earlier versions left them."""

import contextlib
import sqlite3
from pathlib import Path

from memsvc.adapters.sqlite.schema import migrations

_SCHEMA = "SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL"


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
        connection.execute(f"PRAGMA user_version = {step_count}")


def _raw(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))
