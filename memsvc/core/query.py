"""The query language: parses what people type into a `Query`.

Any plain word may match. ``"a phrase"``, ``title:word`` and ``author:name`` must match, ``-word``
must not, ``word*`` is a prefix, and the name of a filter with a colon filters, as in
``type:bugfix`` (comma-separated values are alternatives). Everything else is literal: no text is an
error.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from memsvc.core import words
from memsvc.core.filters import FIELDS, Groups
from memsvc.core.naming.commits import Commit, is_hash, parse_commit
from memsvc.core.naming.names import Name, files_in, names_in

MAX_LENGTH: Final = 2000
"""Maximum characters of a query, a page of text; the model that embeds it reads as much."""

MAX_TERMS: Final = 64
"""Maximum distinct terms per query; a page of pasted text is found with as many."""

MAX_TERM_LENGTH: Final = 1000
"""Maximum characters per term, longer than any word, phrase or path."""

MAX_PREFIXES: Final = 8
"""Maximum prefixes per query; each is looked up as all the words that begin with it."""

MIN_PREFIX: Final = 2
"""Minimum length of a prefix: half of all records have a word that begins with some letter."""

MIN_NAMED: Final = 0.25
"""The share of names in a query from which on it is about them. Without this bound, sentences that
mention a version or a file in passing lose .002 nDCG@10 of a changelog.
"""

MAX_COMMITS: Final = 16
"""Maximum hashes per query whose commits are looked up."""

IN_FIELD: Final = ("title", "author")
"""What restricts a word to one field, as in `title:word`."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Flags such as `-v`, `-s/--set` and `--force` are words, not exclusions. A quote inside other text,
# as in `{"key": 1}`, does not start a phrase.
_ITEM = re.compile(
    rf"""(?P<minus>-(?=[^\W_]\w|[^\W\x00-\x7f]|"))?
    (?:(?P<field>title|author|{"|".join(FIELDS)}):)?
    (?:"(?P<phrase>[^"]*)"(?=[\s,.;!?)]|$)|(?P<word>\S+))""",
    re.IGNORECASE | re.VERBOSE,
)
_PREFIX = re.compile(r".*[^\W_]\*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    """One word, prefix or phrase; `title` and `author` restrict it to that field."""

    text: str
    prefix: bool = False
    phrase: bool = False
    title: bool = False
    author: bool = False

    @property
    def commits(self) -> tuple[Commit | None, ...]:
        """For each of its tokens, the commit that it may name; none in a title or author."""
        return (
            () if self.title or self.author else tuple(map(parse_commit, words.tokens(self.text)))
        )

    @property
    def commit(self) -> Commit | None:
        """The commit that it may name, if it is nothing but a hash."""
        return self.commits[0] if len(self.commits) == 1 else None


Entry = tuple[str, str, str | Term]
"""One entry of a query: its attribute of `Query`, its filter, if any, and its value."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. `ignored` counts the terms beyond `MAX_TERMS`; `whole` has the prefixes that
    are searched as whole words, because they are too short or too many.

    Any of `words` may match, all of `required` must, none of `excluded` may. Filter values are kept
    as typed. `also` has other wordings, each searchable as this is then: what matches any of them
    matches.
    """

    words: tuple[Term, ...] = ()
    required: tuple[Term, ...] = ()
    excluded: tuple[Term, ...] = ()
    filters: Groups = ()
    excluded_filters: Groups = ()
    ignored: int = 0
    whole: tuple[str, ...] = ()
    also: tuple["Query", ...] = ()

    @property
    def wordings(self) -> tuple["Query", ...]:
        """This query alone, and its other wordings."""
        return (replace(self, also=()), *self.also) if self.also else (self,)

    @property
    def searchable(self) -> bool:
        """Whether the query has anything to search the text for."""
        return bool(self.words or self.required)

    @property
    def names(self) -> tuple[Name, ...]:
        """The commits, issues and versions that it names."""
        terms = [term for term in (*self.words, *self.required) if not term.author]
        return names_in(" ".join(term.text for term in terms))

    @property
    def is_about_names(self) -> bool:
        """Whether names of commits, issues, versions and files are MIN_NAMED of it, stop words
        aside. A sentence that mentions Python 3.12 is about something else.
        """
        terms = [term for term in (*self.words, *self.required) if not term.author]
        plain = [t for t in terms if not words.STOP_WORDS.issuperset(words.tokens(t.text.lower()))]
        files = {file.lower() for term in terms for file in files_in(term.text)}
        return len(self.names) + len(files) >= MIN_NAMED * max(1, len(plain))

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits that it may name, with any of its words or with a whole required term."""
        named = [commit for term in self.words for commit in term.commits]
        named += [term.commit for term in self.required]
        return tuple(dict.fromkeys(commit for commit in named if commit))[:MAX_COMMITS]

    @property
    def excludes(self) -> bool:
        """Whether the query excludes anything."""
        return bool(self.excluded or self.excluded_filters)

    @property
    def only_excludes(self) -> bool:
        """Whether the query consists of exclusions only."""
        return self.excludes and not self.searchable


NO_QUERY: Final = Query()
"""The empty query."""


def parse(text: str) -> Query:
    """Parse a query. Every text is a valid query."""
    found = dict.fromkeys(
        entry
        for item in dict.fromkeys(_ITEM.findall(_UNSTORABLE.sub(" ", text)))
        for entry in _items(*item)
    )
    kept = list(found)[:MAX_TERMS]
    costly = _costly_prefixes(kept)
    places: dict[tuple[str, str], dict[str | Term, None]] = {}
    for place, field, value in kept:
        cheap = (
            replace(value, prefix=False) if isinstance(value, Term) and value in costly else value
        )
        places.setdefault((place, field), {})[cheap] = None
    return _query(places, len(found) - len(kept), costly)


def _costly_prefixes(entries: Iterable[Entry]) -> list[Term]:
    """The prefixes that are too short, and those beyond MAX_PREFIXES."""
    prefixes = [term for _, _, term in entries if isinstance(term, Term) and term.prefix]
    long = [term for term in prefixes if len(words.tokens(term.text)[-1]) >= MIN_PREFIX]
    allowed = list(dict.fromkeys(long))[:MAX_PREFIXES]
    return [term for term in dict.fromkeys(prefixes) if term not in allowed]


def _query(
    places: Mapping[tuple[str, str], Iterable[str | Term]], ignored: int, whole: Iterable[Term]
) -> Query:
    found: dict[str, Any] = {}
    for (place, field), values in places.items():
        group = ((field, tuple(values)),) if field else tuple(values)
        found[place] = found.get(place, ()) + group
    return Query(**found, ignored=ignored, whole=tuple(f"{term.text}*" for term in whole))


def plain_text(text: str) -> str:
    """The text of a query without its filters, exclusions and hashes, for embedding."""
    items = _ITEM.finditer(_UNSTORABLE.sub(" ", text[:MAX_LENGTH]))
    kept = (_words_of(item) for item in items if not item["minus"])
    return " ".join(filter(None, kept))


def _words_of(item: re.Match[str]) -> str:
    if (item["field"] or "title").lower() != "title":
        return ""
    text = item["word"] if item["phrase"] is None else item["phrase"]
    tokens = words.tokens(text)
    return "" if tokens and all(map(is_hash, tokens)) else text


def _items(minus: str, field: str, phrase: str, word: str) -> Iterator[Entry]:
    """The entries of a `Query` for one item of the text: attribute, filter field, value."""
    text, name = (word or phrase)[:MAX_TERM_LENGTH], field.lower()
    if name in ("", *IN_FIELD):
        yield from _term(text, bool(minus), quoted=not word, field=name)
    else:
        for value in filter(None, map(str.strip, text.split(","))):
            yield _filter(name, value, bool(minus))


def _term(text: str, minus: bool, *, quoted: bool, field: str) -> Iterator[Entry]:
    prefix = not quoted and _PREFIX.fullmatch(text) is not None
    if words.tokens(text) or (field != "author" and words.is_searchable(text)):
        place = "excluded" if minus else "required" if quoted or field else "words"
        plain = text.removesuffix("*") if prefix else text
        title, author = (field == each for each in IN_FIELD)
        yield place, "", Term(plain, prefix, quoted, title, author)


def _filter(name: str, value: str, minus: bool) -> Entry:
    if not minus:
        return "filters", name, value
    if FIELDS[name].is_path:  # a file is also excluded where only the text names it
        return "excluded", "", Term(value, phrase=True)
    return "excluded_filters", name, value
