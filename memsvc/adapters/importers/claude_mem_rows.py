"""Converts the rows of a claude-mem database into records."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memsvc.adapters.importers.claude_mem_database import OBSERVATIONS, Row
from memsvc.core.dates import parse_date
from memsvc.core.ports.sources import Item, Refused, Skipped
from memsvc.core.records import Observation, Prompt, Record, Summary, WorkSession
from memsvc.schemas.records import clean_text, decode_list

SOURCE: Final = "claude-mem"

INTERNAL_PROJECTS: Final = ("", "observer-sessions")
"""Projects of claude-mem's own sessions, which nobody wants to keep."""

OBSERVATION_TEXTS: Final = (
    *("type", "title", "subtitle", "narrative", "text"),
    *("facts", "concepts", "files_read", "files_modified"),
)
SUMMARY_TEXTS: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")
MAX_TITLE: Final = 100
MAX_EPOCH: Final = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Table:
    """A table of claude-mem: the columns wanted, and how a row becomes a record."""

    name: str
    word: str
    columns: tuple[str, ...]
    record: Callable[[Row], Record]


def read_session(row: Row) -> WorkSession | None:
    """A session; None for one without id or start, and for claude-mem's own."""
    started = _epoch(row, "started_at_epoch")
    if not row["session_id"] or started is None or row["project"] in INTERNAL_PROJECTS:
        return None
    return WorkSession(
        session_id=_text(row["session_id"]),
        project=_text(row["project"]),
        started_at_epoch=started,
        completed_at_epoch=_epoch(row, "completed_at_epoch"),
        status=_text(row["status"]) or "unknown",
    )


def read_record(table: Table, row: Row) -> Item:
    """The record of a row, or the reason why there is none."""
    place = f"{table.word} {row['id']}"
    if row["project"] in INTERNAL_PROJECTS:
        return Skipped(f"internal to claude-mem (project {row['project']!r})")
    if _epoch(row, "created_at_epoch") is None:
        return Refused(place, "has no readable date")
    try:
        return table.record(row)
    except _EmptyRow:
        return Refused(place, "has no text")


def source_id(word: str, id: int, epoch: object) -> str:
    """The id under which a row is imported."""
    return f"{word}-{id}-{epoch}"


class _EmptyRow(Exception):
    """A row without any text."""


def _common(row: Row, word: str) -> Row:
    epoch = _epoch(row, "created_at_epoch") or 0
    return {
        "project": _text(row["project"]),
        "session_id": _text(row["session_id"]),
        "created_at_epoch": epoch,
        "source": SOURCE,
        "source_id": source_id(word, row["id"], epoch),
    }


def _observation(row: Row) -> Observation:
    narrative = _text(row["narrative"]) or _text(row["text"])
    title = _text(row["title"]) or _first_line(narrative or _text(row["subtitle"]))
    facts = _list(row["facts"])
    if not (title or facts):
        raise _EmptyRow
    return Observation(
        **_common(row, "observation"),
        type=_text(row["type"]).strip() or "discovery",
        title=title,
        subtitle=_text(row["subtitle"]),
        narrative=narrative,
        facts=facts,
        concepts=_list(row["concepts"]),
        files_read=_list(row["files_read"]),
        files_modified=_list(row["files_modified"]),
        prompt_number=_whole(row["prompt_number"]),
        discovery_tokens=_whole(row["discovery_tokens"]) or 0,
    )


def _summary(row: Row) -> Summary:
    texts: Row = {name: _text(row[name]) for name in SUMMARY_TEXTS}
    if not any(texts.values()):
        raise _EmptyRow
    files: Row = {name: _list(row[name]) for name in ("files_read", "files_edited")}
    return Summary(**_common(row, "summary"), **texts, **files)


def _prompt(row: Row) -> Prompt:
    text = _text(row["prompt_text"])
    if not text.strip():
        raise _EmptyRow
    number = _whole(row["prompt_number"])
    return Prompt(**_common(row, "prompt"), prompt_text=text, prompt_number=number)


def _text(cell: object) -> str:
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    return "" if cell is None else clean_text(str(cell))


def _whole(cell: object) -> int | None:
    return cell if isinstance(cell, int) and cell >= 0 else None


def _list(cell: object) -> tuple[str, ...]:
    """The items of a list cell; a cell that is not a list is a single item."""
    text = _text(cell).strip()
    items = [] if text == "null" else decode_list(text)
    texts = (_item(item).strip() for item in items if item is not None)
    return tuple(text for text in texts if text)


def _item(item: object) -> str:
    return clean_text(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False))


def _first_line(text: str) -> str:
    lines = (line.strip(" \t#*->") for line in text.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1].rstrip()}…"


def _epoch(row: Row, name: str) -> int | None:
    """The epoch (ms) in a row, or else the date in the column beside it."""
    epoch = row[name]
    if isinstance(epoch, int | float) and 0 < epoch <= MAX_EPOCH:
        return int(epoch)
    try:
        return parse_date(_text(row.get(name.removesuffix("_epoch"))), 0)
    except ValueError:
        return None


TABLES: Final = (
    Table(
        OBSERVATIONS,
        "observation",
        (*OBSERVATION_TEXTS, "prompt_number", "discovery_tokens"),
        _observation,
    ),
    Table("session_summaries", "summary", (*SUMMARY_TEXTS, "files_read", "files_edited"), _summary),
    Table("user_prompts", "prompt", ("prompt_text", "prompt_number"), _prompt),
)
