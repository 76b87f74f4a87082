"""Statistics of the store: counts by project, kind, type, concept and day, and economics."""

import sqlite3

from memsvc.core.dates import local_day
from memsvc.core.economics import Discovery, Economics, discovery_cost
from memsvc.core.ports.store import Project
from memsvc.core.records import SHAPES, Kind


def count_values(reader: sqlite3.Connection, kind: Kind, field: str) -> dict[str, int]:
    """How many records of a kind have each value of a field, most frequent first."""
    rows = reader.execute(
        """SELECT name, (SELECT count(*) FROM labelled WHERE label = labels.id) AS count
           FROM labels WHERE kind = ? AND field = ? AND count > 0 ORDER BY count DESC, name""",
        (kind, field),
    )
    return dict(rows.fetchall())


def list_projects(reader: sqlite3.Connection, until: int | None) -> list[Project]:
    """All projects, most recently active first; what is dated after `until` is no activity."""
    found: dict[str, Project] = {}
    active: dict[str, bool] = {}
    for kind in Kind:
        for key, name, count, last, is_active in _project_rows(reader, kind, until):
            known = found.setdefault(key, Project(name, dict.fromkeys(Kind, 0), last))
            known.counts[kind] = count
            latest = max((active.get(key, False), known.last_at_epoch), (is_active, last))
            active[key] = bool(latest[0])
            found[key] = Project(known.name, known.counts, latest[1])
    ordered = sorted(found, key=lambda key: (not active[key], -found[key].last_at_epoch, key))
    return [found[key] for key in ordered]


def _project_rows(
    reader: sqlite3.Connection, kind: Kind, until: int | None
) -> list[tuple[str, str, int, int, bool]]:
    """For each project its key, name, number of records and last date, and whether that is within
    `until`.
    """
    rows = reader.execute(
        """SELECT value, name, (SELECT count(*) FROM labelled WHERE label = labels.id) AS count,
               (SELECT max(created_at_epoch) FROM labelled WHERE label = labels.id
                AND created_at_epoch <= coalesce(?, created_at_epoch)) AS last,
               (SELECT max(created_at_epoch) FROM labelled WHERE label = labels.id)
           FROM labels WHERE kind = ? AND field = 'project' AND count > 0""",
        (until, kind),
    )
    return [(key, name, n, last or newest, last is not None) for key, name, n, last, newest in rows]


def count_days(reader: sqlite3.Connection, since: int) -> dict[str, int]:
    """The number of records per local day since a time, newest day first."""
    days: dict[str, int] = {}
    for shape in SHAPES.values():
        rows = reader.execute(
            f"SELECT created_at_epoch FROM {shape.table} WHERE created_at_epoch >= ?", (since,)
        )
        for (epoch,) in rows:
            day = local_day(epoch)
            days[day] = days.get(day, 0) + 1
    return dict(sorted(days.items(), reverse=True))


def economics(reader: sqlite3.Connection) -> Economics:
    """The cost of reading all records, the cost of learning them, and the savings."""
    read, known = reader.execute(
        """SELECT coalesce(sum(read_tokens), 0),
               coalesce(sum(iif(discovery_tokens > 0, read_tokens, 0)), 0) FROM costs"""
    ).fetchone()
    rows = reader.execute(
        """SELECT project, session_id, coalesce(prompt_number, -1), discovery_tokens,
               created_at_epoch
           FROM observations WHERE discovery_tokens > 0 ORDER BY 1, 2, 3, 4, 5"""
    )
    return Economics(read, known, discovery_cost(map(Discovery._make, rows)))
