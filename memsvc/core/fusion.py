"""Fuses the full-text ranking and the semantic ranking into one."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

MIN_SCALED: Final = 0.01
"""The scaled score of a ranking's last candidate: above 0, because it was found and others were
not.
"""

MIN_LENGTH: Final = 20
"""Characters that a shorter query counts as: a name alone is no less literal than two words."""

RIVAL: Final = 5
"""How many candidates a lead leaves out: it is the gap between the best and the next after them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a query shows about how far its words can be trusted.

    `coverage` is the share (0-1) of the query's words that the best full-text match holds;
    `lexical_lead` how far that match is ahead, as a share of its score (0-1); `semantic_lead` how
    far the most similar record is ahead in cosine; `length` the logarithm of the query's
    characters; `discord` how much less similar the best full-text match is than the most similar
    record, in cosine.
    """

    coverage: float
    lexical_lead: float
    semantic_lead: float
    length: float
    discord: float


BIAS: Final = -5.6
COEFFICIENTS: Final = Evidence(4.4, 2.6, -6.5, 1.05, -4.3)
"""The logistic weight of full text: the more of a query the best match holds, the less it is a
paraphrase; whoever is clearly ahead is trusted; half of a long query says more than half of a short
one; words that lead away from all that is similar mislead. Near what `python -m benchmarks fit`
gives, which also fits without each evaluation set in turn; of values that gain as much, those were
taken at which no set falls below full text alone.
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
    lexical: Mapping[Key, float], cosines: Mapping[Key, float], coverage: float, length: int
) -> dict[Key, Fused]:
    """Fuse the candidates of both rankings; a candidate that one ranking lacks gets 0 from it.

    `coverage` is that of the best full-text match, `length` the characters of the query. Each
    ranking is rescaled so that its best candidate has 1 and its last MIN_SCALED. With a the weight
    of full text, a record gets a * lexical + (1 - a) * cosine. The result is multiplied by the
    quality of the best candidates, so that relevance is comparable between queries.
    """
    weight = full_text_weight(evidence(lexical, cosines, coverage, length))
    if not lexical or not cosines:  # what one ranking alone found needs no weighing
        weight = 1.0 if lexical else 0.0
    nearest = min(1.0, max(0.0, max(cosines.values(), default=0.0)))
    best = weight * max(lexical.values(), default=0.0) + (1 - weight) * nearest
    lexical_scores, semantic_scores = _rescaled(lexical), _rescaled(cosines)
    return {
        key: Fused(
            best * weight * lexical_scores.get(key, 0.0),
            best * (1 - weight) * semantic_scores.get(key, 0.0),
        )
        for key in {**lexical_scores, **semantic_scores}
    }


def full_text_weight(shown: Evidence) -> float:
    """The weight of full text (0-1), a logistic function of the evidence."""
    pairs = zip(astuple(COEFFICIENTS), astuple(shown), strict=True)
    return 1 / (1 + math.exp(-BIAS - sum(coefficient * value for coefficient, value in pairs)))


def evidence(
    lexical: Mapping[Key, float], cosines: Mapping[Key, float], coverage: float, length: int
) -> Evidence:
    """What the candidates and the query show."""
    best = max(lexical.values(), default=0.0)
    rivals = [(1 - coverage) * best] * (RIVAL + 1 - len(lexical))  # if there are too few
    best, rival = _leaders([*lexical.values(), *rivals])
    nearest, other = _leaders(cosines.values())
    lowest = min(cosines.values(), default=0.0)
    chosen = (cosines.get(key, lowest) for key, score in lexical.items() if score == best)
    return Evidence(
        coverage=coverage,
        lexical_lead=(best - rival) / best if best else 0.0,
        semantic_lead=nearest - other,
        length=math.log(max(MIN_LENGTH, length)),
        discord=nearest - max(chosen, default=nearest),
    )


def _leaders(values: Iterable[float]) -> tuple[float, float]:
    """The best value and the one RIVAL places behind it, or the last."""
    best_first = sorted(values, reverse=True)[: RIVAL + 1]
    return (best_first[0], best_first[-1]) if best_first else (0.0, 0.0)


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
