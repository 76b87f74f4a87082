"""Work sessions: the stretches of work that group the three kinds."""

import json
import sqlite3

from memsvc.core.ports.store import Hit, WorkEntry
from memsvc.core.records import Kind, Ref, WorkSession


def count_work_sessions(reader: sqlite3.Connection, projects: tuple[str, ...]) -> int:
    """How many work sessions these projects have; no project means all."""
    condition, values = _of_projects(projects)
    sql = f"SELECT count(*) FROM work_sessions WHERE {condition}"
    return int(reader.execute(sql, values).fetchone()[0])


def recent_work(
    reader: sqlite3.Connection, projects: tuple[str, ...], *, limit: int, most: int
) -> list[WorkEntry]:
    """The work sessions last worked on, newest first, with up to `most` records of each kind."""
    condition, values = _of_projects(projects)
    rows = reader.execute(
        f"""SELECT project_key, session_id, project, started_at_epoch, completed_at_epoch, status,
                last_at_epoch
            FROM work_sessions WHERE {condition}
            ORDER BY last_at_epoch DESC, session_id DESC LIMIT ?""",
        (*values, limit),
    )
    return [_entry(reader, row, most) for row in rows.fetchall()]


def _of_projects(projects: tuple[str, ...]) -> tuple[str, list[str]]:
    if not projects:
        return "TRUE", []
    keys = [project.casefold() for project in projects]
    if len(keys) == 1:  # a plain comparison keeps the index's order of time
        return "project_key = ?", keys
    return "project_key IN (SELECT value FROM json_each(?))", [json.dumps(keys)]


def _entry(
    reader: sqlite3.Connection, row: tuple[str, str, str, int, int | None, str, int], most: int
) -> WorkEntry:
    key, session_id, project, started, completed, status, last = row
    session = WorkSession(
        session_id=session_id,
        project=project,
        started_at_epoch=started,
        completed_at_epoch=completed,
        status=status,
    )
    labels = {kind: _work_label(reader, kind, f"{key}\n{session_id}") for kind in Kind}
    return WorkEntry(
        session,
        last,
        {kind: _hits(reader, kind, label, most) for kind, label in labels.items()},
        {kind: _size(reader, label) for kind, label in labels.items()},
    )


def _work_label(reader: sqlite3.Connection, kind: Kind, value: str) -> int:
    sql = "SELECT id FROM labels WHERE kind = ? AND field = 'work' AND value = ?"
    row = reader.execute(sql, (kind, value)).fetchone()
    return int(row[0]) if row else 0


def _hits(reader: sqlite3.Connection, kind: Kind, label: int, most: int) -> list[Hit]:
    rows = reader.execute(
        """SELECT record, created_at_epoch FROM labelled WHERE label = ?
           ORDER BY created_at_epoch DESC, record DESC LIMIT ?""",
        (label, most),
    )
    return [Hit(Ref(kind, id), epoch) for id, epoch in rows]


def _size(reader: sqlite3.Connection, label: int) -> int:
    sql = "SELECT count(*) FROM labelled WHERE label = ?"
    return int(reader.execute(sql, (label,)).fetchone()[0])
