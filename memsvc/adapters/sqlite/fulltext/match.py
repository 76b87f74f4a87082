"""Turns a query into FTS5 expressions, the strings after MATCH."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from memsvc.adapters.sqlite.fulltext.index_words import author_tags, tag
from memsvc.core import words
from memsvc.core.naming.commits import abbreviations, is_hash
from memsvc.core.naming.names import files_in, plain_versions, versions_in
from memsvc.core.query import Query, Term

MAX_CLAUSES: Final = 128
"""Maximum expressions per query, compounds split."""

MAX_CACHED: Final = 256
"""Queries whose expressions are cached: one request asks for them again and again."""

# Endings that the stemmer removes, so that the index may hold less than the prefix.
_ENDINGS = """
    ability able ably ally ance ances ation ational ations ative ator ators ed ement ence ences
    ency ent er ers es eness fulness ibility ible icate icated ical ication ications icity ing
    ings ion ional ions ism ities ity ive iveness ization ize ized izer izing ly ment ments ness
    or ors ous ousness s tional y
    """.split()  # noqa: SIM905 - a list of strings would take a screen

_MIN_STEM = 5


@lru_cache(MAX_CACHED)
def clauses(query: Query) -> tuple[str, ...]:
    """The FTS5 expressions of the plain words: any may match, and their scores add up.

    A compound (`worker-service.ts`, `getUserById`) counts by its words and as a whole. Stop words
    count only if there is nothing else.
    """
    named = dict.fromkeys(clause for term in query.words for clause in _clauses(term))
    if query.is_about_names:
        named |= dict.fromkeys(clause for term in query.words for clause in _whole_names(term))
    distinctive = [clause for clause in named if clause.strip('"') not in words.STOP_WORDS]
    return tuple(distinctive or named)[:MAX_CLAUSES]


def is_question(query: Query) -> bool:
    """Whether a query begins like a question or ends like one."""
    first = next(iter(token_sequence(query)), "")
    return first in words.QUESTION_WORDS or any(term.text.endswith("?") for term in query.words)


def token_sequence(query: Query) -> list[str]:
    """The tokens of the words and phrases, in the order of the query."""
    terms = [term for term in (*query.words, *query.required) if not term.author]
    tokens = [token for term in terms for token in words.tokens(plain_versions(term.text))]
    return [unit for token in tokens for unit in _units(token)]


def expression(term: Term, title: str = "title") -> str:
    """The FTS5 expression of a term that must, or must not, match.

    `title` is the column that a `title:` term refers to. Chinese, Japanese and Korean words are
    searched in the whole record, because they have no column of their own.
    """
    if term.author:
        return " AND ".join(_author(name, prefix=term.prefix) for name in author_tags(term.text))
    tokens = words.tokens(term.text)
    plain = [token for token in tokens if not words.has_cjk(token)]
    found = [_prefix(plain) if term.prefix else _phrase(plain)] if plain else []
    found = [f"{title} : {each}" for each in found] if term.title else found
    found += [_pieces(words.split_token(token)) for token in tokens if words.has_cjk(token)]
    found += [_phrase([symbol]) for symbol in words.symbols(term.text)]
    return " AND ".join(found)


def match(
    query: Query,
    *any_of: Iterable[str],
    tags: Iterable[Iterable[str]] = (),
    title: str = "title",
) -> str:
    """The MATCH string: every required term, one expression of each group, no exclusion.

    Each group of `tags` (made by `tag`) is a set of alternatives too. If anything is required,
    words may match but need not. The string is empty for an empty query.
    """
    required = [expression(term, title) for term in query.required]
    wanted = [*required, *(_any([*group, *required]) for group in map(list, any_of) if group)]
    wanted += [f"tags : ({_any(_phrase([token]) for token in group)})" for group in tags]
    everything = " AND ".join(f"({each})" for each in wanted)
    unwanted = exclusions(query, title)
    return f"({everything}) NOT ({unwanted})" if everything and unwanted else everything


def exclusions(query: Query, title: str = "title") -> str:
    """The FTS5 expression of everything that the query excludes; empty if nothing."""
    tagged = [
        f"tags : {_phrase([tag(field, value)])}"
        for field, values in query.excluded_filters
        for value in values
    ]
    return _any([expression(term, title) for term in query.excluded] + tagged)


def _clauses(term: Term) -> Iterator[str]:
    """The expressions of one plain word: its symbols, its tokens, the whole word."""
    text = plain_versions(term.text)
    symbols = words.symbols(text)
    tokens = [_lowered(token) for token in words.tokens(text)]
    yield from (_phrase([symbol]) for symbol in symbols)
    if term.prefix and tokens and not words.has_cjk(text):
        yield _prefix(tokens)
        return
    for token in tokens:
        if not (symbols and len(token) == 1):
            yield from (_phrase([unit]) for unit in _units(token))
            yield from _other_lengths(token)
    yield from (_phrase(inner) for inner in _compounds(text))
    yield from (_phrase([pair]) for pair in words.joined_neighbours(text))


def _whole_names(term: Term) -> Iterator[str]:
    """The versions and files that a word names, each as one phrase."""
    text = plain_versions(term.text)
    yield from (_phrase(words.all_subwords(version)) for version in versions_in(text))
    yield from (_phrase(map(_lowered, words.tokens(file))) for file in files_in(text))


def _other_lengths(token: str) -> Iterator[str]:
    """The same hash longer and shorter, as other texts give it."""
    if is_hash(token):
        yield f"{_phrase([token])}*"
        yield from (_phrase([each]) for each in abbreviations(token))


def _units(token: str) -> list[str]:
    """The units searched one by one: words of alphabetic scripts, character pairs of CJK."""
    runs = words.script_runs(_lowered(token))
    return [unit for run in runs for unit in (words.bigrams(run) if words.has_cjk(run) else [run])]


def _author(name: str, *, prefix: bool) -> str:
    """The expression of a word of an author's name, given by its tag."""
    return f"tags : {_phrase([name[:-1]])}*" if prefix else f"tags : {_phrase([name])}"


def _pieces(cut: list[str]) -> str:
    """The expression of a CJK word: its pieces in order, or the one that it is.

    A word of one pair of characters that stands alone in a text has no pieces in the index.
    """
    return f"parts : {_phrase(cut)}" if len(cut) > 1 else _phrase(cut)


def _lowered(token: str) -> str:
    # Beyond ASCII, SQLite folds case with older tables than Python, so both sides leave it to
    # SQLite.
    return token.lower() if token.isascii() else token


def _compounds(text: str) -> Iterator[list[str]]:
    """The identifiers that have subwords, each as its subwords in order."""
    for token in words.tokens(text):
        if not words.has_cjk(token) and len(inner := words.split_token(token)) > 1:
            yield inner


def _phrase(tokens: Iterable[str]) -> str:
    # Tokens have letters and digits only, so there is no quote to escape.
    return f'"{" ".join(tokens)}"'


def _prefix(tokens: list[str]) -> str:
    """The expression of a phrase whose last word is a prefix.

    `implementat*` must find "implementation", of which the index has "implement".
    """
    *first, last = [*tokens[:-1], _lowered(tokens[-1])]
    cuts = range(_MIN_STEM, len(last))
    stems = [last[:at] for at in cuts if any(end.startswith(last[at:]) for end in _ENDINGS)]
    found = [f"{_phrase([*first, each])}*" for each in _kept_whole(last)]
    found += [_phrase([*first, each]) for stem in stems for each in _kept_whole(stem)]
    return f"({' OR '.join(found)})" if len(found) > 1 else found[0]


def _kept_whole(word: str) -> list[str]:
    """A word, and one that the stemmer cuts back to it where it would turn a final y into an i.

    Otherwise `pay*` would ask for "pai", which is no beginning of "payment".
    """
    return [word, f"{word}e"] if word.endswith("y") else [word]


def _any(expressions: Iterable[str]) -> str:
    return " OR ".join(f"({each})" if " " in each else each for each in expressions)
