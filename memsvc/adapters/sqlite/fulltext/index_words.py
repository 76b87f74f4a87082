"""The extra words of the index: subwords for one column, and tags to filter by.

SQLite's ``unicode61`` tokenizer keeps runs of letters and digits and drops everything else. It
misses the subwords of an identifier, words in Chinese and Japanese, ``C++`` and emoji.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from memsvc.core.filters import FIELDS
from memsvc.core.records import SHAPES, Record, author_of, kind_of
from memsvc.core.words import (
    MAX_CACHED,
    all_subwords,
    cjk_runs,
    composed,
    is_compound,
    joined_neighbours,
    symbols,
    tokens,
)

_IDENTIFIER = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)*")


def record_subwords(record: Record) -> str:
    """The extra words of a record, from all its texts and files, and its author."""
    shape = SHAPES[kind_of(record)]
    cells = (getattr(record, name) for name in (*shape.texts, *shape.files))
    found = index_subwords("\n".join(c if isinstance(c, str) else "\n".join(c) for c in cells))
    author = " ".join(tokens(author_of(record)))
    return "\n".join(filter(None, (found, author)))


def record_tags(record: Record) -> str:
    """The tags of a record: one per value that it can be filtered by, without paths, and one per
    word of its author's name.
    """
    fields = [field for field in FIELDS.values() if not field.is_path]
    tags = [tag(field.name, value) for field in fields for value in field.values(record)]
    return " ".join([*tags, *author_tags(author_of(record))])


def index_subwords(text: str) -> str:
    """The words of a text that unicode61 misses, in lower case.

    Subwords of one identifier stay next to each other in their order, so that a phrase finds them;
    joined neighbours, symbols and single CJK characters need no order and come at the end, once
    each.
    """
    text = composed(text)
    ordered = dict.fromkeys(sequence for name in _identifiers(text) for sequence in _ordered(name))
    loose = dict.fromkeys(joined_neighbours(text))
    loose.update(dict.fromkeys(symbols(text)))
    loose.update(dict.fromkeys(char for run in cjk_runs(text) for char in run))
    return "\n".join([*ordered, *([" ".join(loose)] if loose else [])])


def tag(field: str, value: str) -> str:
    """The token for ``field=value`` in the index: ``typezbugfix0``.

    Values ignore case. Characters outside ``a-y0-9`` are written as a hexadecimal code between two
    z, so that different values stay different; the final 0 stops the stemmer.
    """
    return f"{field}z{''.join(map(_escaped, composed(value).casefold()))}0"


def author_tags(name: str) -> list[str]:
    """The tokens for the words of an author's name, whose case and accents the index ignores."""
    return [f"authorz{word}0" for word in tokens(name)]


def _escaped(char: str) -> str:
    return char if "a" <= char <= "y" or "0" <= char <= "9" else f"z{ord(char):x}z"


def _identifiers(text: str) -> Iterator[str]:
    return filter(is_compound, dict.fromkeys(_IDENTIFIER.findall(text)))


@lru_cache(maxsize=MAX_CACHED)
def _ordered(identifier: str) -> tuple[str, ...]:
    """The subwords of an identifier as one sequence, if the tokenizer would miss any."""
    inner = all_subwords(identifier)
    return (" ".join(inner),) if len(inner) > len(tokens(identifier)) else ()
