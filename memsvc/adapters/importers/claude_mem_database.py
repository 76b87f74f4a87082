"""Reads the tables of a claude-mem database, whatever its version calls the columns.

Columns are looked up, never assumed: up to 8.2.5 the two ids of a session are called
`claude_session_id` and `sdk_session_id`, since then `content_session_id` and `memory_session_id`;
many other columns are missing in some versions.
"""

import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memsvc.core.errors import SourceUnreadable

SESSIONS: Final = "sdk_sessions"
OBSERVATIONS: Final = "observations"
_MEMORY_IDS: Final = ("memory_session_id", "sdk_session_id")
_PAGE: Final = 500

Row = dict[str, Any]


# -- opening --------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A claude-mem database, read-only. Raises SourceUnreadable, also for errors while it is read.

    The file is opened in place only if that leaves no traces beside it.
    """
    if not path.is_file():
        raise SourceUnreadable(
            f"There is no claude-mem database at {path}; give the path of a claude-mem.db, or set "
            "CLAUDE_MEM_DATA_DIR to its folder."
        )
    with (
        _explained_errors(path),
        _without_traces(path) as place,
        contextlib.closing(_open(place)) as connection,
    ):
        if not _columns(connection, OBSERVATIONS):
            raise SourceUnreadable(
                f"{path} is not a claude-mem database: it has no table observations."
            )
        yield connection


@contextlib.contextmanager
def _explained_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise SourceUnreadable(
            f"{path} cannot be read as a claude-mem database ({error}); what was imported so far "
            "stays."
        ) from error


@contextlib.contextmanager
def _without_traces(path: Path) -> Iterator[Path]:
    """The database to open: the file itself, or a copy if opening the file would leave traces.

    SQLite creates two files beside a database in WAL mode that nobody has open, and a read-only
    reader never removes them. If claude-mem starts while we copy, it creates the files itself, and
    opening the database adds nothing.
    """
    if not _is_wal(path) or _wal(path).exists():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="memsvc-") as folder:
        copy = Path(folder) / "copy.db"
        before = path.stat()
        shutil.copyfile(path, copy)
        after = path.stat()
        same = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
        yield copy if same and not _wal(path).exists() else path


def _is_wal(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\x02\x02"


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
    connection.text_factory = lambda cell: cell.decode("utf-8", "replace")
    return connection


# -- reading --------------------------------------------------------------------------------------


def count_rows(connection: sqlite3.Connection, table: str) -> int:
    """How many rows a table has; 0 if there is no such table."""
    if not _columns(connection, table):
        return 0
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def session_rows(connection: sqlite3.Connection) -> Iterator[Row]:
    """The sessions by id; none if the database has no table of them."""
    schema = _Schema.of(connection)
    if not schema.has_sessions:
        return
    sql = f"""SELECT {schema.content_id} AS session_id, project, started_at_epoch,
                 completed_at_epoch, status
              FROM {SESSIONS} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"""
    yield from _pages(connection, sql, _ids(connection, SESSIONS, "id"))


def record_rows(
    connection: sqlite3.Connection, table: str, columns: Sequence[str]
) -> Iterator[Row]:
    """A table's rows by time, so that the earliest of equal records is kept.

    Each has `id`, `created_at`, `created_at_epoch`, `session_id`, `project` and these columns; a
    column that the table lacks is None.
    """
    if _columns(connection, table):
        sql = _select(connection, table, columns)
        yield from _pages(connection, sql, _ids(connection, table, "created_at_epoch, id"))


def repeated_observations(
    connection: sqlite3.Connection, texts: Sequence[str]
) -> Iterator[tuple[int, object]]:
    """The ids and times of the observations that a runaway writer stored again and again.

    In newer databases, rows with the same `content_hash` are the same. In older ones, two rows with
    the same text may be two events, as two equal commits are; three or more copies are one.
    """
    there = _columns(connection, OBSERVATIONS)
    known = [name for name in texts if name in there]
    owner = next((name for name in _MEMORY_IDS if name in there), "NULL")
    hashed = "content_hash" if "content_hash" in there else "NULL"
    return connection.execute(
        f"""SELECT id, created_at_epoch FROM (
                SELECT id, created_at_epoch, {hashed} AS hash,
                    count(*) OVER (PARTITION BY {owner}, {hashed}) AS same_hash,
                    count(*) OVER (PARTITION BY {", ".join([owner, *known])}) AS same_text
                FROM {OBSERVATIONS})
            WHERE CASE WHEN hash IS NULL THEN same_text > 2 ELSE same_hash > 1 END"""
    )


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _ids(connection: sqlite3.Connection, table: str, order: str) -> list[int]:
    return [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY {order}")]


def _pages(connection: sqlite3.Connection, sql: str, ids: list[int]) -> Iterator[Row]:
    """The rows with these ids, a page at a time, so that claude-mem never waits for us."""
    for start in range(0, len(ids), _PAGE):
        cursor = connection.execute(sql, (json.dumps(ids[start : start + _PAGE]),))
        names = [column[0] for column in cursor.description]
        yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class _Schema:
    """What this version calls the two ids of a session, and whether it has a table of sessions."""

    content_id: str
    memory_id: str
    has_sessions: bool

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> "_Schema":
        there = _columns(connection, SESSIONS)
        newer = "memory_session_id" in _columns(connection, OBSERVATIONS)
        ids = ("content_session_id", "memory_session_id")
        old_ids = ("claude_session_id", "sdk_session_id")
        return cls(*(ids if newer else old_ids), has_sessions=bool(there))


def _select(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> str:
    there = _columns(connection, table)
    wanted = ("id", "created_at", "created_at_epoch", *columns)
    cells = [f"r.{name}" if name in there else f"NULL AS {name}" for name in wanted]
    owner, joins = _owner(_Schema.of(connection), there)
    return f"""SELECT {", ".join(cells)}, {owner}
               FROM {table} AS r {joins}
               WHERE r.id IN (SELECT value FROM json_each(?))
               ORDER BY r.created_at_epoch, r.id"""


def _owner(schema: _Schema, there: set[str]) -> tuple[str, str]:
    """The SQL for `session_id` and `project` of a row, and the joins it needs.

    A session has the id that the agent gave it; a row whose session is gone keeps its own. In newer
    databases a row says if its worktree was merged into another project.
    """
    project = "r.project" if "project" in there else "s.project"
    if "merged_into_project" in there:
        project = f"coalesce(nullif(r.merged_into_project, ''), {project})"
    key = schema.content_id if schema.content_id in there else schema.memory_id
    if not schema.has_sessions:
        project = project if "project" in there else "NULL"
        return f"r.{key} AS session_id, {project} AS project", ""
    session = f"""LEFT JOIN (SELECT {key} AS key, max(id) AS id FROM {SESSIONS} GROUP BY 1)
                  AS found ON found.key = r.{key}
                  LEFT JOIN {SESSIONS} AS s ON s.id = {_session_row(there)}"""
    return f"coalesce(s.{schema.content_id}, r.{key}) AS session_id, {project} AS project", session


def _session_row(there: set[str]) -> str:
    return "coalesce(r.session_db_id, found.id)" if "session_db_id" in there else "found.id"
