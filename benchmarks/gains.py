"""What each way to rank gains over another, with confidence intervals."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from benchmarks.metrics import Score, average
from benchmarks.ways_to_rank import FULL_TEXT, FUSED

METRIC = "ndcg@10"
SHOWN = (METRIC, "recall@10")

RESAMPLES = 1_000
SEED = 1

SHORT = {
    "locomo_session": "sess",
    "locomo_turn": "turn",
    "locomo_turn_adversarial": "adv",
    "longmemeval_evidence": "lmem",
    "probe_identifiers_cjk": "probe",
    "sw_claudemem_changelog": "cmem",
    "sw_pallets_changelog": "pall",
    "sw_requests_changelog": "reqs",
    "sw_simonw_changelog": "simw",
    "sw_simonw_issues keywords": "i-key",
    "sw_simonw_issues paraphrase": "i-par",
}
"""Short column headings, so that the table fits a screen; other sets keep their names."""

Row = dict[str, Any]
Results = dict[str, dict[str, list[Score]]]
"""Column → way to rank → the scores of the queries, always in the same order."""

Numbers = NDArray[numpy.float64]


def mean_table(results: Results, metric: str) -> list[Row]:
    """One row per way: the mean of each column, the mean of these, and the difference to fused."""
    ways = list(next(iter(results.values())))
    means = {
        way: {_short(column): average(by_way[way])[metric] for column, by_way in results.items()}
        for way in ways
    }
    overall = {way: statistics.fmean(means[way].values()) for way in ways}
    return [
        {
            "row": way,
            **means[way],
            "mean": f"{overall[way]:.4f}",
            "-fused": f"{overall[way] - overall[FUSED.name]:+.4f}",
        }
        for way in ways
    ]


def _short(column: str) -> str:
    return SHORT.get(column, column)


def intervals(results: Results) -> dict[str, list[Row]]:
    """The differences in nDCG@10 with their 95% bootstrap intervals."""
    by_column = [
        {
            "column": _short(column),
            "set": column,
            "queries": len(by_way[FUSED.name]),
            **_interval(_gains(by_way, FUSED.name, FULL_TEXT.name)),
        }
        for column, by_way in results.items()
    ]
    others = [way for way in next(iter(results.values())) if way != FUSED.name]
    by_way = [{"row": way, **_interval(*_all_gains(results, way))} for way in others]
    return {
        "nDCG@10, fused - full text, 95% of 1,000 resamples": by_column,
        "mean nDCG@10, row - fused, 95% of 1,000 resamples": by_way,
    }


def _all_gains(results: Results, way: str) -> list[Numbers]:
    return [_gains(by_way, way, FUSED.name) for by_way in results.values()]


def _gains(by_way: Mapping[str, Sequence[Score]], way: str, other: str) -> Numbers:
    """The gain of each query by one way over another."""
    pairs = zip(by_way[way], by_way[other], strict=True)
    return numpy.array([one[METRIC] - two[METRIC] for one, two in pairs])


def _interval(*gains: Numbers) -> Row:
    """The mean over columns of their queries' mean gain, with its 95% interval. Each resample draws
    as many queries per column as it has, with replacement.
    """
    chance = numpy.random.default_rng(SEED)
    drawn = [each[chance.integers(len(each), size=(RESAMPLES, len(each)))] for each in gains]
    means = numpy.mean([each.mean(axis=1) for each in drawn], axis=0)
    low, high = numpy.percentile(means, [2.5, 97.5])
    mean = numpy.mean([each.mean() for each in gains])
    return {"difference": f"{mean:+.4f}", "from": f"{low:+.4f}", "to": f"{high:+.4f}"}
