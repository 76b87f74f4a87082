"""Makes full-text indexes anew that are missing or broken, as the steps of the schema have them."""

import contextlib
import logging
import sqlite3
from collections.abc import Iterable
from typing import Final

from memsvc.adapters.sqlite.connections import immediate
from memsvc.adapters.sqlite.integrity import rebuild_fulltext
from memsvc.adapters.sqlite.schema import migrations
from memsvc.core.records import SHAPES, Kind

PARTS: Final = ("_text", "_fts", "_vocab", "_ai", "_ad", "_au")
"""The view, the index, its vocabulary and the triggers, each named after its table."""

SHADOWS: Final = ("data", "idx", "docsize", "config")
"""The tables that FTS5 keeps an index in."""

_log = logging.getLogger("memsvc")


def mend_fulltext(connection: sqlite3.Connection) -> list[Kind]:
    """Rebuild the full-text indexes that need it, and say which; a failed run leaves no trace."""
    suspected = connection.execute("SELECT reason FROM broken WHERE part = 'fulltext'").fetchone()
    faults = {kind: _fault(connection, kind, thorough=bool(suspected)) for kind in Kind}
    broken = [kind for kind, fault in faults.items() if fault]
    if not (broken or suspected):
        return []
    with immediate(connection):
        for kind in broken:
            table = SHAPES[kind].table
            _log.warning("the full text of %s is rebuilt: %s", table, faults[kind])
            _drop(connection, table)
            _create(connection, {f"{table}{part}" for part in PARTS})
            rebuild_fulltext(connection, kind)
        connection.execute("DELETE FROM broken WHERE part = 'fulltext'")
    return broken


def _fault(connection: sqlite3.Connection, kind: Kind, *, thorough: bool) -> str:
    """Why the index of a kind must be rebuilt, found in milliseconds; empty if it need not."""
    table = SHAPES[kind].table
    sql = "SELECT name FROM sqlite_master WHERE tbl_name = ? OR name LIKE ?"
    held = {name for (name,) in connection.execute(sql, (table, f"{table}%"))}
    if missing := [f"{table}{part}" for part in PARTS if f"{table}{part}" not in held]:
        return f"{', '.join(missing)} missing"
    try:
        if thorough:
            connection.execute(f"INSERT INTO {table}_fts ({table}_fts) VALUES ('integrity-check')")
        return _unlike_rows(connection, table)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT:  # pages, which no rebuild mends
            raise
        return str(error)


def _unlike_rows(connection: sqlite3.Connection, table: str) -> str:
    """How an index differs from its rows, by their number and by the first and the last of them."""
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    (indexed,) = connection.execute(f"SELECT count(*) FROM {table}_fts_docsize").fetchone()
    if rows != indexed:
        return f"{indexed:,} of {rows:,} records in it"
    ends = connection.execute(
        f"""SELECT id, tags FROM {table} WHERE id IN
            ((SELECT min(id) FROM {table}), (SELECT max(id) FROM {table}))"""
    )
    for id, tags in ends.fetchall():
        if not _finds(connection, table, id, tags.split()):
            return f"record {id} is not found"
    return ""


def _finds(connection: sqlite3.Connection, table: str, id: int, tags: list[str]) -> bool:
    sql = f"SELECT 1 FROM {table}_fts WHERE {table}_fts MATCH ? AND rowid = ?"
    return all(connection.execute(sql, (f'tags : "{tag}"', id)).fetchone() for tag in tags)


def _drop(connection: sqlite3.Connection, table: str) -> None:
    """Remove all parts of an index, also one that FTS5 cannot open any more."""
    for part in ("_ai", "_ad", "_au"):
        connection.execute(f"DROP TRIGGER IF EXISTS {table}{part}")
    connection.execute(f"DROP TABLE IF EXISTS {table}_vocab")
    with contextlib.suppress(sqlite3.DatabaseError):
        connection.execute(f"DROP TABLE IF EXISTS {table}_fts")
    if _exists(connection, f"{table}_fts"):
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = ?", (f"{table}_fts",))
        connection.execute("PRAGMA writable_schema = RESET")
    for shadow in SHADOWS:
        connection.execute(f"DROP TABLE IF EXISTS {table}_fts_{shadow}")
    connection.execute(f"DROP VIEW IF EXISTS {table}_text")


def _exists(connection: sqlite3.Connection, name: str) -> bool:
    sql = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(sql, (name,)).fetchone() is not None


def _create(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    """Make these parts of the schema, as all its steps together make them."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrations.migrate(model)
        wanted = model.execute("SELECT name, sql FROM sqlite_master ORDER BY rowid").fetchall()
    for name, sql in wanted:
        if name in names:
            connection.execute(sql)
