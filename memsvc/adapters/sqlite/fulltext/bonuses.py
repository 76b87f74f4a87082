"""Bonuses for what bm25 cannot see: neighbouring words, words as they were typed, and names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memsvc.adapters.sqlite.fulltext.match import token_sequence
from memsvc.core.naming.names import Name
from memsvc.core.query import Query

NEIGHBOURS_BONUS: Final = 0.2
"""Added if all words of the query are next to each other, as in the query."""

EXACT_BONUS: Final = 0.1
"""Added if all words occur in the form typed: the stemmer merges too much."""

NAMES_BONUS: Final = 1.0
"""Added if all names of a query about names occur as such: #1025 is no other 1025, 1.0a9 no 1.0.
A name outweighs all other words.
"""

_GAPS = re.compile(r"[\W_]+")
_ASCII_GAPS = {code: " " for code in range(128) if not chr(code).isalnum()}


@dataclass(frozen=True, slots=True)
class Bonuses:
    """The bonuses of a query: pairs of neighbours, words with their share (sum 1), and names."""

    pairs: list[str]
    exact: dict[str, float]
    names: tuple[Name, ...] = ()

    @property
    def highest(self) -> float:
        """The sum of all bonuses."""
        plain = NEIGHBOURS_BONUS * bool(self.pairs) + EXACT_BONUS * bool(self.exact)
        return plain + NAMES_BONUS * bool(self.names)

    def earned_by(self, text: str) -> float:
        """The bonuses that a text earns."""
        plain = spaced(text)
        together = sum(pair in plain for pair in self.pairs) / max(1, len(self.pairs))
        exact = sum(share for word, share in self.exact.items() if word in plain)
        return NEIGHBOURS_BONUS * together + EXACT_BONUS * exact + NAMES_BONUS * self._named(text)

    def _named(self, text: str) -> float:
        """The share of the names that a text has."""
        held = sum(name.written.search(text) is not None for name in self.names)
        return held / max(1, len(self.names))


def bonuses_of(query: Query, idfs: Mapping[str, float]) -> Bonuses:
    """The bonuses of a query; `idfs` has the idf of each of its expressions."""
    neighbours = pairwise(token_sequence(query))
    pairs = dict.fromkeys(spaced(f"{left} {right}") for left, right in neighbours)
    typed = {spaced(each): idf for each, idf in idfs.items() if each[0] == each[-1] == '"'}
    whole = sum(typed.values())
    exact = {word: idf / whole for word, idf in typed.items()}
    return Bonuses(list(pairs), exact, query.names if query.is_about_names else ())


def spaced(text: str) -> str:
    """The tokens of a text in lower case, with one space around each."""
    if text.isascii():  # twice as fast as the regular expression, and most text is ASCII
        return f" {' '.join(text.lower().translate(_ASCII_GAPS).split())} "
    return f" {_GAPS.sub(' ', text.lower())} "
