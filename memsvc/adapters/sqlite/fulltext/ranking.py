"""Full-text search: which records match a query, and how well.

Candidates come from FTS5's bm25 over weighted columns; the texts of the best are then read for
bonuses that bm25 cannot see.
"""

import json
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from memsvc.adapters.sqlite.connections import read_readable
from memsvc.adapters.sqlite.fulltext.bonuses import Bonuses, bonuses_of
from memsvc.adapters.sqlite.fulltext.match import exclusions
from memsvc.adapters.sqlite.fulltext.search import TextSearch
from memsvc.core.ports.store import Hit
from memsvc.core.records import SHAPES, Kind, Ref

TITLE_WEIGHT: Final = 5.0  # a title is a summary: its words matter most
SUBTITLE_WEIGHT: Final = 2.0  # a summary too, but longer
TEXT_WEIGHT: Final = 1.0

PROMPT_WEIGHT: Final = (
    3.0  # title and text in one: at 1 it ranks below other kinds, at 5 it costs .013 nDCG@10
)

PATH_WEIGHT: Final = 1.0  # at .5 it loses .002 nDCG@10: people name the files they mean
SUBWORDS_WEIGHT: Final = 0.5  # subwords repeat the text

WEIGHTS: Final[dict[Kind, tuple[float, ...]]] = {
    Kind.OBSERVATION: (
        *(TITLE_WEIGHT, SUBTITLE_WEIGHT, TEXT_WEIGHT, TEXT_WEIGHT),
        *(PATH_WEIGHT, SUBWORDS_WEIGHT, 0),
    ),
    Kind.SESSION: (TITLE_WEIGHT, *(TEXT_WEIGHT,) * 5, PATH_WEIGHT, SUBWORDS_WEIGHT, 0),
    Kind.PROMPT: (PROMPT_WEIGHT, SUBWORDS_WEIGHT, 0),
}
"""The weight of each column of the index; tags only filter."""

SATURATION: Final = 2.2
"""The limit of bm25 for a word with idf 1: k1 + 1, with FTS5's k1 = 1.2."""

MAX_READ: Final = 50
"""Candidates whose text is read for the bonuses; lower ones rarely reach the top ten, unless they
hold a name of the query: for that all are read.
"""

MAX_RARE: Final = 5_000
"""Maximum matches of the rarest words alone; common words then only reorder them.

At 100,000 records this keeps 98-100% of the exact top ten in a fifth of the time.
"""

MAX_RARE_SHARE: Final = 0.02
"""The same as a share of all records, if that is more."""


def rank(search: TextSearch, depth: int) -> list[Hit]:
    """The best `depth` matches, best first; ties go to the newer record. Those that the query names
    come first, with relevance 1.

    Of a question, the words that are not `telling` earn bonuses, but no bm25, and records that have
    no other word come last.

    relevance = known * (bm25 / best possible bm25 + bonuses) / (1 + all bonuses). The best possible
    bm25 is the sum of idf * (k1 + 1) over the query, with the bm25 and k1 of the FTS5
    documentation. A record gets a bonus in proportion to how far it earns it. `known` is the share
    of the words, weighted by idf, that occur in any record. A query of exclusions only has
    relevance 0, newest first.
    """
    if search.query.only_excludes:
        return by_time(search, newest_first=True, limit=depth)
    bonuses = bonuses_of(search.query, search.idfs)
    scores = _best_scores(search, list(search.telling), depth)
    most = len(scores) if bonuses.names else MAX_READ
    earned = {id: bonuses.earned_by(text) for id, text in _read(search, list(scores)[:most])}
    if len(scores) < depth and len(search.telling) < len(search.idfs):
        scores |= _untold(search, scores, depth - len(scores))
    perfect = _perfect(search, bonuses)
    hits = [
        Hit(Ref(search.kind, id), epoch, (scores[id] + earned.get(id, 0.0)) / perfect)
        for id, epoch in _times(search, list(scores))
    ]
    hits.sort(key=lambda hit: (-hit.relevance, -hit.created_at_epoch, hit.ref.id))
    others = [hit for hit in hits if hit.ref.id not in search.named]
    return (_named(search) + others)[:depth]


def rest(search: TextSearch, *, without: Sequence[int], limit: int, offset: int) -> list[Hit]:
    """The matches outside the ranked candidates, by bm25, for the pages that follow them."""
    if search.query.only_excludes:
        return by_time(search, newest_first=True, limit=limit, offset=offset, without=without)
    named = _named(search, without)
    first = named[offset : offset + limit]
    limit, offset = limit - len(first), max(0, offset - len(named))
    perfect = _perfect(search, bonuses_of(search.query, search.idfs))
    clauses, without = list(search.idfs), [*without, *search.named]
    scores = _scored(search, [clauses], limit=limit, offset=offset, without=without)
    times = dict(_times(search, list(scores)))
    return first + [
        Hit(Ref(search.kind, id), times[id], min(1.0, score / perfect))
        for id, score in scores.items()
        if id in times
    ]


def by_time(
    search: TextSearch,
    *,
    newest_first: bool,
    limit: int,
    offset: int = 0,
    without: Sequence[int] = (),
) -> list[Hit]:
    """Matches in time order, ties by id, with relevance 0."""
    source, parameters = _source(search, [list(search.idfs)], joined=True)
    named = _named(search, without)
    without = [*without, *search.named]
    way = "DESC" if newest_first else "ASC"
    rows = search.connection.execute(
        f"""SELECT record.id, record.created_at_epoch {source}
            AND record.id NOT IN (SELECT value FROM json_each(?))
            ORDER BY record.created_at_epoch {way}, record.id {way} LIMIT ? OFFSET ?""",
        (*parameters, json.dumps(list(without)), limit, offset),
    )
    hits = [Hit(Ref(search.kind, id), epoch) for id, epoch in rows]
    if not named:
        return hits
    hits += [Hit(hit.ref, hit.created_at_epoch) for hit in named]
    return sorted(hits, key=attrgetter("created_at_epoch", "ref"), reverse=newest_first)[:limit]


def _named(search: TextSearch, without: Sequence[int] = ()) -> list[Hit]:
    """The records that the query names, newest first."""
    ids = list(search.named.keys() - set(without))
    times = _times(search, ids) if ids else []
    newest = sorted(times, key=lambda row: (row[1], row[0]), reverse=True)
    return [Hit(Ref(search.kind, id), epoch, 1.0, named=True) for id, epoch in newest]


def count(search: TextSearch) -> int:
    """The exact number of matches."""
    matching = _count_matching(search)
    if not search.named:
        return matching
    return matching + len(search.named.keys() - _matching(search, list(search.named)))


def _count_matching(search: TextSearch) -> int:
    words = list(search.idfs)
    if len(words) == 1 and not search.scope.condition and search.match(words) == f"({words[0]})":
        return search.count_of(words[0])  # the query is this one word, whose count is cached
    source, parameters = _source(search, [words])
    (number,) = search.connection.execute(f"SELECT count(*) {source}", parameters).fetchone()
    return int(number)


def coverage(search: TextSearch, id: int) -> float:
    """The share, weighted by idf, of the plain words of the query that a record has; 1 if the query
    names it.
    """
    if id in search.named:
        return 1.0
    fts = f"{search.table}_fts"
    sql = f"SELECT 1 FROM {fts} WHERE {fts} MATCH ? AND rowid = ?"
    held = [
        idf
        for clause, idf in search.telling.items()
        if search.connection.execute(sql, (clause, id)).fetchone()
    ]
    return sum(held) / sum(search.telling.values()) * search.known_share if held else 0.0


def among(search: TextSearch, ids: Sequence[int]) -> set[int]:
    """Which of these records match, with one scan of the matches."""
    return _matching(search, ids) | (set(ids) & set(search.named))


def _matching(search: TextSearch, ids: Sequence[int]) -> set[int]:
    source, parameters = _source(search, [list(search.idfs)])
    id = "record.id" if search.query.only_excludes else f"{search.table}_fts.rowid"
    # the plus keeps SQLite from scanning the index once per id
    rows = search.connection.execute(
        f"SELECT {id} {source} AND +{id} IN (SELECT value FROM json_each(?))",
        (*parameters, json.dumps(list(ids))),
    )
    return {row[0] for row in rows}


def _perfect(search: TextSearch, bonuses: Bonuses) -> float:
    """The score of a perfect match, which normalises scores to 0-1."""
    return (1 + bonuses.highest) / search.known_share


def _read(search: TextSearch, ids: list[int]) -> list[tuple[int, str]]:
    """The id and text of these records."""
    texts = " || ' ' || ".join([*SHAPES[search.kind].texts, "parts"])
    return _rows(search, f"id, {texts}", ids)


def _times(search: TextSearch, ids: list[int]) -> list[tuple[int, int]]:
    """The id and time of these records."""
    return _rows(search, "id, created_at_epoch", ids)


def _rows(search: TextSearch, columns: str, ids: list[int]) -> list[Any]:
    """These columns of the records that can be read."""
    sql = f"""SELECT {columns} FROM {search.table}
        WHERE id IN (SELECT value FROM json_each(?))"""

    def read(some: Sequence[int]) -> list[Any]:
        return search.connection.execute(sql, (json.dumps(list(some)),)).fetchall()

    return read_readable(read, ids, search.note_damage)


def _best_scores(search: TextSearch, clauses: list[str], depth: int) -> dict[int, float]:
    """The best records by bm25, found by the rarest words first (MaxScore in two statements).

    Rows without any rare word rank low: they are scored only if the others are too few.
    """
    rare, common = _split(search, clauses)
    if common and not (search.query.required or search.query.also):
        scores = _scored(search, [rare], limit=depth) | _scored(search, [rare, common], limit=depth)
        if len(scores) >= depth:
            best = sorted(scores, key=lambda id: (-scores[id], id))[:depth]
            return {id: scores[id] for id in best}
    return _scored(search, [clauses], limit=depth)


def _untold(search: TextSearch, scores: Mapping[int, float], limit: int) -> dict[int, float]:
    """The best matches without a telling word, none better than the last that has one."""
    others = [clause for clause in search.idfs if clause not in search.telling]
    found = _scored(search, [others], limit=limit, without=list(scores))
    lowest = min(scores.values(), default=1.0)
    return {id: min(score, lowest) for id, score in found.items()}


def _split(search: TextSearch, clauses: list[str]) -> tuple[list[str], list[str]]:
    """The clauses, rarest first, cut where their matches pass `MAX_RARE`."""
    total, limit = 0, max(MAX_RARE, search.count_of("") * MAX_RARE_SHARE)
    if search.scope.tags and search.count_of(search.tagged()) <= limit:
        return clauses, []
    for place, clause in enumerate(clauses):
        total += search.count_of(clause)
        if place and total > limit:
            return clauses[:place], clauses[place:]
    return clauses, []


def _scored(
    search: TextSearch,
    any_of: list[list[str]],
    *,
    limit: int,
    offset: int = 0,
    without: Sequence[int] = (),
) -> dict[int, float]:
    """The best matches, best first: id → share of the best possible bm25."""
    source, parameters = _source(search, any_of)
    fts, weights = f"{search.table}_fts", ", ".join(map(str, WEIGHTS[search.kind]))
    others = f"AND {fts}.rowid NOT IN (SELECT value FROM json_each(?))" if without else ""
    rows = search.connection.execute(
        f"""SELECT {fts}.rowid, -bm25({fts}, {weights}) AS score {source} {others}
            ORDER BY score DESC, {fts}.rowid LIMIT ? OFFSET ?""",
        (*parameters, *([json.dumps(list(without))] if without else []), limit, offset),
    )
    best = _best_possible(search)
    return {id: min(1.0, score / best) for id, score in rows}


def _best_possible(search: TextSearch) -> float:
    idfs = sum(search.telling.values())
    needed = sum(map(search.idf_of, search.required))
    # Next to plain words, a required expression is also one of the alternatives, so it counts
    # twice.
    return SATURATION * (idfs + needed * (2 if idfs else 1)) or 1.0


def _source(
    search: TextSearch, any_of: list[list[str]], *, joined: bool = False
) -> tuple[str, list[object]]:
    """FROM and WHERE of the matching rows, with their parameters."""
    fts = f"{search.table}_fts"
    # the plus keeps SQLite from scanning the index once per id
    condition = search.scope.condition.format(id=f"+{fts}.rowid") or "1"
    parameters = search.scope.parameters
    if search.query.only_excludes:
        return _everything_but(search)
    # CROSS JOIN keeps the index outermost; newer planners would otherwise scan the table.
    record = f"CROSS JOIN {search.table} AS record ON record.id = {fts}.rowid"
    table = f"{fts} {record}" if joined or "record." in condition else fts
    found = any(any_of) or any(each.required for each in search.query.wordings)
    match = search.match(*any_of) if found else _NOTHING
    return f"FROM {table} WHERE {fts} MATCH ? AND ({condition})", [match, *parameters]


_NOTHING = '""'


def _everything_but(search: TextSearch) -> tuple[str, list[object]]:
    """FROM and WHERE for a query that only excludes."""
    fts, match = f"{search.table}_fts", search.match()
    way = "IN" if match else "NOT IN"
    excluded = exclusions(search.query, SHAPES[search.kind].title)
    return (
        f"""FROM {search.table} AS record
            WHERE record.id {way} (SELECT rowid FROM {fts} WHERE {fts} MATCH ?)
            AND ({search.scope.condition.format(id="record.id") or "1"})""",
        [match or excluded, *search.scope.parameters],
    )
