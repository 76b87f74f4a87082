"""Work sessions, which group the records of the three kinds."""

import json
import sqlite3
from dataclasses import fields, replace

from memsvc.adapters.sqlite.labels import Sql, label_groups
from memsvc.adapters.sqlite.listing import count_selected, select_page
from memsvc.core.filters import Filter
from memsvc.core.ports.store import WorkEntry
from memsvc.core.records import Kind, WorkSession


def count_work_sessions(reader: sqlite3.Connection, selection: Filter) -> int:
    """How many work sessions have a record that the filter selects; without a filter, all."""
    counted = (
        reader.execute(f"SELECT count(*) FROM work_sessions AS w WHERE {condition}", values)
        for _, (condition, values) in _parts(selection)
    )
    return sum(int(row[0]) for rows in counted for row in rows)


def recent_work(
    reader: sqlite3.Connection, selection: Filter, *, limit: int, most: int
) -> list[WorkEntry]:
    """The selected work sessions, most recently active first, each with up to `most` selected
    records of each kind.
    """
    found = [
        row
        for (last, last_values), (condition, values) in _parts(selection)
        for row in reader.execute(
            f"""SELECT project_key, session_id, project, started_at_epoch, completed_at_epoch,
                    status, {last} AS last
                FROM work_sessions AS w WHERE {condition}
                ORDER BY last DESC, session_id DESC LIMIT ?""",
            (*last_values, *values, limit),
        )
    ]
    found.sort(key=lambda row: (row[-1], row[1]), reverse=True)
    return [_entry(reader, row, selection, most) for row in found[:limit]]


_LAST_WITHIN = """(SELECT max(l.created_at_epoch) FROM labels
    CROSS JOIN labelled AS l ON l.label = labels.id
    WHERE labels.kind IN (SELECT value FROM json_each(?)) AND field = 'work'
    AND value = w.project_key || char(10) || w.session_id AND l.created_at_epoch <= ?)"""


def _parts(selection: Filter) -> list[tuple[Sql, Sql]]:
    """When a selected work session was last worked on, and the condition that selects it.

    Those that go on after `until` stand apart, because for the others an index has the time.
    """
    if selection.until is None:
        return [(("last_at_epoch", []), selected_work(selection))]
    (before, values), (inside, inside_values) = (
        selected_work(replace(selection, until=None)),
        selected_work(selection),
    )
    last = _LAST_WITHIN, [json.dumps(list(Kind)), selection.until]
    return [
        (
            ("last_at_epoch", []),
            (f"w.last_at_epoch <= ? AND {before}", [selection.until, *values]),
        ),
        (last, (f"w.last_at_epoch > ? AND {inside}", [selection.until, *inside_values])),
    ]


def selected_work(selection: Filter) -> Sql:
    """A filter as an SQL condition on work sessions `w`, which know their own project."""
    projects = [values for field, values in selection.groups if field == "project"]
    terms = [_of_projects(values) for values in projects]
    if len(projects) < len(selection.groups) or (selection.since, selection.until) != (None, None):
        held = [_holds(kind, selection) for kind in Kind]
        terms.append(
            (f"({' OR '.join(sql for sql, _ in held)})", [v for _, vs in held for v in vs])
        )
    condition = " AND ".join(sql for sql, _ in terms)
    return condition or "TRUE", [value for _, of_term in terms for value in of_term]


def _of_projects(projects: tuple[str, ...]) -> Sql:
    keys = [project.casefold() for project in projects]
    if len(keys) == 1:  # with a plain comparison the index keeps its time order
        return "project_key = ?", list(keys)
    return "project_key IN (SELECT value FROM json_each(?))", [json.dumps(keys)]


def _holds(kind: Kind, selection: Filter) -> Sql:
    """The condition that a work session has a record of a kind with a label of every group."""
    sql = """EXISTS (SELECT 1 FROM labels CROSS JOIN labelled AS l ON l.label = labels.id
        WHERE labels.kind = ? AND field = 'work'
        AND value = w.project_key || char(10) || w.session_id"""
    values: list[object] = [kind]
    for label, label_values in label_groups(kind, selection):
        sql += f""" AND EXISTS (SELECT 1 FROM labelled AS o WHERE o.label {label}
            AND o.created_at_epoch = l.created_at_epoch AND o.record = l.record)"""
        values += label_values
    for sign, moment in ((">=", selection.since), ("<=", selection.until)):
        if moment is not None:
            sql += f" AND l.created_at_epoch {sign} ?"
            values.append(moment)
    return f"{sql})", values


def _entry(
    reader: sqlite3.Connection,
    row: tuple[str, str, str, int, int | None, str, int],
    selection: Filter,
    most: int,
) -> WorkEntry:
    key, session_id, project, started, completed, status, last = row
    session = WorkSession(
        session_id=session_id,
        project=project,
        started_at_epoch=started,
        completed_at_epoch=completed,
        status=status,
    )
    # the label of a work session says its project already
    others = tuple(group for group in selection.groups if group[0] != "project")
    inside = replace(selection, groups=(("work", (f"{key}\n{session_id}",)), *others))
    hits = {
        kind: select_page(reader, [kind], inside, newest_first=True, limit=most, offset=0)
        for kind in Kind
    }
    counts = {kind: count_selected(reader, kind, inside) for kind in Kind}
    return WorkEntry(session, last, hits, counts)


def all_work_sessions(reader: sqlite3.Connection) -> list[WorkSession]:
    """Every work session, by project and id."""
    rows = reader.execute(
        """SELECT session_id, project, started_at_epoch, completed_at_epoch, status, last_at_epoch
           FROM work_sessions ORDER BY project_key, session_id"""
    )
    names = [field.name for field in fields(WorkSession)]
    return [WorkSession(**dict(zip(names, row, strict=True))) for row in rows]


def rename_work_session(
    writer: sqlite3.Connection, before: WorkSession, after: WorkSession
) -> None:
    """Change the project and the id of a work session; one that has them already stays."""
    key = before.project.casefold(), before.session_id
    writer.execute(
        """UPDATE OR IGNORE work_sessions SET project_key = ?, project = ?, session_id = ?,
               status = ? WHERE project_key = ? AND session_id = ?""",
        (after.project.casefold(), after.project, after.session_id, after.status, *key),
    )
    if key != (after.project.casefold(), after.session_id):
        writer.execute("DELETE FROM work_sessions WHERE project_key = ? AND session_id = ?", key)
