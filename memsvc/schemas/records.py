"""Records as clients send them: marshmallow schemas derived from the record classes.

They accept what real data contains (null, lists encoded as text, dates in many forms) and refuse,
with a reason, anything they would have to guess.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields

from memsvc.core.dates import now_ms, parse_date
from memsvc.core.records import SHAPES, Kind, Record, content_source_id

ALIASES = {
    "memory_session_id": "session_id",
    "sdk_session_id": "session_id",
    "content_session_id": "session_id",
    "claude_session_id": "session_id",
    "_id": "source_id",
    "id": "source_id",
    "created_at": "created_at_epoch",
}
"""Other names that clients use for a field; the field's own name wins."""


class Text(fields.Field[str]):
    """Text, unchanged except that null becomes empty and NUL and lone surrogates are dropped."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ValidationError(f"expected text; given {_shortened(value)}")
        return clean_text(value)


class Identifier(Text):
    """An identifier: text, or a number that is read as text."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        plain_number = isinstance(value, int) and not isinstance(value, bool)
        return super()._deserialize(str(value) if plain_number else value, *args, **kwargs)


class TextList(fields.Field[tuple[str, ...]]):
    """A list of strings: a JSON array, a JSON array encoded as text, or one plain string."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> tuple[str, ...]:
        items = decode_list(value)
        if bad := [item for item in items if not isinstance(item, str)]:
            raise ValidationError(f"expected a list of strings; it contains {_shortened(bad[0])}")
        return tuple(filter(None, (clean_text(item).strip() for item in items)))


class WholeNumber(fields.Field[int]):
    """A whole number, zero or more."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
            raise ValidationError(f"expected a whole number, 0 or more; given {_shortened(value)}")
        return value


class Timestamp(fields.Field[int]):
    """A point in time: epoch milliseconds or seconds, or ISO 8601."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (isinstance(value, str) or (number and math.isfinite(value))):
            raise ValidationError(f"expected a date; given {_shortened(value)}")
        text = value if isinstance(value, str) else str(int(value))
        try:
            return parse_date(text, now_ms())
        except ValueError as error:
            raise ValidationError(f"given {_shortened(value)}; {error}") from None


def clean_text(text: str) -> str:
    """The text without NUL and lone surrogates, which UTF-8 files and SQLite cannot store."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def decode_list(value: Any) -> list[Any]:
    """The items of a value that may be null, a list, a list encoded as JSON text, or one plain
    string.
    """
    if value is None or value == "":
        return []
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return _decode_text(value)
    raise ValidationError(f"expected a list of strings; given {_shortened(value)}")


def _decode_text(text: str) -> list[Any]:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    if isinstance(decoded, list):
        return decoded
    return [decoded] if isinstance(decoded, str) else [text]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_FIELDS: dict[str, type[fields.Field[Any]]] = {
    "str": Text,
    "int": WholeNumber,
    "int | None": WholeNumber,
    "tuple[str, ...]": TextList,
}

_SPECIAL: dict[str, type[fields.Field[Any]]] = {
    "created_at_epoch": Timestamp,
    "source_id": Identifier,
    "session_id": Identifier,
}


@cache
def record_schema(kind: Kind) -> Schema:
    """The schema of a record of one kind; unknown fields are ignored."""
    members: dict[str, Any] = {
        field.name: _schema_field(field)
        for field in dataclasses.fields(SHAPES[kind].record)
        if field.name != "id"
    }
    return Schema.from_dict(members, name=f"{kind.capitalize()}Record")(unknown=EXCLUDE)


def _schema_field(field: dataclasses.Field[Any]) -> fields.Field[Any]:
    type_name = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    plain = _FIELDS.get(str(field.type), _FIELDS.get(type_name, Text))
    made: type[fields.Field[Any]] = _SPECIAL.get(field.name, plain)
    return made(allow_none=True)


def load_record(body: Mapping[str, Any], *, source: str) -> Record:
    """The record that a JSON object describes; `source` applies unless the object names its own.

    Raises ValidationError (field → messages).
    """
    kind = read_kind(body)
    given = {key: value for key, value in body.items() if key not in ALIASES}
    for alias, name in ALIASES.items():
        if body.get(alias) is not None:
            given.setdefault(name, body[alias])
    loaded = {k: v for k, v in record_schema(kind).load(given).items() if v not in (None, "")}
    loaded["source"] = loaded.get("source") or source
    return _with_source_id(_require_text(SHAPES[kind].record(**loaded), kind))


def read_kind(body: Mapping[str, Any]) -> Kind:
    """The kind that a JSON object names; default observation."""
    if not isinstance(body, Mapping):
        raise ValidationError({"record": [f"expected a JSON object; given {_shortened(body)}"]})
    try:
        return Kind(body.get("kind") or Kind.OBSERVATION)
    except ValueError:
        allowed = ", ".join(Kind)
        message = f"{_shortened(body['kind'])} is not a kind; allowed: {allowed}"
        raise ValidationError({"kind": [message]}) from None


def _require_text(record: Record, kind: Kind) -> Record:
    shape = SHAPES[kind]
    if not any("".join(getattr(record, name)).strip() for name in shape.texts):
        message = f"the record has no text; give {' or '.join(shape.texts)}"
        raise ValidationError({shape.title: [message]})
    return record


def _with_source_id(record: Record) -> Record:
    """A record without a source id gets one from its content."""
    if record.source_id:
        return record
    return dataclasses.replace(record, source_id=content_source_id(record))


def record_fields(kind: Kind) -> list[str]:
    """The field names that a record of this kind may have."""
    return [*record_schema(kind).fields, "kind"]


def refusal(error: ValidationError) -> dict[str, list[str]]:
    """The reasons why a record was refused: field → messages."""
    messages = error.normalized_messages()  # type: ignore[no-untyped-call]
    return {
        str(name): [str(each) for each in (given if isinstance(given, list) else [given])]
        for name, given in messages.items()
    }
