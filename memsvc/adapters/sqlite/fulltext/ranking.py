"""Full-text search: which records match a query, and how well.

Candidates come from FTS5's bm25 over weighted columns; the best of them are then read and judged
by two things that bm25 cannot see: neighbouring words and exact forms.
"""

import json
import math
import re
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memsvc.adapters.sqlite.fulltext import match as language
from memsvc.core.query import Query
from memsvc.core.records import SHAPES, Kind

TITLE_WEIGHT: Final = 5.0  # a title is a summary: its words say most
SUBTITLE_WEIGHT: Final = 2.0  # a summary too, but longer
TEXT_WEIGHT: Final = 1.0
PROMPT_WEIGHT: Final = 3.0  # title and text in one: at 1 other kinds bury it, 5 costs .013 nDCG@10
PATH_WEIGHT: Final = 1.0  # half loses .002 nDCG@10: people name the files they mean
PARTS_WEIGHT: Final = 0.5  # parts repeat the text

WEIGHTS: Final[dict[Kind, tuple[float, ...]]] = {
    Kind.OBSERVATION: (
        *(TITLE_WEIGHT, SUBTITLE_WEIGHT, TEXT_WEIGHT, TEXT_WEIGHT),
        *(PATH_WEIGHT, PARTS_WEIGHT, 0),
    ),
    Kind.SESSION: (TITLE_WEIGHT, *(TEXT_WEIGHT,) * 5, PATH_WEIGHT, PARTS_WEIGHT, 0),
    Kind.PROMPT: (PROMPT_WEIGHT, PARTS_WEIGHT, 0),
}
"""What one occurrence counts in each column of the index; tags only filter."""

NEIGHBOURS_BONUS: Final = 0.2
"""What it adds to have all words of the query next to each other as they are there."""

EXACT_BONUS: Final = 0.1
"""What it adds to have all words in the form asked for: the stemmer joins too much."""

SATURATION: Final = 2.2
"""bm25 of endless repetitions of a word of idf 1: k1 + 1, with the k1 = 1.2 of FTS5."""

JUDGED: Final = 50
"""Candidates whose text is read for the bonuses; those further down seldom reach the top ten."""

FIRST_ROUND: Final = 5_000
"""Matches that the rarest words alone may bring in; common words then only refine their order.

Keeps 98-100 % of the exact top ten at a fifth of the time, at 100,000 records.
"""

FIRST_ROUND_SHARE: Final = 0.02
"""The same, as a share of all records, in stores so large that it is more."""

MOST_COUNTS: Final = 50_000
"""Document frequencies remembered: some 5 MB."""

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"
"""How the index cuts and stems; the schema says the same."""

_GAPS = re.compile(r"[\W_]+")
_ASCII_GAPS = {code: " " for code in range(128) if not chr(code).isalnum()}


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: groups of alternative tags that must all hold, and a condition in SQL.

    The condition says `{id}` for the id of a record, which the index knows by itself, and names the
    kind's table `record` for the rest, as in ``record.created_at_epoch >= ?``: that takes a look at
    every match.
    """

    tags: tuple[tuple[str, ...], ...] = ()
    condition: str = ""
    parameters: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that matches. `relevance` is 0-1, 1 a perfect hit; time in ms since 1970, UTC."""

    id: int
    relevance: float
    created_at_epoch: int


class Frequencies:
    """In how many records of one store an expression occurs, remembered until the store changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._counts: dict[tuple[Kind, str], int] = {}

    def of(
        self, connection: sqlite3.Connection, kind: Kind, expression: str, generation: int
    ) -> int:
        """Count the records that match an FTS5 expression; the empty one means all records."""
        known = self._current(generation).get((kind, expression))
        if known is not None:
            return known
        counted = _count_expression(connection, kind, expression)
        counts = self._current(generation)
        if len(counts) < MOST_COUNTS:
            counts[kind, expression] = counted
        return counted

    def _current(self, generation: int) -> dict[tuple[Kind, str], int]:
        with self._lock:
            if generation != self._generation:
                self._generation, self._counts = generation, {}
            return self._counts


@dataclass(frozen=True, slots=True)
class Search:
    """One query against one kind of record: what every function here works on."""

    connection: sqlite3.Connection
    kind: Kind
    query: Query
    frequencies: Frequencies
    generation: int = 0
    scope: Scope = Scope()

    @property
    def table(self) -> str:
        return SHAPES[self.kind].table

    def match(self, *any_of: Iterable[str]) -> str:
        """The MATCH string within the scope."""
        title = SHAPES[self.kind].title
        return language.match(self.query, *any_of, tags=self.scope.tags, title=title)

    def tagged(self) -> str:
        """The MATCH string of all that carries the tags of the scope."""
        return language.match(Query(), tags=self.scope.tags)

    def required(self) -> list[str]:
        """The expressions of phrases and title words."""
        title = SHAPES[self.kind].title
        return [language.expression(term, title) for term in self.query.required]

    def count_of(self, expression: str) -> int:
        """In how many records an expression occurs, in or out of the scope."""
        return self.frequencies.of(self.connection, self.kind, expression, self.generation)


def rank(search: Search, depth: int) -> list[Candidate]:
    """Give the best `depth` matches, best first; ties go to the newer record.

    relevance = known * (bm25 / best possible bm25 + bonuses) / (1 + all bonuses). The best possible
    bm25 (the function and its k1 are those of the FTS5 documentation) is the sum of idf * (k1 + 1)
    over the query; a bonus counts by the share of it that a record earns; `known` is the share of
    the words, by idf, that occur in any record. A query of exclusions only has nothing to rank by:
    relevance 0, newest first.
    """
    if search.query.only_excludes:
        return by_time(search, newest_first=True, limit=depth)
    worth = _worth(search)
    scores = _best_scores(search, list(worth), depth)
    marks = _Marks(_pairs(search.query), _exact(worth))
    earned = {id: marks.earned_by(text) for id, text in _read(search, list(scores)[:JUDGED])}
    full = _full(search, marks)
    candidates = [
        Candidate(id, (scores[id] + earned.get(id, 0.0)) / full, epoch)
        for id, epoch in _times(search, list(scores))
    ]
    return sorted(candidates, key=lambda each: (-each.relevance, -each.created_at_epoch, each.id))


def rest(
    search: Search, *, without: Sequence[Candidate], limit: int, offset: int
) -> list[Candidate]:
    """Give the matches outside the ranked candidates, by bm25, for the pages that follow them.

    None is called more relevant than the least of the candidates.
    """
    ids = [candidate.id for candidate in without]
    if search.query.only_excludes:
        return by_time(search, newest_first=True, limit=limit, offset=offset, without=ids)
    ceiling = min((candidate.relevance for candidate in without), default=1.0)
    worth = _worth(search)
    full = _full(search, _Marks(_pairs(search.query), _exact(worth)))
    scores = _scored(search, [list(worth)], limit=limit, offset=offset, without=ids)
    times = dict(_times(search, list(scores)))
    return [Candidate(id, min(ceiling, score / full), times[id]) for id, score in scores.items()]


def by_time(
    search: Search,
    *,
    newest_first: bool,
    limit: int,
    offset: int = 0,
    without: Sequence[int] = (),
) -> list[Candidate]:
    """Give matches in the order of time, ids as tie-break; their relevance is not looked at (0)."""
    source, parameters = _source(search, [list(_worth(search))], joined=True)
    way = "DESC" if newest_first else "ASC"
    rows = search.connection.execute(
        f"""SELECT record.id, record.created_at_epoch {source}
            AND record.id NOT IN (SELECT value FROM json_each(?))
            ORDER BY record.created_at_epoch {way}, record.id {way} LIMIT ? OFFSET ?""",
        (*parameters, json.dumps(without), limit, offset),
    )
    return [Candidate(id, 0.0, epoch) for id, epoch in rows]


def count(search: Search) -> int:
    """Give the exact number of matches."""
    words = list(_worth(search))
    if len(words) == 1 and not search.scope.condition and search.match(words) == f"({words[0]})":
        return search.count_of(words[0])  # nothing else is asked for: known already
    source, parameters = _source(search, [words])
    (number,) = search.connection.execute(f"SELECT count(*) {source}", parameters).fetchone()
    return int(number)


def coverage(search: Search, id: int) -> float:
    """Give the share, by idf, of the plain words of the query that a record holds."""
    worth = _worth(search)
    fts = f"{search.table}_fts"
    sql = f"SELECT 1 FROM {fts} WHERE {fts} MATCH ? AND rowid = ?"
    held = [
        idf
        for clause, idf in worth.items()
        if search.connection.execute(sql, (clause, id)).fetchone()
    ]
    return sum(held) / sum(worth.values()) * _known_share(search) if held else 0.0


def among(search: Search, ids: Sequence[int]) -> set[int]:
    """Give those of a few records that match: one walk through the matches, whatever `ids` are."""
    source, parameters = _source(search, [list(_worth(search))])
    id = "record.id" if search.query.only_excludes else f"{search.table}_fts.rowid"
    # the plus keeps SQLite from walking the index once for each id
    rows = search.connection.execute(
        f"SELECT {id} {source} AND +{id} IN (SELECT value FROM json_each(?))",
        (*parameters, json.dumps(list(ids))),
    )
    return {row[0] for row in rows}


def matched_terms(search: Search, id: int) -> dict[str, list[str]]:
    """Give the words and phrases that a record matches, each with the columns it stands in.

    The index itself is asked, so stemming and accents count as they did in the search.
    """
    found = {
        re.sub(r'^.* : |"', "", term): _columns_with(search, term, id)
        for term in (*_worth(search), *search.required())
    }
    return {term: columns for term, columns in found.items() if columns}


@dataclass(frozen=True, slots=True)
class _Marks:
    """The bonuses that a query holds out: for neighbouring words, and for each exact word."""

    pairs: list[str]
    exact: dict[str, float]

    @property
    def most(self) -> float:
        return NEIGHBOURS_BONUS * bool(self.pairs) + EXACT_BONUS * bool(self.exact)

    def earned_by(self, text: str) -> float:
        plain = spaced(text)
        together = sum(pair in plain for pair in self.pairs) / max(1, len(self.pairs))
        exact = sum(share for word, share in self.exact.items() if word in plain)
        return NEIGHBOURS_BONUS * together + EXACT_BONUS * exact


def _full(search: Search, marks: _Marks) -> float:
    """Give what bm25 share and bonuses are divided by to come to a relevance."""
    return (1 + marks.most) / _known_share(search)


def spaced(text: str) -> str:
    """Give the tokens of a text with one space around each."""
    if text.isascii():  # twice as fast as the expression, and most text is
        return f" {' '.join(text.lower().translate(_ASCII_GAPS).split())} "
    return f" {_GAPS.sub(' ', text.lower())} "


def _pairs(query: Query) -> list[str]:
    """Give each two words that follow each other, in the form in which `spaced` has them."""
    pairs = pairwise(language.token_sequence(query))
    return list(dict.fromkeys(spaced(f"{left} {right}") for left, right in pairs))


def _exact(worth: dict[str, float]) -> dict[str, float]:
    """Give the words as they are typed, each with its share of the idf."""
    typed = {spaced(c): idf for c, idf in worth.items() if c[0] == c[-1] == '"'}
    whole = sum(typed.values())
    return {word: idf / whole for word, idf in typed.items()}


def _read(search: Search, ids: list[int]) -> list[tuple[int, str]]:
    """Give id and text of records."""
    texts = " || ' ' || ".join([*SHAPES[search.kind].texts, "parts"])
    return search.connection.execute(
        f"SELECT id, {texts} FROM {search.table} WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids),),
    ).fetchall()


def _times(search: Search, ids: list[int]) -> list[tuple[int, int]]:
    """Give id and time of records."""
    return search.connection.execute(
        f"""SELECT id, created_at_epoch FROM {search.table}
            WHERE id IN (SELECT value FROM json_each(?))""",
        (json.dumps(ids),),
    ).fetchall()


def _columns_with(search: Search, term: str, id: int) -> list[str]:
    sql = f"SELECT 1 FROM {search.table}_fts WHERE {search.table}_fts MATCH ? AND rowid = ?"
    return [
        column
        for column in _columns(search.kind)
        if search.connection.execute(sql, (f"{{{column}}} : ({term})", id)).fetchone()
    ]


def _columns(kind: Kind) -> list[str]:
    return [*SHAPES[kind].texts, *(["files"] if SHAPES[kind].files else []), "parts"]


def _worth(search: Search) -> dict[str, float]:
    """Give the idf of each expression of the plain words that occurs at all, rarest first."""
    counted = {clause: search.count_of(clause) for clause in language.clauses(search.query)}
    rows = search.count_of("")
    rarest_first = sorted((number, clause) for clause, number in counted.items() if number)
    return {clause: _idf(rows, number) for number, clause in rarest_first}


def _known_share(search: Search) -> float:
    """Give the share, by idf, of the plain words that occur in any record at all."""
    rows, tokens = search.count_of(""), language.token_sequence(search.query)
    asked = {f'"{token}"' for token in tokens} & set(language.clauses(search.query))
    counts = [search.count_of(clause) for clause in asked]
    known = sum(_idf(rows, number) for number in counts if number)
    return known / sum(_idf(rows, number) for number in counts) if known else 1.0


def _idf(rows: int, matching: int) -> float:
    # FTS5 takes this floor where the logarithm is not positive.
    return max(1e-6, math.log((rows - matching + 0.5) / (matching + 0.5)))


def _best_scores(search: Search, clauses: list[str], depth: int) -> dict[int, float]:
    """Give the best records by bm25, by the rarest words first (MaxScore in two statements).

    Rows without any rare word cannot get far: they are looked at only if the others are too few.
    """
    rare, common = _split(search, clauses)
    if common and not search.query.required:
        scores = _scored(search, [rare], limit=depth) | _scored(search, [rare, common], limit=depth)
        if len(scores) >= depth:
            best = sorted(scores, key=lambda id: (-scores[id], id))[:depth]
            return {id: scores[id] for id in best}
    return _scored(search, [clauses], limit=depth)


def _split(search: Search, clauses: list[str]) -> tuple[list[str], list[str]]:
    """Cut the clauses, rarest first, where their matches pass `FIRST_ROUND`."""
    total, most = 0, max(FIRST_ROUND, search.count_of("") * FIRST_ROUND_SHARE)
    if search.scope.tags and search.count_of(search.tagged()) <= most:
        return clauses, []
    for place, clause in enumerate(clauses):
        total += search.count_of(clause)
        if place and total > most:
            return clauses[:place], clauses[place:]
    return clauses, []


def _scored(
    search: Search,
    any_of: list[list[str]],
    *,
    limit: int,
    offset: int = 0,
    without: Sequence[int] = (),
) -> dict[int, float]:
    """Give id and share of the best possible bm25 of the best matches, best first."""
    source, parameters = _source(search, any_of)
    fts, weights = f"{search.table}_fts", ", ".join(map(str, WEIGHTS[search.kind]))
    others = f"AND {fts}.rowid NOT IN (SELECT value FROM json_each(?))" if without else ""
    rows = search.connection.execute(
        f"""SELECT {fts}.rowid, -bm25({fts}, {weights}) AS score {source} {others}
            ORDER BY score DESC, {fts}.rowid LIMIT ? OFFSET ?""",
        (*parameters, *([json.dumps(without)] if without else []), limit, offset),
    )
    best = _best_possible(search)
    return {id: min(1.0, score / best) for id, score in rows}


def _best_possible(search: Search) -> float:
    rows, worth = search.count_of(""), sum(_worth(search).values())
    needed = sum(_idf(rows, search.count_of(expression)) for expression in search.required())
    # Beside words, a required expression is one of the alternatives too, and so counts twice.
    return SATURATION * (worth + needed * (2 if worth else 1)) or 1.0


def _source(
    search: Search, any_of: list[list[str]], *, joined: bool = False
) -> tuple[str, list[object]]:
    """Give FROM and WHERE, with their parameters, of the matching rows."""
    fts = f"{search.table}_fts"
    # the plus keeps SQLite from walking the index once for each id
    condition = search.scope.condition.format(id=f"+{fts}.rowid") or "1"
    parameters = search.scope.parameters
    if search.query.only_excludes:
        return _everything_but(search)
    # CROSS JOIN keeps the index outermost: newer planners would otherwise walk the table.
    record = f"CROSS JOIN {search.table} AS record ON record.id = {fts}.rowid"
    table = f"{fts} {record}" if joined or "record." in condition else fts
    found = any(any_of) or search.query.required
    match = search.match(*any_of) if found else _NOTHING
    return f"FROM {table} WHERE {fts} MATCH ? AND ({condition})", [match, *parameters]


_NOTHING = '""'


def _everything_but(search: Search) -> tuple[str, list[object]]:
    """Give FROM and WHERE for a query that only says what it does not want."""
    fts, match = f"{search.table}_fts", search.match()
    way = "IN" if match else "NOT IN"
    excluded = language.exclusions(search.query, SHAPES[search.kind].title)
    return (
        f"""FROM {search.table} AS record
            WHERE record.id {way} (SELECT rowid FROM {fts} WHERE {fts} MATCH ?)
            AND ({search.scope.condition.format(id="record.id") or "1"})""",
        [match or excluded, *search.scope.parameters],
    )


def _count_expression(connection: sqlite3.Connection, kind: Kind, expression: str) -> int:
    table = SHAPES[kind].table
    if not expression:
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    else:
        sql = f"SELECT count(*) FROM {table}_fts WHERE {table}_fts MATCH ?"
        (number,) = connection.execute(sql, (expression,)).fetchone()
    return int(number)
