"""The query language: what people type, as a typed tree, and from there to FTS5 expressions.

Plain words are alternatives. ``"a phrase"`` and ``title:word`` must hold, ``-word`` must not,
``word*`` is a prefix, and ``file:``, ``type:``, ``concept:`` and ``project:`` (comma lists are
alternatives) are filters for the caller. Everything else is literal: no text is ever an error.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memsvc.adapters.sqlite.fulltext import index_words
from memsvc.core import words

MAX_TERMS = 64
"""Distinct terms that one query may hold; a page of pasted text needs no more to be found."""


MAX_LENGTH = 1000
"""Characters of one term that are looked at: longer than any word, phrase or path."""


MEANT_LENGTH = 4000
"""Characters of a query whose meaning is looked at: more than the model reads."""


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
    return "excluded_tags", index_words.tag(name, value)
