"""One query for one kind of record: its scope and the weights of its words."""

import math
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from memsvc.adapters.sqlite.fulltext import match, named
from memsvc.adapters.sqlite.fulltext.index_words import tag
from memsvc.adapters.sqlite.labels import matching_file_labels
from memsvc.core.filters import FIELDS, Filter
from memsvc.core.naming.commits import Commit
from memsvc.core.query import Query
from memsvc.core.records import SHAPES, Kind
from memsvc.core.words import EVERYDAY_VERBS, VAGUE_WORDS

MAX_FREQUENCIES: Final = 50_000
"""Maximum cached document frequencies, some 5 MB."""

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"
"""The tokenizer of the index, as in the schema."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to search: groups of alternative tags, all of which must match, and an SQL condition.

    The condition uses `{id}` for the id of a record, which the index knows, and `record` for the
    kind's table, as in ``record.created_at_epoch >= ?``, which reads the row of every match.
    """

    tags: tuple[tuple[str, ...], ...] = ()
    condition: str = ""
    parameters: tuple[object, ...] = ()


class Frequencies:
    """Document frequencies of expressions, cached until the store changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._counts: dict[tuple[Kind, str], int] = {}

    def of(
        self, connection: sqlite3.Connection, kind: Kind, expression: str, generation: int
    ) -> int:
        """The number of records that match an FTS5 expression; empty means all records."""
        known = self._current(generation).get((kind, expression))
        if known is not None:
            return known
        counted = _count_expression(connection, kind, expression)
        counts = self._current(generation)
        if len(counts) < MAX_FREQUENCIES:
            counts[kind, expression] = counted
        return counted

    def _current(self, generation: int) -> dict[tuple[Kind, str], int]:
        with self._lock:
            if generation != self._generation:
                self._generation, self._counts = generation, {}
            return self._counts


@dataclass(frozen=True)
class TextSearch:
    """One query for one kind of record: the input of all full-text functions."""

    connection: sqlite3.Connection
    kind: Kind
    query: Query
    frequencies: Frequencies
    generation: int = 0
    scope: Scope = Scope()
    note_damage: Callable[[str], None] = lambda what: None

    @property
    def table(self) -> str:
        """The table of this kind."""
        return SHAPES[self.kind].table

    def match(self, *any_of: Iterable[str]) -> str:
        """The MATCH string within the scope; with several wordings, of all that they match."""
        if self.query.also:
            return " OR ".join(f"({each})" for each in self._alternatives())
        return match.match(self.query, *any_of, tags=self.scope.tags, title=SHAPES[self.kind].title)

    def _alternatives(self) -> Iterator[str]:
        """The MATCH strings of the wordings; those of plain words alone share one, so that no word
        is looked up twice.
        """
        plain: dict[Query, dict[str, None]] = {}
        for wording in (replace(self, query=each) for each in self.query.wordings):
            query = wording.query
            if query.required:
                yield wording.match(list(wording.idfs))
            elif wording.idfs:
                limits = Query(excluded=query.excluded, excluded_filters=query.excluded_filters)
                plain.setdefault(limits, {}).update(dict.fromkeys(wording.idfs))
        for limits, clauses in plain.items():
            yield replace(self, query=limits).match(list(clauses))

    def tagged(self) -> str:
        """The MATCH string for all records with the tags of the scope."""
        return match.match(Query(), tags=self.scope.tags)

    @cached_property
    def required(self) -> list[str]:
        """The expressions of phrases and title words; an author is no matter of degree."""
        title = SHAPES[self.kind].title
        wordings = self.query.wordings
        terms = dict.fromkeys(term for each in wordings for term in each.required)
        return [match.expression(term, title) for term in terms if not term.author]

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        """The expressions of the plain words."""
        found = (match.clauses(each) for each in self.query.wordings)
        return tuple(dict.fromkeys(clause for clauses in found for clause in clauses))

    @cached_property
    def idfs(self) -> dict[str, float]:
        """The idf of each expression of the plain words that occurs at all, rarest first."""
        counted = sorted((self.count_of(clause), clause) for clause in self.clauses)
        return {clause: self.idf_of(clause) for number, clause in counted if number}

    @cached_property
    def telling(self) -> dict[str, float]:
        """The idfs of the words that rank: all but what says little in a question.

        That is vague words, and everyday verbs that are rarer than the subject is on average: in a
        project about `pyproject.toml`, "start" is the rarest word of "when did we start using
        pyproject.toml". Verbs that are more common do help: without any, conversations lose .006
        nDCG@10.
        """
        if not match.is_question(self.query):
            return self.idfs
        said = {clause: clause.strip('"') for clause in self.idfs}
        telling = {
            clause: idf for clause, idf in self.idfs.items() if said[clause] not in VAGUE_WORDS
        }
        subject = [idf for clause, idf in telling.items() if said[clause] not in EVERYDAY_VERBS]
        common = sum(subject) / len(subject) if subject else math.inf
        kept = {
            clause: idf
            for clause, idf in telling.items()
            if idf <= common or said[clause] not in EVERYDAY_VERBS
        }
        return kept or self.idfs

    @cached_property
    def known_share(self) -> float:
        """The share, weighted by idf, of the plain words that occur in any record at all."""
        asked = {f'"{token}"' for token in match.token_sequence(self.query)} & set(self.clauses)
        known = sum(self.idf_of(clause) for clause in asked if self.count_of(clause))
        return known / sum(self.idf_of(clause) for clause in asked) if known else 1.0

    @cached_property
    def named(self) -> dict[int, list[Commit]]:
        """The records that the query names, each with the hashes that name it."""
        return named.named_by(self)

    def count_of(self, expression: str) -> int:
        """The number of records with an expression, inside or outside the scope."""
        return self.frequencies.of(self.connection, self.kind, expression, self.generation)

    def idf_of(self, expression: str) -> float:
        """The inverse document frequency of an expression, as the bm25 of FTS5 has it."""
        rows, matching = self.count_of(""), self.count_of(expression)
        # FTS5 uses this floor if the logarithm is not positive.
        return max(1e-6, math.log((rows - matching + 0.5) / (matching + 0.5)))


def scope_of(
    reader: sqlite3.Connection, kind: Kind, selection: Filter, *, walks_index: bool
) -> Scope:
    """The scope that a filter leaves: values as tags in the index, paths and times as SQL."""
    tags = [
        tuple(tag(field, value) for value in values)
        for field, values in selection.groups
        if not FIELDS[field].is_path
    ]
    conditions: list[str] = []
    parameters: list[object] = []
    for field, values in selection.groups:
        if FIELDS[field].is_path:
            label, label_values = matching_file_labels(kind, field, values)
            conditions.append(f"{{id}} IN (SELECT record FROM labelled WHERE label {label})")
            parameters += label_values
    for sign, moment in ((">=", selection.since), ("<=", selection.until)):
        if moment is not None:
            conditions.append(f"record.created_at_epoch {sign} ?")
            parameters.append(moment)
    if selection.since is not None and walks_index:
        # ids mostly follow time, and the index can start at an id but not at a time
        conditions.append(f"{SHAPES[kind].table}_fts.rowid >= ?")
        parameters.append(_first_id(reader, kind, selection.since))
    return Scope(tuple(tags), " AND ".join(conditions), tuple(parameters))


def _first_id(reader: sqlite3.Connection, kind: Kind, since: int) -> int:
    """The lowest id of the records created since a time; beyond all ids if there are none."""
    # min(id) would scan the table by id; +id forces the index by time
    sql = f"SELECT min(+id) FROM {SHAPES[kind].table} WHERE created_at_epoch >= ?"
    (first,) = reader.execute(sql, (since,)).fetchone()
    return int(first) if first is not None else 2**62


def _count_expression(connection: sqlite3.Connection, kind: Kind, expression: str) -> int:
    table = SHAPES[kind].table
    if not expression:
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    else:
        sql = f"SELECT count(*) FROM {table}_fts WHERE {table}_fts MATCH ?"
        (number,) = connection.execute(sql, (expression,)).fetchone()
    return int(number)
