"""Evaluation sets: a corpus, queries, and the records that each query should find."""

import json
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from benchmarks.corpus import Item, read_items

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Query:
    """One question with its metadata, and other wordings of it."""

    id: str
    text: str
    meta: Mapping[str, Any]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """Queries for a corpus; `gold` has the grade of each relevant record of each query."""

    name: str
    corpus: Path
    queries: tuple[Query, ...]
    gold: Mapping[str, Mapping[str, float]]


def read_sets(folder: Path, names: Sequence[str] = ()) -> list[EvaluationSet]:
    """The evaluation sets in the subfolders of a folder: all, or those named."""
    present = sorted(path.parent for path in folder.glob("*/qrels.tsv"))
    chosen = [path for path in present if not names or path.name in names]
    if unknown := set(names) - {path.name for path in present}:
        known = ", ".join(path.name for path in present)
        raise click.ClickException(f"No set {', '.join(sorted(unknown))} in {folder}; has: {known}")
    if not chosen:
        raise click.ClickException(
            f"{folder} has no evaluation set; give a folder with subfolders, each with "
            "queries.jsonl, qrels.tsv, and corpus.jsonl or corpus.ref."
        )
    return [_read_set(path) for path in chosen]


def _read_set(folder: Path) -> EvaluationSet:
    lines = read_items(folder / "queries.jsonl")
    queries = (Query(str(q["_id"]), q["text"], q.get("meta") or {}) for q in lines)
    gold = read_gold((folder / "qrels.tsv").read_text("utf-8").splitlines())
    return EvaluationSet(folder.name, _corpus(folder), tuple(queries), gold)


def _corpus(folder: Path) -> Path:
    reference = folder / "corpus.ref"
    if reference.exists():
        return (folder / reference.read_text("utf-8").strip()).resolve()
    return (folder / "corpus.jsonl").resolve()


def with_wordings(sets: Iterable[EvaluationSet], folder: Path) -> list[EvaluationSet]:
    """The sets that the folder has a file `NAME.jsonl` for, each with the questions in it: per
    line `_id`, `also` with other wordings, and `guess` with a sentence as the record may read.
    """
    found = [
        _worded(each, path) for each in sets if (path := folder / f"{each.name}.jsonl").exists()
    ]
    if not found:
        raise click.ClickException(f"{folder} has no file of the sets chosen, such as SET.jsonl.")
    return found


def _worded(chosen: EvaluationSet, path: Path) -> EvaluationSet:
    also = {str(line["_id"]): (*line["also"], line["guess"]) for line in read_items(path)}
    queries = (replace(q, also=also[q.id]) for q in chosen.queries if q.id in also)
    gold = {id: grades for id, grades in chosen.gold.items() if id in also}
    return replace(chosen, queries=tuple(queries), gold=gold)


def read_gold(lines: Iterable[str]) -> dict[str, dict[str, float]]:
    """Grades from tab-separated lines of query, record and grade; a header is skipped."""
    gold: dict[str, dict[str, float]] = {}
    for query, record, grade in _judgements(lines):
        if grade > 0:
            gold.setdefault(query, {})[record] = grade
    return gold


def _judgements(lines: Iterable[str]) -> Iterator[tuple[str, str, float]]:
    for line in lines:
        cells = line.split("\t")
        try:
            yield cells[0], cells[1], float(cells[2])
        except (IndexError, ValueError):
            continue


def compress_dates(items: Sequence[Item], days: float, now: float | None = None) -> list[Item]:
    """Scale all ages so that the newest record is from now and half are younger than `days`."""
    newest = max(item["created_at_epoch"] for item in items)
    ages = [newest - item["created_at_epoch"] for item in items]
    scale = days * DAY_MS / (statistics.median(ages) or 1)
    now = time.time() * 1000 if now is None else now
    return [
        {**item, "created_at_epoch": int(now - age * scale)}
        for item, age in zip(items, ages, strict=True)
    ]


def read_floors(path: Path | None) -> dict[str, dict[str, float]]:
    """The floors: for each row of the table, the lowest value allowed for each metric."""
    if path is None:
        return {}
    try:
        return {name: dict(floor) for name, floor in json.loads(path.read_text("utf-8")).items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise click.ClickException(
            f'{path} has no floors ({error}); write {{"set name": {{"recall@10": 0.7}}}}.'
        ) from error
