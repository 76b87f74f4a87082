"""Metrics of rankings, and percentiles."""

import math
from collections.abc import Iterable, Mapping, Sequence

METRICS = ("recall@10", "mrr@10", "ndcg@10", "hit@1", "hit@10", "empty")
DEPTH = 10

Score = dict[str, float]
"""A value for each metric."""


def score(ranking: Sequence[str], gold: Mapping[str, float]) -> Score:
    """All metrics of one ranking, best first; `gold` has the grade of each relevant id."""
    ranked = list(dict.fromkeys(ranking))
    top = ranked[:DEPTH]
    return {
        "recall@10": sum(id in gold for id in top) / len(gold),
        "mrr@10": next((1 / place for place, id in enumerate(top, 1) if id in gold), 0.0),
        "ndcg@10": _gain(gold.get(id, 0.0) for id in top) / _gain(_ideal(gold)),
        "hit@1": float(any(id in gold for id in ranked[:1])),
        "hit@10": float(any(id in gold for id in top)),
        "empty": float(not ranked),
    }


def _ideal(gold: Mapping[str, float]) -> list[float]:
    return sorted(gold.values(), reverse=True)[:DEPTH]


def _gain(grades: Iterable[float]) -> float:
    """Discounted cumulative gain: each grade divided by the logarithm of its rank."""
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def average(scores: Sequence[Mapping[str, float]]) -> Score:
    """The mean of each metric."""
    return {name: sum(each[name] for each in scores) / len(scores) for name in METRICS}


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
