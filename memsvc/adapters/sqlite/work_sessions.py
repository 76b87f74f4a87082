"""Work sessions, which group the records of the three kinds."""

import json
import sqlite3
from dataclasses import replace

from memsvc.adapters.sqlite.labels import Sql, label_groups
from memsvc.adapters.sqlite.listing import count_selected, select_page
from memsvc.core.filters import Filter
from memsvc.core.ports.store import WorkEntry
from memsvc.core.records import Kind, WorkSession


def count_work_sessions(reader: sqlite3.Connection, selection: Filter) -> int:
    """How many work sessions have a record that the filter selects; without a filter, all."""
    condition, values = selected_work(selection)
    sql = f"SELECT count(*) FROM work_sessions AS w WHERE {condition}"
    return int(reader.execute(sql, values).fetchone()[0])


def recent_work(
    reader: sqlite3.Connection, selection: Filter, *, limit: int, most: int
) -> list[WorkEntry]:
    """The selected work sessions, most recently active first, each with up to `most` selected
    records of each kind.
    """
    condition, values = selected_work(selection)
    rows = reader.execute(
        f"""SELECT project_key, session_id, project, started_at_epoch, completed_at_epoch, status,
                last_at_epoch
            FROM work_sessions AS w WHERE {condition}
            ORDER BY last_at_epoch DESC, session_id DESC LIMIT ?""",
        (*values, limit),
    )
    return [_entry(reader, row, selection, most) for row in rows.fetchall()]


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
