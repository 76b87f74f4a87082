"""Records as rows of an answer: a short one for lists, everything for reading."""

from typing import Any

from memsvc.answers.dump import dump_record
from memsvc.answers.page import Row, to_json
from memsvc.answers.snippets import snippet
from memsvc.core.dates import utc_text
from memsvc.core.ports.store import Hit
from memsvc.core.records import SHAPES, Observation, Record, Ref, Summary
from memsvc.core.tokens import count_tokens

TITLE_LENGTH = 120


def index_row(hit: Hit, record: Record, stems: tuple[str, ...] = ()) -> Row:
    """One short row: what it is, when, why it was found, what reading it costs."""
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
    if found := snippet(_searched(record, hit.ref), stems):
        row["snippet"] = found
    return {**row, "read_tokens": read_tokens(record, hit.ref)}


def full_row(hit: Hit, record: Record) -> Row:
    """Everything a record says."""
    return {
        "ref": str(hit.ref),
        **dump_record(record, hit.ref.kind),
        **score_of(hit),
        "read_tokens": read_tokens(record, hit.ref),
    }


def score_of(hit: Hit) -> dict[str, Any]:
    """The score of a ranked hit and whether it lies before the time bound."""
    score = {"score": round(hit.score, 4)} if hit.score else {}
    return score | ({"older": True} if hit.older else {})


def title_of(record: Record, ref: Ref) -> str:
    """One line that names a record: its title, or the first line of whatever it says."""
    texts = (text for text in _texts(record, ref) if text.strip())
    lines = next(texts, "").strip().splitlines() or [""]
    line = " ".join(lines[0].split())
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1]}…"


def subtitle_of(record: Record) -> str:
    """The second line of a row, where a record has one."""
    second = record.subtitle if isinstance(record, Observation) else ""
    second = record.completed if isinstance(record, Summary) else second
    line = " ".join(second.split())
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1]}…"


def read_tokens(record: Record, ref: Ref) -> int:
    """What opening a record in full costs."""
    return count_tokens(to_json(dump_record(record, ref.kind)))


def _texts(record: Record, ref: Ref) -> list[str]:
    cells = (getattr(record, name) for name in SHAPES[ref.kind].texts)
    return ["\n".join(cell) if isinstance(cell, tuple) else cell for cell in cells]


def _searched(record: Record, ref: Ref) -> list[str]:
    """The texts a snippet may come from: what the row does not show as its title already."""
    title, *others = _texts(record, ref)
    return others or [title]
