"""The schema, step by step. Each step and the record of it are one transaction."""

import sqlite3
from collections.abc import Iterator
from importlib import resources

from memsvc.adapters.sqlite.connections import immediate
from memsvc.core.errors import StoreDamaged, StoreTooNew

APPLICATION_ID = 0x6D656D73  # "mems": tells our file from anyone else's
STEPS = ("001_records", "002_forgotten", "003_vectors", "004_costs")


def migrate(connection: sqlite3.Connection) -> list[str]:
    """Bring a store up to date and name the steps that ran; a failed step leaves no trace.

    Raises StoreDamaged for somebody else's database, StoreTooNew for one from a newer memsvc.
    """
    check_owner(connection)
    return [step for step in pending(connection) if _apply(connection, step)]


def pending(connection: sqlite3.Connection) -> list[str]:
    """The steps that a store still lacks, in order."""
    return list(STEPS[_version(connection) :])


def check_owner(connection: sqlite3.Connection) -> None:
    """Raise unless the store is empty or ours, and not from a newer version."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and owner != APPLICATION_ID:
        raise StoreDamaged("This file is a database of another program; nothing was changed.")
    if _version(connection) > len(STEPS):
        raise StoreTooNew(
            f"This store was written by a newer memsvc (schema {_version(connection)}, known up to "
            f"{len(STEPS)}); nothing was changed. Upgrade memsvc: pip install --upgrade memsvc"
        )


def statements(script: str) -> Iterator[str]:
    """The single statements of a SQL script; triggers count as one."""
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
    script = resources.files(__package__).joinpath(f"{step}.sql").read_text("utf-8")
    with immediate(connection):
        if step not in pending(connection):  # another process was quicker
            return False
        for statement in statements(script):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {STEPS.index(step) + 1}")
    return True
