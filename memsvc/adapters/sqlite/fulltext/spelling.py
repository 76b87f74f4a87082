"""Suggestions for misspelt words: the closest words to those that no record has."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rapidfuzz.distance import OSA

from memsvc.adapters.sqlite.fulltext.bonuses import spaced
from memsvc.adapters.sqlite.fulltext.match import clauses
from memsvc.adapters.sqlite.fulltext.search import TOKENIZER, TextSearch
from memsvc.core.naming.commits import is_hash
from memsvc.core.query import Query, Term

MAX_CORRECTED: Final = 2
"""Maximum words per query to correct; each costs a scan of the vocabulary."""

MAX_SUGGESTED: Final = 3
"""Maximum suggestions per word."""

MIN_CORRECTED: Final = 2
"""Minimum length of a word to correct: a single letter is close to every short word."""

MAX_STEM: Final = 30
"""Maximum length of a stem that a misspelt word may start with."""


def suggest(search: TextSearch) -> list[str]:
    """Words that occur in place of those words of the query that do not, closest first.

    A word is close if it starts similarly and differs by at most two letters, or one if it is
    short.
    """
    typed = clauses(replace(search.query, words=_typed_words(search.query)))
    absent = [c.strip('"') for c in typed if _is_word(c) and not search.count_of(c)]
    found = [word for each in absent[:MAX_CORRECTED] for word in _nearest(search, each)]
    return list(dict.fromkeys(found))


def _is_word(clause: str) -> bool:
    """Whether an expression is one whole word, and no hash: hashes are similar by chance."""
    return " " not in clause and clause.endswith('"') and not is_hash(clause.strip('"'))


def _typed_words(query: Query) -> tuple[Term, ...]:
    return tuple(replace(term, prefix=False) for term in (*query.words, *query.required))


def _nearest(search: TextSearch, word: str) -> list[str]:
    """The most frequent of the closest words, compared by stem."""
    stem = _stems([word]).get(word, word)
    if len(stem) < MIN_CORRECTED:
        return []
    most = 1 if len(stem) < 5 else 2
    ranked = sorted(
        (distance, -records, term)
        for term, records in _similar_stems(search, stem, most)
        if (distance := OSA.distance(stem, term, score_cutoff=most)) <= most
    )
    nearest = [term for distance, _, term in ranked if distance == ranked[0][0]]
    written = [_written_form(search, term, word) for term in nearest[:MAX_SUGGESTED]]
    return written or _same_start(search, word)


def _same_start(search: TextSearch, word: str) -> list[str]:
    """A word whose stem `word` starts with, for words with a misspelt ending."""
    longest = min(len(word) - 2, MAX_STEM)
    for length in range(longest, MIN_CORRECTED - 1, -1):
        sql = f"SELECT 1 FROM {search.table}_vocab WHERE term = ?"
        if search.connection.execute(sql, (word[:length],)).fetchone():
            form = _written_form(search, word[:length], word)
            if OSA.distance(form, word, score_cutoff=2) <= 2:
                return [form]
    return []


def _similar_stems(search: TextSearch, stem: str, most: int) -> Iterator[tuple[str, int]]:
    """Indexed stems that start like `stem` or nearly so, with their number of records.

    Nearly means with the first two letters swapped, or with one letter too many at the start.
    """
    for start in dict.fromkeys((stem[:1], stem[1:2] + stem[:1], stem[1:3])):
        yield from search.connection.execute(
            f"""SELECT term, doc FROM {search.table}_vocab WHERE term >= ? AND term < ?
                AND length(term) BETWEEN ? AND ? AND term NOT GLOB '*z*0'""",
            (start, start + chr(0x10FFFF), len(stem) - most, len(stem) + most),
        )


def _written_form(search: TextSearch, stem: str, word: str) -> str:
    """The written form of a stem that is closest to `word`, taken from some of the records that
    have it.
    """
    fts = f"{search.table}_fts"
    rows = search.connection.execute(
        f"""SELECT text.* FROM {fts} CROSS JOIN {search.table}_text AS text ON text.id = {fts}.rowid
            WHERE {fts} MATCH ? LIMIT 10""",
        (f'"{stem}"*',),
    )
    written = [token for row in rows for cell in row for token in spaced(str(cell)).split()]
    stems = _stems([token for token in written if token[:1] == stem[:1]])
    forms = [token for token, its_stem in stems.items() if its_stem == stem]
    return min(forms, key=lambda form: (OSA.distance(form, word), form), default=stem)


def _stems(tokens: list[str]) -> dict[str, str]:
    """Each token as the index stores it, stemmed by the index's own tokenizer."""
    distinct = list(dict.fromkeys(tokens))
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.execute(f"CREATE VIRTUAL TABLE given USING fts5(token, tokenize='{TOKENIZER}')")
        memory.execute("CREATE VIRTUAL TABLE kept USING fts5vocab(given, instance)")
        memory.executemany("INSERT INTO given(rowid, token) VALUES (?, ?)", enumerate(distinct))
        return {distinct[row]: stem for stem, row in memory.execute("SELECT term, doc FROM kept")}
