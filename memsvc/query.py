"""The query language: what people type, as a typed tree, and from there to FTS5 expressions.

Plain words are alternatives. ``"a phrase"`` and ``title:word`` must hold, ``-word`` must not,
``word*`` is a prefix, and ``file:``, ``type:``, ``concept:`` and ``project:`` (comma lists are
alternatives) are filters for the caller. Everything else is literal: no text is ever an error.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memsvc import words

MAX_TERMS = 64
"""Distinct terms that one query may hold; a page of pasted text needs no more to be found."""

MAX_CLAUSES = 128
"""Words and wholes that the terms of one query may come to, compounds taken apart."""

MAX_LENGTH = 1000
"""Characters of one term that are looked at: longer than any word, phrase or path."""

MEANT_LENGTH = 4000
"""Characters of a query whose meaning is looked at: more than the model reads."""

# What the stemmer takes off the ends of words, so that the index may hold less than the prefix.
_ENDINGS = """
    ability able ably ally ance ances ation ational ations ative ator ators ed ement ence ences
    ency ent er ers es eness fulness ibility ible icate icated ical ication ications icity ing
    ings ion ional ions ism ities ity ive iveness ization ize ized izer izing ly ment ments ness
    or ors ous ousness s tional y
    """.split()  # noqa: SIM905 - a list of strings would take a screen
_SHORTEST_STEM = 5

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Flags such as `-v`, `-s/--set` and `--force` are words, not exclusions; a quotation that runs on,
# as in `{"key": 1}`, is text, not a phrase.
_ITEM = re.compile(
    r"""(?P<minus>-(?=[^\W_]\w|[^\W\x00-\x7f]|"))?
    (?:(?P<field>title|file|type|concept|project):)?
    (?:"(?P<phrase>[^"]*)"(?=[\s,.;!?)]|$)|(?P<word>\S+))""",
    re.IGNORECASE | re.VERBOSE,
)
_PREFIX = re.compile(r".*[^\W_]\*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    """One word, prefix or phrase; `title` confines it to the title of a record."""

    text: str
    prefix: bool = False
    phrase: bool = False
    title: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What a text asks for. `ignored` counts the terms beyond `MAX_TERMS`.

    `excluded_tags` are tokens of `words.tag`; the other filters hold values as typed.
    """

    words: tuple[Term, ...] = ()
    required: tuple[Term, ...] = ()
    excluded: tuple[Term, ...] = ()
    files: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    excluded_tags: tuple[str, ...] = ()
    ignored: int = 0

    @property
    def searchable(self) -> bool:
        """Whether there is anything to look for in the text of records."""
        return bool(self.words or self.required)

    @property
    def only_excludes(self) -> bool:
        """Whether the query asks for everything but what it names."""
        return not self.searchable and bool(self.excluded or self.excluded_tags)


def parse(text: str) -> Query:
    """Read a query. Any text is one."""
    places: dict[str, dict[str | Term, None]] = {}
    seen: set[tuple[str, str | Term]] = set()
    for item in dict.fromkeys(_ITEM.findall(_UNSTORABLE.sub(" ", text))):
        for place, value in _meanings(*item):
            seen.add((place, value))
            if len(seen) <= MAX_TERMS:
                places.setdefault(place, {})[value] = None
    return Query(
        **{place: tuple(values) for place, values in places.items()},  # type: ignore[arg-type]
        ignored=max(0, len(seen) - MAX_TERMS),
    )


def meaning(text: str) -> str:
    """Give what a query says, as it says it: its text without filters and exclusions."""
    items = _ITEM.finditer(_UNSTORABLE.sub(" ", text[:MEANT_LENGTH]))
    said = (_said(item) for item in items if not item["minus"])
    return " ".join(filter(None, said))


def _said(item: re.Match[str]) -> str:
    if (item["field"] or "title").lower() != "title":
        return ""
    return item["word"] if item["phrase"] is None else item["phrase"]


def clauses(query: Query) -> tuple[str, ...]:
    """Give the FTS5 expressions of the plain words: any may match, and their scores add up.

    A compound (`worker-service.ts`, `getUserById`) counts by its words and by its whole. Stop
    words count only where there is nothing else.
    """
    named = dict.fromkeys(clause for term in query.words for clause in _clauses(term))
    telling = [clause for clause in named if clause.strip('"') not in words.STOP_WORDS]
    return tuple(telling or named)[:MAX_CLAUSES]


def token_sequence(query: Query) -> list[str]:
    """Give the tokens of the words and phrases as they follow each other in the query."""
    terms = (*query.words, *query.required)
    return [piece for term in terms for token in words.tokens(term.text) for piece in _units(token)]


def expression(term: Term, title: str = "title") -> str:
    """Give the FTS5 expression of what must, or must not, stand as written.

    `title` names the column that a `title:` term means. Chinese, Japanese and Korean words have
    no column of their own: they are looked for in the whole record.
    """
    tokens = words.tokens(term.text)
    plain = [token for token in tokens if not words.has_cjk(token)]
    found = [_prefix(plain) if term.prefix else _phrase(plain)] if plain else []
    found = [f"{title} : {each}" for each in found] if term.title else found
    found += [f"parts : {_phrase(words.cut(token))}" for token in tokens if words.has_cjk(token)]
    found += [_phrase([symbol]) for symbol in words.symbols(term.text)]
    return " AND ".join(found)


def match(
    query: Query,
    *any_of: Iterable[str],
    tags: Iterable[Iterable[str]] = (),
    title: str = "title",
) -> str:
    """Give the MATCH string: every required term, one expression of each group, no exclusion.

    Each group of `tags` is a set of alternatives too (tokens of `words.tag`). Where something is
    required, words are welcome but need not match. The string is empty if nothing is asked for.
    """
    required = [expression(term, title) for term in query.required]
    wanted = [*required, *(_any([*group, *required]) for group in map(list, any_of) if group)]
    wanted += [f"tags : ({_any(_phrase([token]) for token in group)})" for group in tags]
    everything = " AND ".join(f"({each})" for each in wanted)
    unwanted = exclusions(query, title)
    return f"({everything}) NOT ({unwanted})" if everything and unwanted else everything


def exclusions(query: Query, title: str = "title") -> str:
    """Give the FTS5 expression of all that the query excludes; empty if nothing."""
    tagged = [f"tags : {_phrase([token])}" for token in query.excluded_tags]
    return _any([expression(term, title) for term in query.excluded] + tagged)


def _meanings(minus: str, field: str, phrase: str, word: str) -> Iterator[tuple[str, str | Term]]:
    """Give where one item of the text belongs in a `Query`, and as what."""
    text, name = (word or phrase)[:MAX_LENGTH], field.lower()
    if name in ("", "title"):
        yield from _term(text, bool(minus), quoted=not word, title=bool(name))
    else:
        for value in filter(None, map(str.strip, text.split(","))):
            yield _filter(name, value, bool(minus))


def _term(text: str, minus: bool, *, quoted: bool, title: bool) -> Iterator[tuple[str, Term]]:
    prefix = not quoted and _PREFIX.fullmatch(text) is not None
    if words.any_in(text):
        place = "excluded" if minus else "required" if quoted or title else "words"
        yield place, Term(text.removesuffix("*") if prefix else text, prefix, quoted, title)


def _filter(name: str, value: str, minus: bool) -> tuple[str, str | Term]:
    if not minus:
        return f"{name}s", value
    if name == "file":
        return "excluded", Term(value, phrase=True)
    return "excluded_tags", words.tag(name, value)


def _clauses(term: Term) -> Iterator[str]:
    """Give the clauses of one plain word: its symbols, its tokens, its whole."""
    symbols = words.symbols(term.text)
    tokens = [_lowered(token) for token in words.tokens(term.text)]
    yield from (_phrase([symbol]) for symbol in symbols)
    if term.prefix and tokens and not words.has_cjk(term.text):
        yield _prefix(tokens)
        return
    for token in tokens:
        if not (symbols and len(token) == 1):
            yield from (_phrase([unit]) for unit in _units(token))
    yield from (_phrase(inner) for inner in _wholes(term.text))
    yield from (_phrase([pair]) for pair in words.joined(term.text))


def _units(token: str) -> list[str]:
    """Give what is looked for one by one: words of Latin and such, character pairs of CJK."""
    runs = words.script_runs(_lowered(token))
    return [unit for run in runs for unit in (words.bigrams(run) if words.has_cjk(run) else [run])]


def _lowered(token: str) -> str:
    # Beyond ASCII, SQLite folds case by older tables than Python; both sides are left to it.
    return token.lower() if token.isascii() else token


def _wholes(text: str) -> Iterator[list[str]]:
    """Give the identifiers that are made of parts, as their parts in order."""
    for token in words.tokens(text):
        if not words.has_cjk(token) and len(inner := words.cut(token)) > 1:
            yield inner


def _phrase(tokens: Iterable[str]) -> str:
    # Tokens hold letters and digits only, so there is no quote to escape.
    return f'"{" ".join(tokens)}"'


def _prefix(tokens: list[str]) -> str:
    """Give the expression of a phrase whose last word goes on.

    `implementat*` must find "implementation", of which the index holds "implement".
    """
    last = _lowered(tokens[-1])
    cuts = range(_SHORTEST_STEM, len(last))
    stems = [last[:at] for at in cuts if any(end.startswith(last[at:]) for end in _ENDINGS)]
    shorter = [_phrase([*tokens[:-1], stem]) for stem in stems]
    whole = _phrase([*tokens[:-1], last]) + "*"
    return f"({' OR '.join([whole, *shorter])})" if shorter else whole


def _any(expressions: Iterable[str]) -> str:
    return " OR ".join(f"({each})" if " " in each else each for each in expressions)
