"""Fits how much full text says about a query: the coefficients in `memsvc.core.fusion`."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

import click
import numpy
from numpy.typing import NDArray

from benchmarks.ablation import columns_of
from benchmarks.evaluation import EvaluationSet, read_sets
from benchmarks.loading import load, opened_store
from benchmarks.ranked_store import AskedStore, Bench, Column, Remembering, bench_of, embed_missing
from benchmarks.tables import report
from benchmarks.ways_to_rank import FUSED, patched
from benchmarks.worker import home_in
from memsvc.application.semantic.worker import SemanticWorker
from memsvc.configuration.bootstrap import load_embedder
from memsvc.configuration.settings import load_settings
from memsvc.core import fusion
from memsvc.core.errors import MemsvcError
from memsvc.core.fusion import Evidence, full_text_weight

METRIC: Final = "ndcg@10"

GRID: Final = tuple(step / 10 for step in range(11))
"""The weights of full text that every query is ranked with; gains between them are interpolated."""

STEPS: Final = 600
RATE: Final = 0.05
MEMORY: Final = (0.9, 0.99)
"""Adam (Kingma and Ba, 2015): its steps, its first rate, its decay of slopes and their squares."""

PENALTY: Final = 1e-3
"""Times the square of each coefficient (of evidence scaled to deviation 1): few queries bend less.
"""

Numbers = NDArray[numpy.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """A column to fit: a row of evidence for each query, and its gain at each weight of GRID.

    `family` is its evaluation set and style, `share` how much it counts: a set that is also ranked
    within the project of each query counts once.
    """

    name: str
    family: str
    share: float
    evidence: Numbers
    gains: Numbers

    def gain(self, coefficients: Numbers) -> float:
        """What the queries gain on average with these coefficients, the bias first."""
        return float(_slopes(self.gains, _weights(self.evidence, coefficients))[0].mean())


def measure_fit(folder: Path, names: Sequence[str], *, keep: Path | None, as_json: bool) -> int:
    """Print the coefficients, and what each set loses if it is left out; the exit code is 0."""
    try:
        judged = list(_judged(read_sets(folder, names), keep))
    except MemsvcError as error:
        raise click.ClickException(error.detail) from error
    fitted = fit(judged)
    now = numpy.array([fusion.BIAS, *astuple(fusion.COEFFICIENTS)])
    tables = {
        "coefficients": [_named("in use", now), _named("fitted", fitted)],
        METRIC: [_row(column, judged, now, fitted) for column in judged],
    }
    return report(tables, [], as_json=as_json)


def _named(name: str, coefficients: Numbers) -> dict[str, Any]:
    parts = ["bias", *(field.name for field in fields(Evidence))]
    return {"": name, **dict(zip(parts, coefficients.tolist(), strict=True))}


def _row(column: Judged, judged: Sequence[Judged], now: Numbers, fitted: Numbers) -> dict[str, Any]:
    others = [each for each in judged if each.family != column.family]
    return {
        "set": column.name,
        "full text": float(column.gains[:, -1].mean()),
        "in use": column.gain(now),
        "fitted": column.gain(fitted),
        "fitted without it": column.gain(fit(others)) if others else None,
    }


def _judged(sets: Sequence[EvaluationSet], keep: Path | None) -> Iterator[Judged]:
    """The columns of all sets; sets with the same corpus share a store."""
    embedder = load_embedder(load_settings())
    remembering = Remembering(embedder)
    for corpus in dict.fromkeys(each.corpus for each in sets):
        columns = [column for each in sets if each.corpus == corpus for column in _both_ways(each)]
        with home_in(keep, corpus.parent.name) as home:
            load(corpus, home)
            with opened_store(home) as store:
                embed_missing(store, embedder)
                bench = bench_of(home, AskedStore(store.connections), remembering)
                yield from _on_store(bench, columns)


def _both_ways(chosen: EvaluationSet) -> list[Column]:
    """The columns of a set, everywhere and, where that is asked, within the query's project."""
    inside = [column for column in columns_of(chosen, True) if column.in_project]
    return [*columns_of(chosen, False), *inside]


def _on_store(bench: Bench, columns: Sequence[Column]) -> Iterator[Judged]:
    shared = Counter(column.name for column in columns)
    with bench.semantic(FUSED.filling) as semantic:
        for column in columns:
            name = f"{column.name} project=" if column.in_project else column.name
            print(f"{bench.home.name}: {name}", file=sys.stderr)
            yield Judged(
                name,
                family=column.name,
                share=1 / shared[column.name],
                evidence=_evidence(bench, column, semantic),
                gains=_gains(bench, column, semantic),
            )


def _evidence(bench: Bench, column: Column, semantic: SemanticWorker) -> Numbers:
    """The evidence of a column's queries."""
    heard: list[tuple[float, ...]] = []

    def listen(shown: Evidence) -> float:
        heard.append(astuple(shown))
        return full_text_weight(shown)

    with patched([(fusion, "full_text_weight", listen)]):
        bench.scores(column, FUSED, semantic)
    return numpy.array(heard)


def _gains(bench: Bench, column: Column, semantic: SemanticWorker) -> Numbers:
    """The gain of a column's queries at each weight of GRID."""
    found = []
    for weight in GRID:
        with patched([(fusion, "full_text_weight", lambda shown, weight=weight: weight)]):
            scores = bench.scores(column, FUSED, semantic)
        found.append([each[METRIC] for each in scores])
    return numpy.array(found).T


def fit(judged: Sequence[Judged]) -> Numbers:
    """The coefficients, the bias first, at which the columns gain most on average, by Adam."""
    middle = numpy.mean([each.evidence.mean(axis=0) for each in judged], axis=0)
    width = numpy.mean([each.evidence.std(axis=0) for each in judged], axis=0) + 1e-6
    scaled = [(each.evidence - middle) / width for each in judged]
    shares = numpy.array([each.share for each in judged])
    found = numpy.zeros(1 + len(middle))
    slope, square = numpy.zeros_like(found), numpy.zeros_like(found)
    for step in range(1, STEPS + 1):
        uphill = -2 * PENALTY * numpy.r_[0, found[1:]]
        for each, evidence, share in zip(judged, scaled, shares / shares.sum(), strict=True):
            uphill += share * _uphill(each.gains, evidence, found)
        slope = MEMORY[0] * slope + (1 - MEMORY[0]) * uphill
        square = MEMORY[1] * square + (1 - MEMORY[1]) * uphill**2
        rate = RATE * (1 - 0.9 * step / STEPS) / (1 - MEMORY[0] ** step)
        found = found + rate * slope / (numpy.sqrt(square / (1 - MEMORY[1] ** step)) + 1e-6)
    slopes = found[1:] / width
    fitted: Numbers = numpy.r_[found[0] - slopes @ middle, slopes]
    return fitted


def _uphill(gains: Numbers, evidence: Numbers, coefficients: Numbers) -> Numbers:
    """How the average gain rises with each coefficient."""
    weights = _weights(evidence, coefficients)
    rises = _slopes(gains, weights)[1] * weights * (1 - weights)
    uphill: Numbers = numpy.r_[rises.mean(), (rises[:, None] * evidence).mean(axis=0)]
    return uphill


def _weights(evidence: Numbers, coefficients: Numbers) -> Numbers:
    """The weight of full text for each row of evidence."""
    weights: Numbers = 1 / (1 + numpy.exp(-coefficients[0] - evidence @ coefficients[1:]))
    return weights


def _slopes(gains: Numbers, weights: Numbers) -> tuple[Numbers, Numbers]:
    """The gain of each query at its weight, and how it rises with the weight, between GRID."""
    places = weights * (len(GRID) - 1)
    left = numpy.minimum(places.astype(int), len(GRID) - 2)
    rows = numpy.arange(len(weights))
    low, high = gains[rows, left], gains[rows, left + 1]
    return low + (high - low) * (places - left), (high - low) * (len(GRID) - 1)
