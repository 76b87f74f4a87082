"""What does each feature of the ranking add? Ranks evaluation sets with it and without it."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchmarks.evaluation import EvaluationSet, Query, read_sets
from benchmarks.gains import SHOWN, Results, intervals, mean_table
from benchmarks.loading import load, opened_store
from benchmarks.metrics import Score
from benchmarks.ranked_store import AskedStore, Bench, Column, Remembering, bench_of, embed_missing
from benchmarks.tables import report
from benchmarks.ways_to_rank import ON_A_SERVER, WAYS, Way
from benchmarks.worker import home_in
from memsvc.configuration.bootstrap import load_embedder
from memsvc.configuration.settings import load_settings
from memsvc.core.errors import MemsvcError

DIALOGUES = "locomo_"
"""Prefix of the sets whose queries can be run within their projects."""


def measure_ablation(
    folder: Path, names: Sequence[str], *, project_filter: bool, keep: Path | None, as_json: bool
) -> int:
    """Print the scores of the sets in a folder for every way to rank; the exit code is 0."""
    ways = [*WAYS, *([ON_A_SERVER] if os.environ.get("MEMSVC_CHROMA_URL") else [])]
    results: Results = {}
    try:
        for column, way, scores in _measured(read_sets(folder, names), ways, project_filter, keep):
            results.setdefault(column, {})[way] = scores
    except MemsvcError as error:
        raise click.ClickException(error.detail) from error
    tables = {metric: mean_table(results, metric) for metric in SHOWN}
    return report({**tables, **intervals(results)}, [], as_json=as_json)


def _measured(
    sets: Sequence[EvaluationSet], ways: Sequence[Way], project_filter: bool, keep: Path | None
) -> Iterator[tuple[str, str, list[Score]]]:
    """The scores of every column for every way to rank; sets with the same corpus share a store."""
    embedder = load_embedder(load_settings())
    remembering = Remembering(embedder)
    for corpus in dict.fromkeys(each.corpus for each in sets):
        shared = (each for each in sets if each.corpus == corpus)
        columns = [column for each in shared for column in columns_of(each, project_filter)]
        with home_in(keep, corpus.parent.name) as home:
            load(corpus, home)
            with opened_store(home) as store:
                embed_missing(store, embedder)
                bench = bench_of(home, AskedStore(store.connections), remembering)
                yield from _ranked(bench, columns, ways)


def _ranked(
    bench: Bench, columns: Sequence[Column], ways: Sequence[Way]
) -> Iterator[tuple[str, str, list[Score]]]:
    """The scores on one store; an index is filled once for all ways that use it."""
    for filling in dict.fromkeys(way.filling for way in ways):
        print(f"{bench.home.name}: filling the index {filling.index}", file=sys.stderr)
        with bench.semantic(filling) as semantic:
            for way in (each for each in ways if each.filling == filling):
                print(f"{bench.home.name}: {way.name}", file=sys.stderr)
                for column in columns:
                    yield column.name, way.name, bench.scores(column, way, semantic)


def columns_of(chosen: EvaluationSet, project_filter: bool) -> Iterator[Column]:
    """The judged queries of a set, by style."""
    has_projects = all("project" in query.meta for query in chosen.queries)
    in_project = project_filter and has_projects and chosen.name.startswith(DIALOGUES)
    by_style: dict[str, list[Query]] = {}
    for query in chosen.queries:
        if query.id in chosen.gold:
            by_style.setdefault(query.meta.get("style", ""), []).append(query)
    for style, queries in sorted(by_style.items()):
        name = f"{chosen.name} {style}".strip()
        yield Column(name, tuple(queries), chosen.gold, in_project)
