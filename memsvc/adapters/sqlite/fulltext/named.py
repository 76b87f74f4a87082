"""The observations that a query names by the hash of their commit."""

import json
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from memsvc.adapters.sqlite.fulltext import match
from memsvc.core.naming.commits import MIN_DIGITS, Commit, names_commit
from memsvc.core.records import SHAPES, Kind

if TYPE_CHECKING:
    from memsvc.adapters.sqlite.fulltext.search import TextSearch

_TABLE: Final = SHAPES[Kind.OBSERVATION].table

# Sources are few, so one look-up for each in the index by source and source id takes microseconds.
# The source ids that begin with a hash are a range, those that it begins with are a few.
_FIND: Final = f"""
    WITH RECURSIVE known(source) AS (
        SELECT min(source) FROM {_TABLE}
        UNION ALL
        SELECT (SELECT min(source) FROM {_TABLE} WHERE source > known.source)
        FROM known WHERE known.source IS NOT NULL
    )
    SELECT record.id, record.source_id, created_at_epoch FROM known CROSS JOIN {_TABLE} AS record
    ON record.source = known.source AND record.source_id >= ?1 AND record.source_id < ?1 || 'g'
    UNION
    SELECT record.id, record.source_id, created_at_epoch
    FROM known CROSS JOIN json_each(?2) AS shorter CROSS JOIN {_TABLE} AS record
    ON record.source = known.source AND record.source_id = shorter.value
    ORDER BY created_at_epoch DESC, 1 DESC
"""


def ids_of(connection: sqlite3.Connection, commit: Commit) -> list[int]:
    """The observations of a commit, newest first."""
    shorter = [commit.hash[:length] for length in range(MIN_DIGITS, len(commit.hash))]
    rows = connection.execute(_FIND, (commit.hash, json.dumps(shorter)))
    return [id for id, source_id, _ in rows if names_commit(commit.hash, source_id)]


def named_by(search: "TextSearch") -> dict[int, list[Commit]]:
    """The observations within a search that its query names, newest first, each with its hashes."""
    found: dict[int, list[Commit]] = {}
    if search.kind is Kind.OBSERVATION:
        for commit in search.query.commits:
            for id in ids_of(search.connection, commit):
                found.setdefault(id, []).append(commit)
    return {id: commits for id, commits in found.items() if _is_selected(search, id, commits)}


def _is_selected(search: "TextSearch", id: int, commits: list[Commit]) -> bool:
    """Whether a record lies in the scope, holds what else is required, and nothing excluded."""
    query, fts = search.query, f"{_TABLE}_fts"
    others = tuple(term for term in query.required if term.commit not in commits)
    wanted = match.match(replace(query, required=others), tags=search.scope.tags)
    unwanted = match.exclusions(query)
    holds = f"(SELECT 1 FROM {fts} WHERE {fts} MATCH ? AND rowid = record.id)"
    conditions = [search.scope.condition.format(id="record.id") or "1"]
    conditions += [f"EXISTS {holds}"] * bool(wanted) + [f"NOT EXISTS {holds}"] * bool(unwanted)
    found = search.connection.execute(
        f"""SELECT 1 FROM {_TABLE} AS record JOIN (SELECT ? AS rowid) AS {fts}
            ON record.id = {fts}.rowid WHERE {" AND ".join(f"({each})" for each in conditions)}""",
        (id, *search.scope.parameters, *filter(None, (wanted, unwanted))),
    )
    return found.fetchone() is not None
