"""Fuses the full-text ranking and the semantic ranking into one."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

WORDS_LEAST: Final = 0.1
"""The base weight of the full-text ranking."""

WORDS_COVERED: Final = 0.4
"""Added to that weight when the best full-text match holds all words of the query: then it is no
paraphrase.
"""

WORDS_NEAR: Final = 0.5
"""Added to that weight, times the best cosine: where many records are similar, words decide."""


LAST: Final = 0.01
"""The scaled score of a ranking's last candidate: above 0, because it was found and others were
not.
"""


@dataclass(frozen=True, slots=True)
class Fused:
    """How much full-text and semantic search contribute to a record's relevance; the sum is 0-1."""

    lexical: float
    semantic: float

    @property
    def relevance(self) -> float:
        return self.lexical + self.semantic


def fuse(
    lexical: Mapping[Key, float], cosines: Mapping[Key, float], coverage: float
) -> dict[Key, Fused]:
    """Fuse the candidates of both rankings; a candidate that one ranking lacks gets 0 from it.

    Each ranking is rescaled so that its best candidate has 1 and its last MIN_SCALED. With a the
    weight of full text (BASE_WEIGHT + COVERAGE_WEIGHT * coverage + COSINE_WEIGHT * best cosine, at
    most 1), a record gets a * lexical + (1 - a) * cosine. The result is multiplied by the quality
    of the best candidates, so that relevance is comparable between queries.
    """
    nearest = max(0.0, max(cosines.values(), default=0.0))
    vote = min(1.0, WORDS_LEAST + WORDS_COVERED * coverage + WORDS_NEAR * nearest)
    best = vote * max(lexical.values(), default=0.0) + (1 - vote) * nearest
    words, meanings = _stretched(lexical), _stretched(cosines)
    return {
        key: Fused(best * vote * words.get(key, 0.0), best * (1 - vote) * meanings.get(key, 0.0))
        for key in {**words, **meanings}
    }


def _stretched(values: Mapping[Key, float]) -> dict[Key, float]:
    if not values:
        return {}
    low, high = min(values.values()), max(values.values())
    width = high - low
    if not width:
        return dict.fromkeys(values, 1.0)
    return {key: LAST + (1 - LAST) * (value - low) / width for key, value in values.items()}
