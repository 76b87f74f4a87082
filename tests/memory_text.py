"""Which records match a query, in plain Python: what the query language means, word by word."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from memsvc.core import words
from memsvc.core.filters import Filter, selects
from memsvc.core.query import Query, Term
from memsvc.core.records import SHAPES, Record, kind_of

_IDENTIFIER = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)*")


@dataclass(frozen=True)
class Phrase:
    """Words that follow each other; the last may be the beginning of one."""

    words: tuple[str, ...]
    prefix: bool = False
    title: bool = False

    def is_in(self, text: list[str]) -> bool:
        length = len(self.words)
        windows = (text[at : at + length] for at in range(len(text) - length + 1))
        return any(self._is(window) for window in windows)

    def _is(self, window: list[str]) -> bool:
        *firsts, last = zip(self.words, window, strict=True)
        same = all(stem(wanted) == stem(word) for wanted, word in firsts)
        wanted, word = last
        began = self.prefix and word.startswith(folded(wanted))
        return same and (began or stem(wanted) == stem(word))


def folded(text: str) -> str:
    """A text without case and accents."""
    apart = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in apart if not unicodedata.combining(char))


@cache
def stem(word: str) -> str:
    """A word without its ending: fail, fails, failing and failed are one."""
    plain = folded(word)
    for ending in ("ing", "ed", "es", "s", "e"):
        if len(plain) >= len(ending) + 3 and plain.endswith(ending):
            plain = plain.removesuffix(ending)
            break
    return f"{plain[:-1]}i" if len(plain) > 2 and plain.endswith("y") else plain


@cache
def columns(record: Record) -> dict[str, list[list[str]]]:
    """The texts of a record by field, as runs of words; `parts` holds the pieces of words."""
    shape = SHAPES[kind_of(record)]
    cells = {name: _lines(getattr(record, name)) for name in shape.texts}
    if shape.files:
        paths = {path for name in shape.files for path in getattr(record, name)}
        cells["files"] = [" ".join(sorted(paths))]
    whole = "\n".join(line for lines in cells.values() for line in lines)
    found = {name: [_words("\n".join(lines))] for name, lines in cells.items()}
    return found | {"parts": list(_pieces(whole))}


def _lines(cell: str | tuple[str, ...]) -> list[str]:
    return [cell] if isinstance(cell, str) else list(cell)


def _words(text: str) -> list[str]:
    return list(map(folded, words.tokens(text)))


def _pieces(text: str) -> Iterator[list[str]]:
    for identifier in _IDENTIFIER.findall(text):
        tokens = words.tokens(identifier)
        cut = [piece for token in tokens for piece in words.split_token(token)]
        if len(cut) > len(tokens):
            yield list(map(folded, cut))
    single = [*words.joined_neighbours(text), *words.symbols(text), *"".join(words.cjk_runs(text))]
    yield from ([folded(each)] for each in single)


def readings(query: Query) -> list[Phrase]:
    """The plain words of a query, whole and in pieces: any of them may match."""
    named = list(dict.fromkeys(phrase for term in query.words for phrase in _readings(term)))
    return [p for p in named if not _is_stop_word(p)] or named


def _is_stop_word(phrase: Phrase) -> bool:
    return len(phrase.words) == 1 and phrase.words[0] in words.STOP_WORDS


def _readings(term: Term) -> Iterator[Phrase]:
    tokens, symbols = words.tokens(term.text), words.symbols(term.text)
    yield from (Phrase((symbol,)) for symbol in symbols)
    if term.prefix and not words.has_cjk(term.text):
        yield Phrase(tuple(map(str.lower, tokens)), prefix=True)
        return
    for token in (each for each in tokens if not (symbols and len(each) == 1)):
        for run in words.script_runs(token.lower()):
            units = words.bigrams(run) if words.has_cjk(run) else [run]
            yield from (Phrase((unit,)) for unit in units)
        if not words.has_cjk(token) and len(words.split_token(token)) > 1:
            yield Phrase(tuple(words.split_token(token)))
    yield from (Phrase((pair,)) for pair in words.joined_neighbours(term.text))


def _as_written(term: Term) -> Iterator[Phrase]:
    """What a required or excluded term must hold; characters of CJK have no title of their own."""
    tokens = words.tokens(term.text)
    if plain := tuple(token for token in tokens if not words.has_cjk(token)):
        yield Phrase(plain, term.prefix, term.title)
    yield from (Phrase(tuple(words.split_token(token))) for token in tokens if words.has_cjk(token))
    yield from (Phrase((symbol,)) for symbol in words.symbols(term.text))


def required(query: Query) -> list[Phrase]:
    return [phrase for term in query.required for phrase in _as_written(term)]


def places(record: Record, phrase: Phrase) -> list[str]:
    """The fields of a record that hold a phrase."""
    title = SHAPES[kind_of(record)].title
    texts = columns(record).items()
    held = [name for name, lines in texts if any(map(phrase.is_in, lines))]
    return [name for name in held if name == title] if phrase.title else held


def _holds(record: Record, phrases: Iterable[Phrase]) -> bool:
    return all(places(record, phrase) for phrase in phrases)


def matches(record: Record, query: Query) -> bool:
    """Any of the words, unless something is required; all of that; nothing that is excluded."""
    if any(_holds(record, _as_written(term)) for term in query.excluded):
        return False
    if any(selects(Filter((group,)), record) for group in query.excluded_filters):
        return False
    if query.required:
        return _holds(record, required(query))
    return query.only_excludes or any(places(record, each) for each in readings(query))


def coverage(record: Record, query: Query) -> float:
    """The share of the words of a query that a record holds."""
    asked = readings(query)
    return sum(bool(places(record, each)) for each in asked) / max(1, len(asked))


def relevance(record: Record, query: Query) -> float:
    """The share of all that is asked for that a record holds; half where not in the title."""
    asked, title = [*readings(query), *required(query)], SHAPES[kind_of(record)].title
    held = [places(record, each) for each in asked]
    return sum(1.0 if title in where else 0.5 for where in held if where) / max(1, len(asked))


def vocabulary(records: Iterable[Record]) -> set[str]:
    """Every word of these records."""
    lines = (line for record in records for held in columns(record).values() for line in held)
    return {word for line in lines for word in line}
