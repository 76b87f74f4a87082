"""Records as rows of an answer: short for lists, full for reading."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from memsvc.answers.page import ReadCost, Row, compact_json
from memsvc.answers.snippets import snippet
from memsvc.answers.text import write_record
from memsvc.core.dates import utc_text
from memsvc.core.limits import deadline
from memsvc.core.ports.store import Hit
from memsvc.core.records import SHAPES, Kind, Observation, Record, Ref, Summary

MAX_TITLE = 120


def make_rows(
    hits: Sequence[Hit], records: Mapping[Ref, Record], form: str, stems: tuple[str, ...] = ()
) -> tuple[Row, ...]:
    """The rows of these hits, in order; short ones (`form` is not `full`) may have a snippet.

    Records that are not there, because their pages are damaged, are left out.
    """
    rows: list[Row] = []
    for hit in hits:
        deadline.check()
        if record := records.get(hit.ref):
            rows.append(full_row(hit, record) if form == "full" else index_row(hit, record, stems))
    return tuple(rows)


def index_row(hit: Hit, record: Record, stems: tuple[str, ...] = ()) -> Row:
    """A short row: what the record is, when it was made, why it was found, its cost."""
    row: Row = {"id": record.id, "ref": str(hit.ref), "kind": hit.ref.kind.value}
    if isinstance(record, Observation):
        row["type"] = record.type
    row["title"] = title_of(record, hit.ref)
    if subtitle := subtitle_of(record):
        row["subtitle"] = subtitle
    row |= {
        "created_at": utc_text(record.created_at_epoch),
        "created_at_epoch": record.created_at_epoch,
        "project": record.project,
        **score_of(hit),
    }
    if stems and (found := snippet(_searched(record, hit.ref), stems)):
        row["snippet"] = found
    if _is_whole(row, _texts(record, hit.ref)):
        row["whole"] = True
    row["read_tokens"] = read_tokens(record, hit.ref)
    return row


def full_row(hit: Hit, record: Record) -> Row:
    """A row with the full record."""
    return {
        "ref": str(hit.ref),
        **dump_record(record, hit.ref.kind),
        **score_of(hit),
        "read_tokens": read_tokens(record, hit.ref),
    }


def score_of(hit: Hit) -> dict[str, Any]:
    """The score of a ranked hit, and whether it is older than the window."""
    score = hit.relevance + hit.recency
    shown: dict[str, Any] = {"score": round(score, 4)} if score else {}
    return shown | {"older": True} if hit.older else shown


def title_of(record: Record, ref: Ref) -> str:
    """A one-line title: the record's own, or the first line of its text."""
    texts = (text for text in _texts(record, ref) if text.strip())
    lines = next(texts, "").strip().splitlines() or [""]
    line = " ".join(lines[0].split())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def subtitle_of(record: Record) -> str:
    """The subtitle of a row, if the record has one."""
    second = record.subtitle if isinstance(record, Observation) else ""
    second = record.completed if isinstance(record, Summary) else second
    line = " ".join(second.split())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def read_tokens(record: Record, ref: Ref) -> ReadCost:
    """The cost of reading a full record, as JSON and as text."""
    dumped = dump_record(record, ref.kind)
    return ReadCost.of(compact_json(dumped), lambda: write_record(dumped))


def _is_whole(row: Row, texts: Sequence[str]) -> bool:
    """Whether a row shows all these texts, so that reading adds only files and labels."""
    shown = {row["title"], row.get("subtitle", ""), ""}
    return all(" ".join(text.split()) in shown for text in texts)


def _texts(record: Record, ref: Ref) -> list[str]:
    cells = (getattr(record, name) for name in SHAPES[ref.kind].texts)
    return ["\n".join(cell) if isinstance(cell, tuple) else cell for cell in cells]


def _searched(record: Record, ref: Ref) -> list[str]:
    """The texts that a snippet may come from: everything but the title, which the row shows
    already.
    """
    title, *others = _texts(record, ref)
    return others or [title]


def dump_record(record: Record, kind: Kind) -> dict[str, Any]:
    """A full record as answers show it: plain lists, the date in both forms, an author if known."""
    cells = {name: getattr(record, name) for name in _field_names(kind)}
    if not cells.get("author"):
        cells.pop("author", None)
    lists = {name: list(cell) for name, cell in cells.items() if isinstance(cell, tuple)}
    when = {"created_at": utc_text(record.created_at_epoch)}
    return {"id": record.id, "kind": kind.value, **cells, **lists, **when}


@cache
def _field_names(kind: Kind) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(SHAPES[kind].record))
