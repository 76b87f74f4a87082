"""Bonuses for what bm25 cannot see: neighbouring words, and words in the exact form typed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memsvc.adapters.sqlite.fulltext.match import token_sequence
from memsvc.core.query import Query

NEIGHBOURS_BONUS: Final = 0.2
"""Added if all words of the query are next to each other, as in the query."""

EXACT_BONUS: Final = 0.1
"""Added if all words occur in the form typed: the stemmer merges too much."""

_GAPS = re.compile(r"[\W_]+")
_ASCII_GAPS = {code: " " for code in range(128) if not chr(code).isalnum()}


@dataclass(frozen=True, slots=True)
class Bonuses:
    """The bonuses of a query: pairs of neighbours, and words with their share (sum 1)."""

    pairs: list[str]
    exact: dict[str, float]

    @property
    def highest(self) -> float:
        """The sum of all bonuses."""
        return NEIGHBOURS_BONUS * bool(self.pairs) + EXACT_BONUS * bool(self.exact)

    def earned_by(self, text: str) -> float:
        """The bonuses that a text earns."""
        plain = spaced(text)
        together = sum(pair in plain for pair in self.pairs) / max(1, len(self.pairs))
        exact = sum(share for word, share in self.exact.items() if word in plain)
        return NEIGHBOURS_BONUS * together + EXACT_BONUS * exact


def bonuses_of(query: Query, idfs: Mapping[str, float]) -> Bonuses:
    """The bonuses of a query; `idfs` has the idf of each of its expressions."""
    neighbours = pairwise(token_sequence(query))
    pairs = dict.fromkeys(spaced(f"{left} {right}") for left, right in neighbours)
    typed = {spaced(each): idf for each, idf in idfs.items() if each[0] == each[-1] == '"'}
    whole = sum(typed.values())
    return Bonuses(list(pairs), {word: idf / whole for word, idf in typed.items()})


def spaced(text: str) -> str:
    """The tokens of a text in lower case, with one space around each."""
    if text.isascii():  # twice as fast as the regular expression, and most text is ASCII
        return f" {' '.join(text.lower().translate(_ASCII_GAPS).split())} "
    return f" {_GAPS.sub(' ', text.lower())} "
