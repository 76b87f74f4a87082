"""Fuses the full-text ranking and the semantic ranking into one."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

BASE_WEIGHT: Final = 0.1
"""The base weight of the full-text ranking."""

COVERAGE_WEIGHT: Final = 0.4
"""Added to that weight when the best full-text match holds all words of the query: then it is no
paraphrase.
"""

COSINE_WEIGHT: Final = 0.5
"""Added to that weight, times the best cosine: where many records are similar, words decide."""

MIN_SCALED: Final = 0.01
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
    weight = min(1.0, BASE_WEIGHT + COVERAGE_WEIGHT * coverage + COSINE_WEIGHT * nearest)
    best = weight * max(lexical.values(), default=0.0) + (1 - weight) * nearest
    lexical_scores, semantic_scores = _rescaled(lexical), _rescaled(cosines)
    return {
        key: Fused(
            best * weight * lexical_scores.get(key, 0.0),
            best * (1 - weight) * semantic_scores.get(key, 0.0),
        )
        for key in {**lexical_scores, **semantic_scores}
    }


def _rescaled(values: Mapping[Key, float]) -> dict[Key, float]:
    if not values:
        return {}
    low, high = min(values.values()), max(values.values())
    width = high - low
    if not width:
        return dict.fromkeys(values, 1.0)
    return {
        key: MIN_SCALED + (1 - MIN_SCALED) * (value - low) / width for key, value in values.items()
    }
