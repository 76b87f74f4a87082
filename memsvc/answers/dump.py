"""TODO dump."""

import dataclasses
from functools import cache
from typing import Any

from memsvc.core.dates import utc_text
from memsvc.core.records import SHAPES, Kind, Record


def dump_record(record: Record, kind: Kind) -> dict[str, Any]:
    """A record as answers show it in full: plain lists, the date in both forms."""
    cells = {name: getattr(record, name) for name in _field_names(kind)}
    lists = {name: list(cell) for name, cell in cells.items() if isinstance(cell, tuple)}
    when = {"created_at": utc_text(record.created_at_epoch)}
    return {"id": record.id, "kind": kind.value, **cells, **lists, **when}


@cache
def _field_names(kind: Kind) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(SHAPES[kind].record))
