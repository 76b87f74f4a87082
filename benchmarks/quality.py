"""Is the right record found? Runs evaluation sets over HTTP."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.corpus import read_items, write_items
from benchmarks.evaluation import (
    EvaluationSet,
    Query,
    compress_dates,
    read_floors,
    read_sets,
    with_wordings,
)
from benchmarks.http_client import Answer, Client, url
from benchmarks.loading import load
from benchmarks.metrics import DEPTH, METRICS, average, percentile, score
from benchmarks.tables import report
from benchmarks.worker import await_index, home_in, running_worker
from memsvc.schemas.parameters import DEFAULT_DAYS

ROUTE = "/api/search/observations"
GROUPED_BY = ("style", "kind")
TOLERANCE = 0.02
"""How much nDCG@10 the default time window may cost."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run all queries of a set: the name of its row, and the parameters it adds."""

    suffix: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    in_project: bool = False
    with_also: bool = False

    def url(self, query: Query) -> str:
        """The request for one query."""
        more: dict[str, object] = {"project": query.meta["project"]} if self.in_project else {}
        more |= {"also": query.also} if self.with_also else {}
        asked = {"query": query.text, "limit": DEPTH, "format": "full"}
        return url(ROUTE, {**asked, **dict(self.parameters), **more})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stores are and which index they use: stores in `keep` are reused, because embedding
    takes long; `semantic` is the index.
    """

    keep: Path | None = None
    semantic: str = "chroma"


DEFAULT = Variant()
ALL_DAYS = Variant(" days=all", (("days", "all"),))
IN_PROJECT = Variant(" project=", in_project=True)
ALSO = Variant(" also=", with_also=True)


def measure_quality(
    folder: Path,
    names: Sequence[str],
    *,
    compressed: bool,
    project_filter: bool,
    also: Path | None,
    floors: Path | None,
    place: Place,
    as_json: bool,
) -> int:
    """Measure the sets in a folder; the exit code says whether all floors were reached."""
    least = read_floors(floors)
    variants = [DEFAULT, *([ALL_DAYS] if compressed else [])]
    variants += [IN_PROJECT] if project_filter else []
    variants += [ALSO] if also else []
    sets = read_sets(folder, names)
    rows = list(_rows(with_wordings(sets, also) if also else sets, variants, compressed, place))
    failures = [*_unanswered(rows), *_below(rows, least), *(_costly(rows) if compressed else [])]
    _compare(rows, least)
    title = f"quality, half of all dates within {DEFAULT_DAYS} days" if compressed else "quality"
    return report({title: rows, **_summary(rows)}, failures, as_json=as_json)


def _rows(
    sets: Sequence[EvaluationSet], variants: Sequence[Variant], compressed: bool, place: Place
) -> Iterator[Row]:
    """The rows of every set; sets with the same corpus share a store."""
    for corpus in dict.fromkeys(each.corpus for each in sets):
        with home_in(place.keep, corpus.parent.name) as home:
            load(_dated(corpus, home) if compressed else corpus, home)
            shared = [each for each in sets if each.corpus == corpus]
            for variant in variants:  # a worker for each, because it remembers what it embedded
                with running_worker(home, place.semantic) as worker, worker.client() as client:
                    if place.semantic != "off":
                        await_index(client)
                    yield from _set_rows(client, shared, variant)


def _dated(corpus: Path, home: Path) -> Path:
    """A copy of a corpus with its dates moved forward."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / corpus.name
    write_items(compress_dates(list(read_items(corpus)), DEFAULT_DAYS), path)
    return path


def _set_rows(client: Client, sets: Sequence[EvaluationSet], variant: Variant) -> Iterator[Row]:
    for chosen in sets:
        if not variant.in_project or all("project" in query.meta for query in chosen.queries):
            print(f"asking {chosen.name}{variant.suffix}", file=sys.stderr)
            yield from _variant_rows(client, chosen, variant)


def _variant_rows(client: Client, chosen: EvaluationSet, variant: Variant) -> Iterator[Row]:
    """The row of a set run in one way, and those of its subsets."""
    answers = {query.id: client.get(variant.url(query)) for query in chosen.queries}
    rankings = {id: _ranking(answer) for id, answer in answers.items()}
    scores = {id: score(rankings.get(id, []), relevant) for id, relevant in chosen.gold.items()}
    name = f"{chosen.name}{variant.suffix}"
    yield {**_row(name, list(scores.values())), **_speed(list(answers.values()))}
    for group, ids in _groups(chosen).items():
        yield _row(f"{name} {group}", [scores[id] for id in ids])


def _row(name: str, scores: Sequence[Mapping[str, float]]) -> Row:
    return {"set": name, "queries": len(scores), **average(scores)}


def _groups(chosen: EvaluationSet) -> dict[str, list[str]]:
    """The judged queries by kind of question."""
    groups: dict[str, list[str]] = {}
    for query in chosen.queries:
        for key in GROUPED_BY:
            if key in query.meta and query.id in chosen.gold:
                groups.setdefault(f"{key}={query.meta[key]}", []).append(query.id)
    return dict(sorted(groups.items()))


def _ranking(answer: Answer) -> list[str]:
    """The records of an answer as corpus ids; none without an answer."""
    if answer.status != 200:
        return []
    return [str(row["source_id"]) for row in answer.json["results"]]


def _speed(answers: Sequence[Answer]) -> Row:
    times = [1000 * answer.seconds for answer in answers]
    errors = sum(answer.status != 200 for answer in answers)
    p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
    return {"p50 ms": p50, "p95 ms": p95, "errors": errors}


def _unanswered(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.get("errors"):
            yield f"{row['set']}: {row['errors']} queries were answered with an error"


def _below(rows: Sequence[Row], floors: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """A sentence for each metric below its floor."""
    measured = {row["set"]: row for row in rows}
    for name, metric, least in _floors(floors):
        if name in measured and measured[name][metric] < least:
            yield f"{name}: {metric} is {measured[name][metric]:.3f}, its floor {least:.3f}"


def _floors(floors: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str, float]]:
    for name, floor in floors.items():
        if unknown := set(floor) - set(METRICS):
            raise click.ClickException(
                f"The floor of {name} names {', '.join(sorted(unknown))}; "
                f"metrics: {', '.join(METRICS)}"
            )
        yield from ((name, metric, least) for metric, least in floor.items())


def _compare(rows: Sequence[Row], floors: Mapping[str, Mapping[str, float]]) -> None:
    """Add the differences to the floors, and to `days=all`, to each row."""
    measured = {row["set"]: row for row in rows}
    for row in rows:
        for metric, least in floors.get(row["set"], {}).items():
            row[f"{metric}/floor"] = row[metric] / least if least else None
    for name, row in measured.items():
        if name.endswith(ALSO.suffix) and "p50 ms" in row:
            row["p50 / one wording"] = (
                row["p50 ms"] / measured[name.removesuffix(ALSO.suffix)]["p50 ms"]
            )
    for default, unbound in _bounded_pairs(measured):
        default["ndcg@10 - days=all"] = f"{default['ndcg@10'] - unbound['ndcg@10']:+.3f}"


def _bounded_pairs(measured: Mapping[str, Row]) -> Iterator[tuple[Row, Row]]:
    """Each row with the default window, paired with that of the same queries without a window."""
    for name, unbound in measured.items():
        if ALL_DAYS.suffix in name:
            yield measured[name.replace(ALL_DAYS.suffix, "")], unbound


def _costly(rows: Sequence[Row]) -> Iterator[str]:
    """A sentence for each set where the default time window costs too much."""
    measured = {row["set"]: row for row in rows}
    for default, unbound in _bounded_pairs(measured):
        cost = unbound["ndcg@10"] - default["ndcg@10"]
        if cost > TOLERANCE and "p50 ms" in default:
            yield f"{default['set']}: the default window costs {cost:.3f} nDCG@10 (at most .02)"


def _summary(rows: Sequence[Row]) -> dict[str, Row]:
    """The mean over the sets, each with its default row."""
    whole = [
        row
        for row in rows
        if "p50 ms" in row
        and not row["set"].endswith((ALL_DAYS.suffix, IN_PROJECT.suffix, ALSO.suffix))
    ]
    return {"mean of the sets": {name: f"{value:.4f}" for name, value in average(whole).items()}}
