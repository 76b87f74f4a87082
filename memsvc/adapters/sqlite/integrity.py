"""What is wrong with a store's file, and a full-text index made anew from the rows."""

import sqlite3
from collections.abc import Iterator

from memsvc.core.records import SHAPES, Kind


def problems(connection: sqlite3.Connection) -> Iterator[str]:
    """What SQLite's own check finds wrong with the file, each in SQLite's words.

    It reads every page, which takes seconds for each gigabyte; damage may break it off.
    """
    try:
        for (finding,) in connection.execute("PRAGMA integrity_check"):
            if finding != "ok":
                yield str(finding).strip()
    except sqlite3.DatabaseError as error:
        yield str(error)


def table_problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Damaged pages, table by table, so that no long read holds up the log: each with its table."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    ).fetchall()
    for (table,) in tables:
        try:
            (finding,) = connection.execute(f'PRAGMA quick_check("{table}")').fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                return
            finding = str(error)
        if finding != "ok":
            yield f"table {table}: {' '.join(str(finding).split())[:200]}"


def fulltext_problems(connection: sqlite3.Connection, kind: Kind) -> str:
    """What is wrong with the full-text index of a kind, compared with every row; empty if nothing.

    The connection must be able to write, though nothing is written.
    """
    index = f"{SHAPES[kind].table}_fts"
    try:
        connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return str(error)
    return ""


def rebuild_fulltext(connection: sqlite3.Connection, kind: Kind) -> None:
    """Make the full-text index of a kind anew from its rows."""
    index = f"{SHAPES[kind].table}_fts"
    connection.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")
