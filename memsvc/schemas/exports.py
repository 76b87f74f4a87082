"""Exports: a whole store as JSON objects, one a line, each field as it is stored.

The first line tells an export from other JSON Lines; the last one proves that nothing is missing.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from memsvc.core.ports.sources import Export
from memsvc.core.ports.store import WORK, Trace
from memsvc.core.records import SHAPES, Kind, Record, WorkSession, kind_of

FORMAT: Final = 1
"""The version of the format; readers refuse a later one."""

FIRST: Final = "memsvc_export"
LAST: Final = "memsvc_export_end"
FORGOTTEN: Final = "forgotten"

MAX_ID: Final = 10**15
"""A higher id would leave too few for the records to come."""


class _Exactly(fields.Field[Any]):
    """A value of one type, unchanged."""

    def __init__(self, wanted: type, **given: Any) -> None:
        super().__init__(required="load_default" not in given, **given)
        self._wanted = wanted

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) is not self._wanted:
            raise ValidationError(f"expected {self._wanted.__name__}")
        if isinstance(value, str):
            _require_storable(value)
        return value


class _Texts(fields.Field[tuple[str, ...]]):
    """A list of texts, unchanged."""

    def __init__(self) -> None:
        super().__init__(required=True)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> tuple[str, ...]:
        if type(value) is not list or any(type(item) is not str for item in value):
            raise ValidationError("expected a list of strings")
        for item in value:
            _require_storable(item)
        return tuple(value)


def _require_storable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValidationError("it contains half a character") from None


_WHOLE: Final = validate.Range(-(2**63), 2**63 - 1)
_ID: Final = validate.Range(0, MAX_ID)

_MAKERS: Final = {
    "str": lambda: _Exactly(str),
    "int": lambda: _Exactly(int, validate=_WHOLE),
    "int | None": lambda: _Exactly(int, validate=_WHOLE, allow_none=True),
    "tuple[str, ...]": _Texts,
}


@cache
def _schema(shape: type) -> Schema:
    """The schema of a class, whose fields must all be there, except those of later versions."""
    members: dict[str, Any] = {}
    for field in dataclasses.fields(shape):
        name = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
        made = _MAKERS.get(str(field.type)) or _MAKERS[name]
        members[field.name] = _Exactly(int, validate=_ID) if field.name == "id" else made()
    if "author" in members:
        members["author"] = _Exactly(str, load_default="")
    return Schema.from_dict(members, name=f"Exported{shape.__name__}")(unknown=EXCLUDE)


def export_lines(
    version: str, last_ids: Mapping[Kind, int], contents: Iterator[WorkSession | Record | Trace]
) -> Iterator[str]:
    """The lines of an export by this version of memsvc."""
    yield json.dumps({FIRST: FORMAT, "version": version, "last_ids": last_ids})
    count = 0
    for piece in contents:
        count += 1
        yield json.dumps(_body(piece), ensure_ascii=False)
    yield json.dumps({LAST: count})


def _body(piece: WorkSession | Record | Trace) -> dict[str, Any]:
    given = {field.name: getattr(piece, field.name) for field in dataclasses.fields(piece)}
    if isinstance(piece, Record):
        return {"kind": kind_of(piece), **given}
    if isinstance(piece, WorkSession):
        return {"kind": WORK, **given}
    return {**given, "kind": FORGOTTEN, "of": piece.kind}


def read_first(body: object) -> Export | None:
    """The beginning of an export, or None for a line of other JSON.

    Raises ValidationError for a later format.
    """
    if not isinstance(body, dict) or FIRST not in body:
        return None
    if body[FIRST] != FORMAT:
        raise ValidationError({FIRST: [f"format {body[FIRST]!r}; known: {FORMAT}; upgrade memsvc"]})
    given = body.get("last_ids")
    members: dict[str, fields.Field[Any]] = {
        str(kind): _Exactly(int, validate=_ID) for kind in Kind
    }
    loaded = Schema.from_dict(members)(unknown=EXCLUDE).load(given if given is not None else {})
    return Export({kind: loaded[kind] for kind in Kind})


def read_piece(body: object) -> WorkSession | Record | Trace:
    """What a line of an export holds. Raises ValidationError."""
    if not isinstance(body, dict):
        raise ValidationError({"record": ["expected a JSON object"]})
    kind = body.get("kind")
    if kind == FORGOTTEN:
        return _read_trace(body)
    if kind == WORK:
        return WorkSession(**_schema(WorkSession).load(body))
    if kind not in tuple(Kind):
        raise ValidationError({"kind": [f"expected {', '.join([*Kind, WORK, FORGOTTEN])}"]})
    shape = SHAPES[Kind(kind)].record
    return shape(**_schema(shape).load(body))  # type: ignore[arg-type]  # classes have a hash


def _read_trace(body: Mapping[str, Any]) -> Trace:
    trace = Trace(**_schema(Trace).load({**body, "kind": body.get("of")}))
    if trace.kind not in (*Kind, WORK):
        raise ValidationError({"of": [f"expected {', '.join([*Kind, WORK])}"]})
    return trace


def read_last(body: object) -> int | None:
    """How many lines came before, if this is the last line of an export."""
    count = body.get(LAST) if isinstance(body, dict) else None
    return count if type(count) is int else None
