"""Migrates the schema: each *.sql file here is one step, applied in one transaction."""

import sqlite3
from collections.abc import Iterator
from importlib import resources
from typing import Final

from memsvc.adapters.sqlite.connections import immediate
from memsvc.core.errors import StoreDamaged, StoreTooNew

APPLICATION_ID: Final = 0x6D656D73
""""mems": distinguishes our files from those of other programs."""

_FOLDER: Final = resources.files(__package__)
_FILES: Final = sorted(file.name for file in _FOLDER.iterdir() if file.name.endswith(".sql"))
STEPS: Final = tuple(name.removesuffix(".sql") for name in _FILES)
"""The names of the steps, in order; their numbers count up from 001."""


def migrate(connection: sqlite3.Connection) -> list[str]:
    """Migrate a store and return the steps that ran; a failed step leaves no trace.

    Raises StoreDamaged for another program's database, StoreTooNew for one from a newer memsvc.
    """
    check_owner(connection)
    return [step for step in pending(connection) if _apply(connection, step)]


def pending(connection: sqlite3.Connection) -> list[str]:
    """The steps that still have to run, in order."""
    return list(STEPS[_version(connection) :])


def check_owner(connection: sqlite3.Connection) -> None:
    """Raise unless the store is empty, or ours and not from a newer version."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    # read after the tables: whoever has just made them has marked them as ours in the same step
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if tables and owner != APPLICATION_ID:
        raise StoreDamaged("This file belongs to another program; nothing was changed.")
    if _version(connection) > len(STEPS):
        raise StoreTooNew(
            f"This store was written by a newer memsvc (schema {_version(connection)}, known up to "
            f"{len(STEPS)}); nothing was changed. Upgrade memsvc: pip install --upgrade memsvc"
        )


def statements(script: str) -> Iterator[str]:
    """The statements of an SQL script, one by one; a trigger is one statement."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _apply(connection: sqlite3.Connection, step: str) -> bool:
    script = _FOLDER.joinpath(f"{step}.sql").read_text("utf-8")
    with immediate(connection):
        if step not in pending(connection):  # another process was faster
            return False
        for statement in statements(script):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {STEPS.index(step) + 1}")
    return True
