"""Records as clients write them: marshmallow schemas made from the record classes.

They forgive what real data brings (null, lists encoded as text, dates in many forms) and refuse,
with a reason, what would be a guess.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields

from memsvc.core.dates import now_ms, parse_date
from memsvc.core.records import SHAPES, Kind, Record, content_hash

ALIASES = {
    "memory_session_id": "session_id",
    "sdk_session_id": "session_id",
    "content_session_id": "session_id",
    "claude_session_id": "session_id",
    "_id": "source_id",
    "id": "source_id",
    "created_at": "created_at_epoch",
}
"""Other names under which clients write a field; the field's own name wins."""


class Text(fields.Field[str]):
    """Text as it is; null is empty. NUL and lone surrogates, which no text holds, are dropped."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ValidationError(f"expected text, was given {_short(value)}")
        return clean_text(value)


class Name(Text):
    """A text that ids may be given for: numbers are taken as text."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        plain_number = isinstance(value, int) and not isinstance(value, bool)
        return super()._deserialize(str(value) if plain_number else value, *args, **kwargs)


class TextList(fields.Field[tuple[str, ...]]):
    """A list of texts: a JSON array, such an array encoded as text, or one plain text."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> tuple[str, ...]:
        items = decode_list(value)
        if bad := [item for item in items if not isinstance(item, str)]:
            raise ValidationError(f"expected a list of texts, holds {_short(bad[0])}")
        return tuple(filter(None, (clean_text(item).strip() for item in items)))


class Whole(fields.Field[int]):
    """A whole number, zero or more."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
            raise ValidationError(f"expected a whole number from 0 on, was given {_short(value)}")
        return value


class Moment(fields.Field[int]):
    """A moment: epoch milliseconds or seconds, or ISO 8601."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (isinstance(value, str) or (number and math.isfinite(value))):
            raise ValidationError(f"expected a date, was given {_short(value)}")
        text = value if isinstance(value, str) else str(int(value))
        try:
            return parse_date(text, now_ms())
        except ValueError as error:
            raise ValidationError(f"{_short(value)} {error}") from None


def clean_text(text: str) -> str:
    """A text without the code points that no file can hold: NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def decode_list(value: Any) -> list[Any]:
    """The items of a list that may be null, a list, JSON text, or one plain text."""
    if value is None or value == "":
        return []
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return _decode_text(value)
    raise ValidationError(f"expected a list of texts, was given {_short(value)}")


def _decode_text(text: str) -> list[Any]:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    if isinstance(decoded, list):
        return decoded
    return [decoded] if isinstance(decoded, str) else [text]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_FIELDS: dict[str, type[fields.Field[Any]]] = {
    "str": Text,
    "int": Whole,
    "int | None": Whole,
    "tuple[str, ...]": TextList,
}


_SPECIAL: dict[str, type[fields.Field[Any]]] = {
    "created_at_epoch": Moment,
    "source_id": Name,
    "session_id": Name,
}


@cache
def record_schema(kind: Kind) -> Schema:
    """The schema that reads one record of a kind; unknown fields are left out."""
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
    """The record that one JSON object describes; `source` counts unless it names its own.

    Raises ValidationError (field → messages).
    """
    kind = read_kind(body)
    given = {key: value for key, value in body.items() if key not in ALIASES}
    for alias, name in ALIASES.items():
        if body.get(alias) is not None:
            given.setdefault(name, body[alias])
    loaded = {k: v for k, v in record_schema(kind).load(given).items() if v not in (None, "")}
    loaded["source"] = loaded.get("source") or source
    return _identified(_checked(SHAPES[kind].record(**loaded), kind))


def read_kind(body: Mapping[str, Any]) -> Kind:
    """The kind that a JSON object names; default observation."""
    if not isinstance(body, Mapping):
        raise ValidationError({"record": [f"expected a JSON object, was given {_short(body)}"]})
    try:
        return Kind(body.get("kind") or Kind.OBSERVATION)
    except ValueError:
        allowed = ", ".join(Kind)
        message = f"{_short(body['kind'])} is not a kind; allowed: {allowed}"
        raise ValidationError({"kind": [message]}) from None


def _checked(record: Record, kind: Kind) -> Record:
    shape = SHAPES[kind]
    if not any("".join(getattr(record, name)).strip() for name in shape.texts):
        message = f"nothing to remember; give {' or '.join(shape.texts)}"
        raise ValidationError({shape.title: [message]})
    return record


def _identified(record: Record) -> Record:
    """A record without an id of its own is known by what it says and, if given, when.

    So written twice it is one, and "go on" said on two days is two.
    """
    if record.source_id:
        return record
    when = f"-{record.created_at_epoch}" if record.created_at_epoch else ""
    return dataclasses.replace(record, source_id=f"content-{content_hash(record):016x}{when}")


def record_fields(kind: Kind) -> list[str]:
    """The names that a written record of a kind may use."""
    return [*record_schema(kind).fields, "kind"]


def refusal(error: ValidationError) -> dict[str, list[str]]:
    """Why a record was refused: field → messages."""
    messages = error.normalized_messages()  # type: ignore[no-untyped-call]
    return {
        str(name): [str(each) for each in (said if isinstance(said, list) else [said])]
        for name, said in messages.items()
    }
