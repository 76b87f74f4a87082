"""TODO index_words."""

import re
from collections.abc import Iterable
from functools import lru_cache

from memsvc.core.words import _CJK_RUN, _TOKEN, _composed, _is_compound, cut, joined, symbols

_IDENTIFIER = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)*")


def parts(text: str) -> str:
    """Give the words in `text` that unicode61 would not make, lower-case, for the search column.

    Parts of one identifier stay next to each other in their order, so that a phrase finds them;
    joined neighbours, symbols and single CJK characters need no order and come once, at the end.
    """
    text = _composed(text)
    ordered = dict.fromkeys(sequence for run in _identifiers(text) for sequence in _ordered(run))
    loose = dict.fromkeys(joined(text))
    loose.update(dict.fromkeys(symbols(text)))
    loose.update(dict.fromkeys(char for run in _CJK_RUN.findall(text) for char in run))
    return "\n".join([*ordered, *([" ".join(loose)] if loose else [])])


def tag(field: str, value: str) -> str:
    """Give the one token that stands for ``field=value`` inside the index: ``typezbugfix0``.

    Values are equal without regard to case. Characters outside ``a-y0-9`` are written as their
    hexadecimal code between two z, which keeps different values different; the last 0 keeps the
    stemmer away.
    """
    return f"{field}z{''.join(map(_escaped, _composed(value).casefold()))}0"


def _escaped(char: str) -> str:
    return char if "a" <= char <= "y" or "0" <= char <= "9" else f"z{ord(char):x}z"


def _identifiers(text: str) -> Iterable[str]:
    return filter(_is_compound, dict.fromkeys(_IDENTIFIER.findall(text)))


@lru_cache(maxsize=65_536)
def _ordered(identifier: str) -> tuple[str, ...]:
    """Give the parts of an identifier as one sequence, if the tokenizer would miss any."""
    found = _TOKEN.findall(identifier)
    inner = [piece for token in found for piece in cut(token)]
    return (" ".join(inner),) if len(inner) > len(found) else ()
