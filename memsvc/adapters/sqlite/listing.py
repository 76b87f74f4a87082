"""Lists records by filter and time: pages, counts and neighbours."""

import json
import sqlite3
from collections.abc import Sequence

from memsvc.adapters.sqlite.labels import Sql, label_groups
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Hit, Point
from memsvc.core.records import SHAPES, Kind, Ref


def select_page(
    reader: sqlite3.Connection,
    kinds: Sequence[Kind],
    selection: Filter,
    *,
    newest_first: bool,
    limit: int,
    offset: int,
) -> list[Hit]:
    """One page of the records that the filter selects, in time order."""
    sql, values = _union([(kind, *selected(reader, kind, selection)) for kind in kinds])
    way = "DESC" if newest_first else "ASC"
    rows = reader.execute(
        f"{sql} ORDER BY created_at_epoch {way}, id {way}, kind {way} LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [Hit(Ref(Kind(kind), id), epoch) for kind, id, epoch in rows]


def count_selected(reader: sqlite3.Connection, kind: Kind, selection: Filter) -> int:
    """How many records of a kind the filter selects."""
    sql, values = selected(reader, kind, selection)
    (count,) = reader.execute(f"SELECT count(*) FROM ({sql})", values).fetchone()
    return int(count)


def selected_ids(reader: sqlite3.Connection, kind: Kind, selection: Filter) -> list[int]:
    """The ids of all records of a kind that the filter selects."""
    sql, values = selected(reader, kind, selection)
    return [id for id, _ in reader.execute(sql, values)]


def from_sources(reader: sqlite3.Connection, kind: Kind, sources: Sequence[str]) -> set[int]:
    """The ids of all records of a kind that came from any of these sources."""
    rows = reader.execute(
        f"""SELECT id FROM {SHAPES[kind].table}
            WHERE source IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(sources)),),
    )
    return {id for (id,) in rows}


def project_from(reader: sqlite3.Connection, kind: Kind, family: str, source_id: str) -> str | None:
    """The project of the newest record that a source of a family knows by this id.

    It steps from source to source in the index that begins with the source.
    """
    table = SHAPES[kind].table
    row = reader.execute(
        f"""WITH RECURSIVE sources (name) AS (
                SELECT min(source) FROM {table} WHERE source >= ?1
                UNION ALL
                SELECT (SELECT min(source) FROM {table} WHERE source > name) FROM sources
                WHERE name < ?2)
            SELECT project FROM sources JOIN {table} ON source = name AND source_id = ?3
            WHERE name < ?2 ORDER BY id DESC LIMIT 1""",
        (f"{family}:", f"{family};", source_id),  # ; follows : in the order of characters
    ).fetchone()
    return row[0] if row else None


def selected_among(
    reader: sqlite3.Connection, kind: Kind, selection: Filter, ids: Sequence[int]
) -> set[int]:
    """Which of these records the filter selects."""
    sql, values = selected(reader, kind, selection)
    rows = reader.execute(
        f"SELECT id FROM ({sql}) WHERE id IN (SELECT value FROM json_each(?))",
        (*values, json.dumps(list(ids))),
    )
    return {id for (id,) in rows}


def selected(reader: sqlite3.Connection, kind: Kind, selection: Filter) -> Sql:
    """SQL for (id, created_at_epoch) of every record of a kind that the filter selects."""
    groups = label_groups(kind, selection)
    times, time_values = _times(selection)
    if not groups:
        return f"SELECT id, created_at_epoch FROM {SHAPES[kind].table} AS l{times}", time_values
    (label, values), *others = _smallest_first(reader, groups)
    # a record may match several values of a group but counts once
    distinct = "DISTINCT" if label.startswith("IN") else ""
    sql = f"""SELECT {distinct} l.record AS id, l.created_at_epoch FROM labelled AS l
        WHERE l.label {label}"""
    for other, other_values in others:
        sql += f""" AND EXISTS (SELECT 1 FROM labelled AS o WHERE o.label {other}
            AND o.created_at_epoch = l.created_at_epoch AND o.record = l.record)"""
        values = values + other_values
    return sql + times.replace("WHERE", "AND"), values + time_values


def _smallest_first(reader: sqlite3.Connection, groups: list[Sql]) -> list[Sql]:
    """The group with the fewest records first: it is scanned, and the others are looked up."""
    return sorted(groups, key=lambda group: _size(reader, group)) if len(groups) > 1 else groups


def _size(reader: sqlite3.Connection, group: Sql) -> int:
    label, values = group
    sql = f"SELECT count(*) FROM (SELECT 1 FROM labelled WHERE label {label} LIMIT 20000)"
    return int(reader.execute(sql, values).fetchone()[0])


def _times(selection: Filter) -> Sql:
    conditions, values = [], []
    if selection.since is not None:
        conditions.append("l.created_at_epoch >= ?")
        values.append(selection.since)
    if selection.until is not None:
        conditions.append("l.created_at_epoch <= ?")
        values.append(selection.until)
    return (" WHERE " if conditions else "") + " AND ".join(conditions), list(values)


def _union(parts: Sequence[tuple[Kind, str, list[object]]]) -> Sql:
    sql = " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, id, created_at_epoch FROM ({sql})" for kind, sql, _ in parts
    )
    return f"SELECT * FROM ({sql})", [value for _, _, values in parts for value in values]


def neighbours(
    reader: sqlite3.Connection,
    kinds: Sequence[Kind],
    selection: Filter,
    point: Point,
    *,
    before: bool,
    limit: int,
) -> list[Hit]:
    """The records closest to a point on one side of it, in time order.

    The record at the point itself is on neither side.
    """
    found = [
        hit
        for kind in kinds
        for hit in _one_side(reader, kind, selection, point, before=before, limit=limit)
    ]
    found.sort(key=time_order, reverse=before)
    return sorted(found[:limit], key=time_order)


def time_order(hit: Hit) -> tuple[int, int, Kind]:
    """The store's time order: time, then id, then kind."""
    return hit.created_at_epoch, hit.ref.id, hit.ref.kind


def _one_side(
    reader: sqlite3.Connection,
    kind: Kind,
    selection: Filter,
    point: Point,
    *,
    before: bool,
    limit: int,
) -> list[Hit]:
    sql, values = selected(reader, kind, selection)
    # a record of another kind with the same time and id is ordered by kind
    tie = kind < point.kind if before else kind > point.kind
    sign, way = ("<", "DESC") if before else (">", "ASC")
    rows = reader.execute(
        f"""SELECT id, created_at_epoch FROM ({sql})
            WHERE (created_at_epoch, id) {sign}{"=" if tie else ""} (?, ?)
            ORDER BY created_at_epoch {way}, id {way} LIMIT ?""",
        (*values, point.created_at_epoch, point.id, limit),
    )
    return [Hit(Ref(kind, id), epoch) for id, epoch in rows]
