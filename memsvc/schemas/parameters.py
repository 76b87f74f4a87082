"""Parameters: each one described once, for every operation that takes it."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from memsvc.core.dates import FORMS, now_ms, parse_date
from memsvc.core.errors import BadRequest
from memsvc.core.records import Kind

MOST_VALUES = 100
"""Values that one filter takes: each is looked up by itself."""

DEFAULT_DAYS = 90
"""How far back the time bound reaches that puts recent matches before older ones."""

SMALLEST_BUDGET = 100
"""Tokens that the envelope of any answer fits into."""

SPELLINGS = (
    ("type", "obs_type"),
    ("concepts", "concept"),
    ("files", "file", "filePath"),
    ("kinds", "kind"),
    ("dateStart", "date_start", "date_from", "dateRange[start]"),
    ("dateEnd", "date_end", "date_to", "dateRange[end]"),
)
"""Names that clients use for one and the same parameter; an operation's own name comes first."""

_DIGITS = re.compile(r"-?\d{1,18}", re.ASCII)

Fields = dict[str, fields.Field[Any]]


class CommaList(fields.List[Any]):
    """One value, a comma list, repeats, or a JSON list; blanks are dropped, order is kept."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> list[Any]:
        given = value if isinstance(value, list | tuple) else [value]
        pieces = [piece.strip() for text in given for piece in str(text).split(",")]
        found = list(dict.fromkeys(filter(None, pieces)))
        if not found:
            raise ValidationError("is empty; give one or more values, parted by commas")
        return super()._deserialize(found, *args, **kwargs)


class Number(fields.Integer):
    """A whole number in plain digits, as text or as JSON has it."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        if not _DIGITS.fullmatch(str(value).strip()):
            raise self.make_error("invalid")
        return int(value)


class Date(fields.String):
    """A date in any of the allowed forms, checked here and kept as given."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        try:
            parse_date(str(value), now_ms())
        except ValueError as error:
            raise ValidationError(str(error)) from None
        return str(value)


class Days(fields.Field[Any]):
    """A number of days (1-36500), or `all`."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int | str:
        text = str(value).strip().lower()
        if text == "all":
            return text
        if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 36500:
            return int(text)
        raise ValidationError("allowed: a number of days from 1 to 36500, or all")


def text(meaning: str, **options: Any) -> fields.Field[Any]:
    """A text parameter."""
    return fields.String(metadata={"description": meaning}, **options)


def text_list(meaning: str, *, most: int = MOST_VALUES, **options: Any) -> fields.Field[Any]:
    """A parameter that takes one value, a comma list, or repeats, `most` values in all."""

    def few(values: list[str]) -> None:
        if len(values) > most:
            raise ValidationError(f"given {len(values)} values; allowed: at most {most}")

    metadata = {"description": meaning}
    return CommaList(fields.String(), validate=few, metadata=metadata, **options)


def number(meaning: str, default: int | None, low: int, high: int) -> fields.Field[Any]:
    """A whole number within a range."""
    bounds = validate.Range(low, high, error=f"allowed: {low} to {high}")
    invalid = f"allowed: a whole number from {low} to {high}"
    return Number(
        load_default=default,
        validate=bounds,
        metadata={"description": meaning},
        error_messages={"invalid": invalid},
    )


def choice(meaning: str, default: str | None, *values: str) -> fields.Field[Any]:
    """One of a few words."""
    one_of = validate.OneOf(values, error=f"allowed: {', '.join(values)}")
    return fields.String(load_default=default, validate=one_of, metadata={"description": meaning})


SYNTAX = 'words to look for; "a phrase", -without, prefix*, title:word, file:path, type:bugfix'


def query(*, required: bool, meaning: str = SYNTAX) -> Fields:
    return {"query": text(meaning, required=required)}


def anchor(*, required: bool) -> Fields:
    meaning = "the record (123, #123, S12, P9) or date around which to look"
    return {"anchor": text(meaning, required=required)}


def types(*, required: bool = False) -> Fields:
    return {"type": text_list("types, such as bugfix,decision", required=required)}


def concepts(name: str = "concepts") -> Fields:
    meaning = "concepts, such as gotcha,trade-off"
    return {name: text_list(meaning, required=name == "concept")}


def files(name: str = "files") -> Fields:
    meaning = "file paths, their endings, folders, or * globs"
    return {name: text_list(meaning, required=name == "filePath")}


def project() -> Fields:
    return {"project": text_list("projects to look in; none: all")}


def kinds() -> Fields:
    one_of = validate.OneOf(list(Kind), error=f"allowed: {', '.join(Kind)}")
    meaning = f"kinds of record: {', '.join(Kind)}"
    field = CommaList(
        fields.String(validate=one_of),
        load_default=list(map(str, Kind)),
        metadata={"description": meaning},
    )
    return {"kinds": field}


def form() -> Fields:
    meaning = "index: one short row a record; full: everything"
    return {"format": choice(meaning, "index", "index", "full")}


def depth() -> Fields:
    return {
        "depth_before": number("records before the anchor", 10, 0, 50),
        "depth_after": number("records after the anchor", 10, 0, 50),
    }


def budget(default: int | None = None, ceiling: int | None = None) -> Fields:
    meaning = "most tokens that the whole answer may cost"
    meaning += f"; {ceiling} at most, whatever is given" if ceiling else ""
    return {"max_tokens": number(meaning, default, SMALLEST_BUDGET, 1_000_000)}


def limit(meaning: str, default: int | None, high: int) -> Fields:
    return {"limit": number(meaning, default, 1, high)}


def dates() -> Fields:
    days = f"newest days to look in, or all; with a query, {DEFAULT_DAYS} days come first"
    return {
        "dateStart": Date(metadata={"description": f"not before: {FORMS}"}),
        "dateEnd": Date(metadata={"description": "not after; a day counts to its end"}),
        "days": Days(metadata={"description": days}),
    }


def common() -> Fields:
    """What every search takes."""
    order = "relevance where there is a query, else date_desc"
    return {
        **project(),
        **limit("records a page", 20, 100),
        "offset": number("records to skip", 0, 0, 100_000_000),
        "orderBy": choice(order, None, "relevance", "date_desc", "date_asc"),
        **form(),
        **dates(),
        **budget(),
        "explain": choice("1: why each record is here", "0", "0", "1"),
    }


def make_schema(name: str, members: Fields) -> Schema:
    """The schema of an operation's parameters; unknown ones are errors."""
    return Schema.from_dict(members, name=name)(unknown=RAISE)


def load_parameters(schema: Schema, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The parameters of one request, from (name, value) pairs in the order given.

    Raises BadRequest that names each parameter, what was given and what is allowed.
    """
    given: dict[str, list[Any]] = {}
    for name, value in pairs:
        if not _is_blank(schema, name, value):
            given.setdefault(_own_name(schema, name), []).append(value)
    errors = _name_errors(schema, given)
    known = {name: _value(schema, name, values) for name, values in given.items()}
    try:
        return dict(schema.load({name: known[name] for name in known if name not in errors}))
    except ValidationError as error:
        found = error.normalized_messages()  # type: ignore[no-untyped-call]
    finally:
        if errors:
            raise _bad_request(errors)
    raise _bad_request({name: _told(found[name], given.get(name)) for name in found})


def _is_blank(schema: Schema, name: str, value: Any) -> bool:
    """Whether a text parameter was sent without a text, which counts as not sent."""
    plain_text = type(schema.fields.get(name)) is fields.String
    return plain_text and isinstance(value, str) and not value.strip()


def _own_name(schema: Schema, name: str) -> str:
    if name in schema.fields:
        return name
    for spellings in SPELLINGS:
        if name in spellings:
            return next((own for own in spellings if own in schema.fields), name)
    return name


def _name_errors(schema: Schema, given: Mapping[str, list[Any]]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    for name, values in given.items():
        if name not in schema.fields:
            errors[name] = [f"unknown parameter{_nearest(name, schema.fields)}"]
        elif len(values) > 1 and not isinstance(schema.fields[name], CommaList):
            errors[name] = [f"given {len(values)} times; it takes one value"]
    return errors


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f": did you mean {near[0]}?"
    return f"; allowed: {', '.join(names)}" if names else "; this operation takes none"


def _value(schema: Schema, name: str, values: list[Any]) -> Any:
    field = schema.fields.get(name)
    return values if isinstance(field, CommaList) else values[0]


def _told(messages: Any, values: list[Any] | None) -> list[str]:
    said = sorted(set(_flat(messages)))
    if values is None:
        return ["missing; it is required"]
    shown = ",".join(map(str, values))
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return [f"given {shown!r}; {message}" for message in said]


def _flat(messages: Any) -> Iterable[str]:
    if isinstance(messages, Mapping):
        for value in messages.values():
            yield from _flat(value)
    elif isinstance(messages, list):
        yield from map(str, messages)


def _bad_request(errors: dict[str, list[str]]) -> BadRequest:
    name, messages = next(iter(errors.items()))
    if messages[0].startswith("missing"):
        return BadRequest(f"Missing required parameter: {name}", errors)
    joiner = " " if messages[0].startswith("given") else ": "
    shown = name if len(name) <= 80 else f"{name[:77]}..."
    return BadRequest(f"{shown}{joiner}{messages[0]}", errors)
