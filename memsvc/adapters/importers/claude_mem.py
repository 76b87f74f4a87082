"""The database of claude-mem, in both generations of its schema, read without touching it.

Columns are looked up, never assumed: up to 8.2.5 a session's two ids are called
`claude_session_id` and `sdk_session_id`, since then `content_session_id` and `memory_session_id`,
and much of the rest is missing in one version or another. A row is known by its id and its time,
which an upgrade of claude-mem keeps: imported again it is the same memory, brought up to date. The
time tells rows of two databases apart, say of two machines, which both count from 1.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memsvc.core.dates import parse_date
from memsvc.core.errors import SourceUnreadable
from memsvc.core.ports.sources import Counter, Item, LeftOut, Reading, Refused
from memsvc.core.records import Observation, Prompt, Record, Summary, WorkSession
from memsvc.schemas.records import clean_text, decode_list

SOURCE: Final = "claude-mem"
INTERNAL_PROJECTS: Final = ("", "observer-sessions")
ANY_TIME: Final = 2**53
ECHO: Final = 60_000  # ms: a prompt may well be given twice ("continue"), but not within a minute
_MEMORY_IDS: Final = ("memory_session_id", "sdk_session_id")
_OBSERVATION_TEXTS: Final = (
    *("type", "title", "subtitle", "narrative", "text"),
    *("facts", "concepts", "files_read", "files_modified"),
)
_PAGE = 500
_LONGEST_TITLE = 100
_LAST_EPOCH = 253_402_300_799_999

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Table:
    """How a table of claude-mem becomes records: the columns wanted, how a row is read."""

    name: str
    word: str
    columns: tuple[str, ...]
    record: Callable[[Row], Record]


def default_database() -> Path:
    """Where claude-mem keeps its database on this machine."""
    folder = os.environ.get("CLAUDE_MEM_DATA_DIR")
    return (Path(folder) if folder else Path.home() / ".claude-mem") / "claude-mem.db"


def read_claude_mem(path: Path | None = None) -> Reading:
    """Read a claude-mem database, by default this machine's; it is opened read-only.

    Raises SourceUnreadable if there is none, or if the file is something else.
    """
    path = path or default_database()
    counter = Counter()
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(_database(path))
        total = sum(_count(connection, name) for name in (_SESSIONS, *(t.name for t in _TABLES)))
        window = _merge_window(_repeated(connection))
        items = _read(connection, counter, closing=stack.pop_all())
    return Reading(str(path), items, "rows", total, counter.position, window)


def _merge_window(repeated: frozenset[str]) -> Callable[[Record], int | None]:
    def window(record: Record) -> int | None:
        if isinstance(record, Observation):
            return ANY_TIME if record.source_id in repeated else None
        return ECHO if isinstance(record, Prompt) else ANY_TIME

    return window


def _repeated(connection: sqlite3.Connection) -> frozenset[str]:
    """The ids of the observations that a runaway writer stored again and again.

    Newer databases tell by `content_hash` which rows are the same. In older ones two rows with the
    same text may be two events, as two equal commits are; from the third copy on they are one.
    """
    there = _columns(connection, "observations")
    said = [name for name in _OBSERVATION_TEXTS if name in there]
    owner = next((name for name in _MEMORY_IDS if name in there), "NULL")
    hashed = "content_hash" if "content_hash" in there else "NULL"
    rows = connection.execute(
        f"""SELECT id, created_at_epoch FROM (
                SELECT id, created_at_epoch, {hashed} AS hash,
                    count(*) OVER (PARTITION BY {owner}, {hashed}) AS same_hash,
                    count(*) OVER (PARTITION BY {", ".join([owner, *said])}) AS same_text
                FROM observations)
            WHERE CASE WHEN hash IS NULL THEN same_text > 2 ELSE same_hash > 1 END"""
    )
    return frozenset(f"observation-{id}-{epoch}" for id, epoch in rows)


@contextlib.contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise SourceUnreadable(
            f"There is no claude-mem database {path}; give the path of a claude-mem.db or set "
            "CLAUDE_MEM_DATA_DIR to its folder."
        )
    with _explained(path), _resting(path) as place, contextlib.closing(_open(place)) as connection:
        if not _columns(connection, "observations"):
            raise SourceUnreadable(
                f"{path} is not a claude-mem database: it has no table observations."
            )
        yield connection


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise SourceUnreadable(
            f"{path} cannot be read as a claude-mem database ({error}); what was imported before "
            "this place stays."
        ) from error


@contextlib.contextmanager
def _resting(path: Path) -> Iterator[Path]:
    """The database to open: the file itself, or a copy of it where opening would leave traces.

    SQLite makes two files beside a database in WAL mode that nobody has open, and a read-only
    reader never removes them. If the owner starts while we copy, the files are theirs, and
    opening the database itself adds nothing.
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


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _count(connection: sqlite3.Connection, table: str) -> int:
    if not _columns(connection, table):
        return 0
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _read(
    connection: sqlite3.Connection, counter: Counter, closing: contextlib.ExitStack
) -> Iterator[Item]:
    with closing:
        schema = _Schema.of(connection)
        yield from _read_sessions(connection, schema, counter)
        for table in _TABLES:
            if _columns(connection, table.name):
                yield from _read_table(connection, schema, table, counter)


@dataclass(frozen=True, slots=True)
class _Schema:
    """What this generation of the schema calls the two ids of a session, if it knows sessions."""

    content_id: str
    memory_id: str
    has_sessions: bool

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> "_Schema":
        there = _columns(connection, _SESSIONS)
        newer = "memory_session_id" in _columns(connection, "observations")
        ids = ("content_session_id", "memory_session_id")
        old_ids = ("claude_session_id", "sdk_session_id")
        return cls(*(ids if newer else old_ids), has_sessions=bool(there))


def _read_sessions(
    connection: sqlite3.Connection, schema: _Schema, counter: Counter
) -> Iterator[Item]:
    if not schema.has_sessions:
        return
    sql = f"""SELECT {schema.content_id} AS session_id, project, started_at_epoch,
                 completed_at_epoch, status
              FROM sdk_sessions WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"""
    ids = [row[0] for row in connection.execute("SELECT id FROM sdk_sessions ORDER BY id")]
    for row in _rows(connection, sql, ids):
        counter.done += 1
        started = _moment(row, "started_at_epoch")
        if row["session_id"] and started is not None and row["project"] not in INTERNAL_PROJECTS:
            yield _work_session(row, started)


def _work_session(row: Row, started: int) -> WorkSession:
    return WorkSession(
        session_id=_text(row["session_id"]),
        project=_text(row["project"]),
        started_at_epoch=started,
        completed_at_epoch=_moment(row, "completed_at_epoch"),
        status=_text(row["status"]) or "unknown",
    )


def _read_table(
    connection: sqlite3.Connection, schema: _Schema, table: _Table, counter: Counter
) -> Iterator[Item]:
    """The records of a table in the order of time, so that of equal ones the earliest is kept.

    The ids are read first and then a page of rows at a time: no page keeps the owner waiting.
    """
    order = "created_at_epoch, id"
    ids = [row[0] for row in connection.execute(f"SELECT id FROM {table.name} ORDER BY {order}")]
    for row in _rows(connection, _select(connection, schema, table), ids):
        counter.done += 1
        yield _read_row(table, row)


def _rows(connection: sqlite3.Connection, sql: str, ids: list[int]) -> Iterator[Row]:
    for start in range(0, len(ids), _PAGE):
        cursor = connection.execute(sql, (json.dumps(ids[start : start + _PAGE]),))
        names = [column[0] for column in cursor.description]
        yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())


def _select(connection: sqlite3.Connection, schema: _Schema, table: _Table) -> str:
    there = _columns(connection, table.name)
    wanted = ("id", "created_at", "created_at_epoch", *table.columns)
    cells = [f"r.{name}" if name in there else f"NULL AS {name}" for name in wanted]
    owner, joins = _owner(schema, table, there)
    return f"""SELECT {", ".join(cells)}, {owner}
               FROM {table.name} AS r {joins}
               WHERE r.id IN (SELECT value FROM json_each(?))
               ORDER BY r.created_at_epoch, r.id"""


def _owner(schema: _Schema, table: _Table, there: set[str]) -> tuple[str, str]:
    """The cells `session_id` and `project` of a row, and the joins that find them.

    A session goes by the id that the agent itself gave it; a row whose session is gone keeps the
    id it has. Newer databases say of a row that its worktree was merged into another project.
    """
    project = "r.project" if "project" in there else "s.project"
    if "merged_into_project" in there:
        project = f"coalesce(nullif(r.merged_into_project, ''), {project})"
    key = schema.content_id if schema.content_id in there else schema.memory_id
    if not schema.has_sessions:
        project = project if "project" in there else "NULL"
        return f"r.{key} AS session_id, {project} AS project", ""
    session = f"""LEFT JOIN (SELECT {key} AS key, max(id) AS id FROM sdk_sessions GROUP BY 1)
                  AS found ON found.key = r.{key}
                  LEFT JOIN sdk_sessions AS s ON s.id = {_session_row(there)}"""
    return f"coalesce(s.{schema.content_id}, r.{key}) AS session_id, {project} AS project", session


def _session_row(there: set[str]) -> str:
    return "coalesce(r.session_db_id, found.id)" if "session_db_id" in there else "found.id"


def _read_row(table: _Table, row: Row) -> Item:
    place = f"{table.word} {row['id']}"
    if row["project"] in INTERNAL_PROJECTS:
        return LeftOut(f"internal to claude-mem (project {row['project']!r})")
    if _moment(row, "created_at_epoch") is None:
        return Refused(place, "has no date that can be read")
    try:
        return table.record(row)
    except _SaysNothing:
        return Refused(place, "holds no text")


class _SaysNothing(Exception):
    """A row without any text."""


def _common(row: Row, word: str) -> Row:
    epoch = _moment(row, "created_at_epoch") or 0
    return {
        "project": _text(row["project"]),
        "session_id": _text(row["session_id"]),
        "created_at_epoch": epoch,
        "source": SOURCE,
        "source_id": f"{word}-{row['id']}-{epoch}",
    }


def _observation(row: Row) -> Observation:
    narrative = _text(row["narrative"]) or _text(row["text"])
    title = _text(row["title"]) or _first_line(narrative or _text(row["subtitle"]))
    facts = _list(row["facts"])
    if not (title or facts):
        raise _SaysNothing
    return Observation(
        **_common(row, "observation"),
        type=_text(row["type"]).strip() or "discovery",
        title=title,
        subtitle=_text(row["subtitle"]),
        narrative=narrative,
        facts=facts,
        concepts=_list(row["concepts"]),
        files_read=_list(row["files_read"]),
        files_modified=_list(row["files_modified"]),
        prompt_number=_whole(row["prompt_number"]),
        discovery_tokens=_whole(row["discovery_tokens"]) or 0,
    )


_SUMMARY_TEXTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _summary(row: Row) -> Summary:
    texts: Row = {name: _text(row[name]) for name in _SUMMARY_TEXTS}
    if not any(texts.values()):
        raise _SaysNothing
    files: Row = {name: _list(row[name]) for name in ("files_read", "files_edited")}
    return Summary(**_common(row, "summary"), **texts, **files)


def _prompt(row: Row) -> Prompt:
    text = _text(row["prompt_text"])
    if not text.strip():
        raise _SaysNothing
    number = _whole(row["prompt_number"])
    return Prompt(**_common(row, "prompt"), prompt_text=text, prompt_number=number)


def _text(cell: object) -> str:
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    return "" if cell is None else clean_text(str(cell))


def _whole(cell: object) -> int | None:
    return cell if isinstance(cell, int) and cell >= 0 else None


def _list(cell: object) -> tuple[str, ...]:
    """The items of a list cell; a cell that is no list is one item, as it stands."""
    text = _text(cell).strip()
    items = [] if text == "null" else decode_list(text)
    texts = (_item(item).strip() for item in items if item is not None)
    return tuple(text for text in texts if text)


def _item(item: object) -> str:
    return clean_text(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False))


def _first_line(text: str) -> str:
    lines = (line.strip(" \t#*->") for line in text.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1].rstrip()}…"


def _moment(row: Row, name: str) -> int | None:
    """The epoch of a row; the date written beside it counts only where there is none."""
    epoch = row[name]
    if isinstance(epoch, int | float) and 0 < epoch <= _LAST_EPOCH:
        return int(epoch)
    try:
        return parse_date(_text(row.get(name.removesuffix("_epoch"))), 0)
    except ValueError:
        return None


_SESSIONS: Final = "sdk_sessions"
_TABLES: Final = (
    _Table(
        "observations",
        "observation",
        (*_OBSERVATION_TEXTS, "prompt_number", "discovery_tokens"),
        _observation,
    ),
    _Table(
        "session_summaries", "summary", (*_SUMMARY_TEXTS, "files_read", "files_edited"), _summary
    ),
    _Table("user_prompts", "prompt", ("prompt_text", "prompt_number"), _prompt),
)
