"""Request parameters, each described once for all operations that take it."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from memsvc.core.dates import FORMS, Date, read_date
from memsvc.core.errors import BadRequest
from memsvc.core.filters import FIELDS, FilterField
from memsvc.core.query import MAX_LENGTH
from memsvc.core.records import Kind, Ref, parse_ref

MAX_VALUES: Final = 100
"""Values per filter; each costs one lookup."""

MAX_VALUE_LENGTH: Final = 1000
"""Characters per value of a filter, longer than any path."""

MAX_STARS: Final = 8
"""Stars per glob."""

MAX_GLOBS: Final = 16
"""Globs per filter; each is compared with every path of the store."""

MAX_WORDINGS: Final = 5
"""Other wordings of a query; each is ranked by itself."""

MAX_REFS: Final = 1000
"""Records that one request reads."""

DEFAULT_DAYS: Final = 90
"""Length of the default time window, in which matches rank before older ones."""

MIN_BUDGET: Final = 100
"""Smallest token budget; the envelope of every answer fits into it."""

MAX_ERRORS: Final = 20
"""Wrong names that an error explains."""

MAX_SHOWN: Final = 80
"""Characters of a given value that an error repeats."""

SPELLINGS = (
    *((field.parameter, *field.spellings) for field in FIELDS.values()),
    ("kinds", "kind"),
    ("dateStart", "date_start", "date_from", "dateRange[start]", "since"),
    ("dateEnd", "date_end", "date_to", "dateRange[end]", "until"),
)
"""Names that clients use for the same parameter; the operation's own name comes first."""

_STARS = re.compile(r"\*+")  # several in a row are one
_DIGITS = re.compile(r"-?\d{1,18}", re.ASCII)

Fields = dict[str, fields.Field[Any]]


class CommaList(fields.List[Any]):
    """One value, a comma-separated list, a repeated parameter or a JSON list, up to `most` values.
    Drops blanks, keeps the order.
    """

    most: int = MAX_VALUES

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> list[Any]:
        given = value if isinstance(value, list | tuple) else [value]
        pieces = [piece.strip() for text in given for piece in str(text).split(",")]
        found = list(dict.fromkeys(filter(None, pieces)))
        if not found:
            raise ValidationError("no value in it; give one or more values, separated by commas")
        if len(found) > self.most:
            raise ValidationError(f"{len(found)} values; allowed: at most {self.most}")
        if (longest := max(map(len, found))) > MAX_VALUE_LENGTH:
            raise ValidationError(
                f"a value of {longest:,} characters; allowed: at most {MAX_VALUE_LENGTH:,}"
            )
        return super()._deserialize(found, *args, **kwargs)


class Wordings(fields.List[Any]):
    """A repeated parameter or a JSON list of texts; commas belong to them."""


class Number(fields.Integer):
    """A whole number in plain digits, as text or as a JSON number."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        if not _DIGITS.fullmatch(str(value).strip()):
            raise self.make_error("invalid")
        return int(value)


class DateField(fields.Field[Date]):
    """A date in any of the allowed forms, as `dates.Date`."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Date:
        try:
            return read_date(str(value))
        except ValueError as error:
            raise ValidationError(str(error)) from None


class RefField(fields.Field[Ref]):
    """The short name of a record, as a `Ref`."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Ref:
        ref = parse_ref(str(value))
        if ref is None:
            shown = _shortened(str(value))
            raise ValidationError(f"{shown!r} is not a ref; allowed: 123, #123, S12, P9")
        return ref


class AnchorField(fields.Field[Ref | Date]):
    """A record or a date to look around, as a `Ref` or a `dates.Date`."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Ref | Date:
        text = str(value).strip()
        ref = parse_ref(text)
        # nine digits or more are an epoch time; ids never get that long
        if ref and not (text.isdigit() and ref.id >= 10**8):
            return ref
        try:
            return read_date(text)
        except ValueError:
            raise ValidationError(f"allowed: 123, #123, S12, P9, or a date ({FORMS})") from None


class Days(fields.Field[Any]):
    """A number of days (1-36500), or `all`."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int | str:
        text = str(value).strip().lower()
        if text == "all":
            return text
        if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 36500:
            return int(text)
        raise ValidationError("allowed: a number of days from 1 to 36500, or all")


def text(description: str, **options: Any) -> fields.Field[Any]:
    """A text parameter of up to MAX_LENGTH characters."""
    metadata = {"description": description}
    return fields.String(metadata=metadata, validate=_check_length, **options)


def _check_length(value: str) -> None:
    if len(value) > MAX_LENGTH:
        raise ValidationError(f"{len(value):,} characters; allowed: at most {MAX_LENGTH:,}")


def text_list(
    description: str, *, most: int = MAX_VALUES, required: bool = False, **metadata: Any
) -> fields.Field[Any]:
    """A parameter that takes up to `most` values: comma-separated, repeated or both."""
    return _list_of(fields.String(), description, most, required=required, **metadata)


def _list_of(
    inner: fields.Field[Any], description: str, most: int, *, required: bool, **metadata: Any
) -> fields.Field[Any]:
    listed = CommaList(inner, required=required, metadata={"description": description, **metadata})
    listed.most = most
    return listed


def _values_of(field: FilterField, *, required: bool = False, **metadata: Any) -> fields.Field[Any]:
    """The parameter of a filter."""
    listed = text_list(field.description, required=required, **metadata)
    if field.is_path:
        listed.validators.append(_check_globs)
    return listed


def _check_globs(paths: list[str]) -> None:
    globs = [path for path in paths if "*" in path]
    if len(globs) > MAX_GLOBS:
        raise ValidationError(f"{len(globs)} globs; allowed: at most {MAX_GLOBS}")
    if (stars := max((len(_STARS.findall(path)) for path in globs), default=0)) > MAX_STARS:
        raise ValidationError(f"a glob of {stars} stars; allowed: at most {MAX_STARS}")


def number(description: str, default: int | None, low: int, high: int) -> fields.Field[Any]:
    """A whole number from `low` to `high`."""
    bounds = validate.Range(low, high, error=f"allowed: {low} to {high}")
    invalid = f"allowed: a whole number from {low} to {high}"
    return Number(
        load_default=default,
        validate=bounds,
        metadata={"description": description},
        error_messages={"invalid": invalid},
    )


def choice(description: str, default: str | None, *values: str) -> fields.Field[Any]:
    """A parameter that takes one of these words."""
    one_of = validate.OneOf(values, error=f"allowed: {', '.join(values)}")
    metadata = {"description": description}
    return fields.String(load_default=default, validate=one_of, metadata=metadata)


def seldom(members: Fields) -> Fields:
    """The same parameters, marked as rarely used: a short page lists them on one line."""
    for field in members.values():
        field.metadata = {**field.metadata, "seldom": True}
    return members


SYNTAX = 'words; "a phrase", -without, prefix*, title:word, file:path, type:bugfix'


def query(*, required: bool, description: str = SYNTAX) -> Fields:
    return {"query": text(description, required=required)}


def also() -> Fields:
    """The other wordings of a query."""
    description = f"up to {MAX_WORDINGS} other wordings, no filters"
    too_many = f"allowed: at most {MAX_WORDINGS}"
    return {
        "also": Wordings(
            fields.String(validate=_check_length),
            validate=validate.Length(max=MAX_WORDINGS, error=too_many),
            metadata={"description": description},
        )
    }


def anchor(*, required: bool) -> Fields:
    description = "a record (123, #123, S12, P9) or a date"
    return {"anchor": AnchorField(required=required, metadata={"description": description})}


def filters(*kinds: Kind, without: str = "") -> Fields:
    """The filters that apply to these kinds, except the one named `without`."""
    carried = [field for field in FIELDS.values() if not field.attributes.keys().isdisjoint(kinds)]
    return {
        field.parameter: _values_of(field, seldom=not field.attributes.keys() >= set(kinds))
        for field in carried
        if field.name != without
    }


def required_filter(field: str, name: str) -> Fields:
    """A filter that an operation requires, under the operation's own name for it."""
    return {name: _values_of(FIELDS[field], required=True)}


def project() -> Fields:
    field = FIELDS["project"]
    return {field.parameter: text_list(field.description)}


def kinds() -> Fields:
    one_of = validate.OneOf(list(Kind), error=f"allowed: {', '.join(Kind)}")
    field = CommaList(
        fields.String(validate=one_of),
        load_default=list(map(str, Kind)),
        metadata={"description": f"record kinds: {', '.join(Kind)}"},
    )
    return {"kinds": field}


def refs() -> Fields:
    return {"ids": _list_of(RefField(), "refs: 123, #123, S12, P9", MAX_REFS, required=True)}


def record_id() -> Fields:
    return {"id": number("number of the record", None, 1, 10**15)}


def answer_format() -> Fields:
    description = "index: one row per record; full: whole records"
    return seldom({"format": choice(description, "index", "index", "full")})


def depth() -> Fields:
    return {
        "depth_before": number("records before the anchor", 10, 0, 50),
        "depth_after": number("records after the anchor", 10, 0, 50),
    }


def budget(default: int | None = None, ceiling: int | None = None) -> Fields:
    description = "maximum tokens"
    description += f"; never more than {ceiling}" if ceiling else ""
    return {"max_tokens": number(description, default, MIN_BUDGET, 1_000_000)}


def limit(description: str, default: int | None, high: int) -> Fields:
    return {"limit": number(description, default, 1, high)}


def dates() -> Fields:
    days = f"last N days, or all; with a query the last {DEFAULT_DAYS} come first"
    members: Fields = {
        "dateStart": DateField(metadata={"description": f"earliest date: {FORMS}"}),
        "dateEnd": DateField(metadata={"description": "latest date, to its end"}),
        "days": Days(metadata={"description": days}),
    }
    return seldom({name: members[name] for name in members if name != "days"}) | members


def forgetting() -> Fields:
    """The parameters that say what to forget, besides the filters."""
    given = {"description": "forget only what was made since then: the forms of until"}
    return {
        "query": text("words that a record must hold, all of them"),
        "since": DateField(metadata=given),
        "until": DateField(
            metadata={"description": f"forget only what was made until then: {FORMS}"}
        ),
        "source": text_list("names of sources, such as git or api"),
    }


def dry_run() -> Fields:
    return {"dry_run": choice("1: only tell what would be forgotten", "0", "0", "1")}


def rendering() -> Fields:
    description = "text: compact text; same as the header Accept: text/markdown"
    return seldom({"render": choice(description, None, "json", "text")})


def paging() -> Fields:
    """The parameters of every search besides its query and its filters."""
    order = "default: relevance with a query, else date_desc"
    explain = "1: explain scores"
    return {
        **limit("records per page", 20, 100),
        **seldom(
            {
                "offset": number("records to skip", 0, 0, 100_000_000),
                "orderBy": choice(order, None, "relevance", "date_desc", "date_asc"),
            }
        ),
        **answer_format(),
        **dates(),
        **budget(),
        **seldom({"explain": choice(explain, None, "0", "1")}),
    }


def make_schema(name: str, members: Fields) -> Schema:
    """The schema of an operation's parameters; unknown parameters are errors."""
    return Schema.from_dict(members, name=name)(unknown=RAISE)


def load_parameters(schema: Schema, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The parameters of one request, parsed from (name, value) pairs.

    Raises BadRequest; it names each bad parameter, what was given and what is allowed.
    """
    given: dict[str, list[Any]] = {}
    for name, value in pairs:
        if not _is_blank(schema, name, value):
            given.setdefault(_canonical_name(schema, name), []).append(value)
    errors = _name_errors(schema, given)
    known = {
        name: values if isinstance(schema.fields[name], fields.List) else values[0]
        for name, values in given.items()
        if name in schema.fields and name not in errors
    }
    try:
        return dict(schema.load(known))
    except ValidationError as error:
        found = error.normalized_messages()  # type: ignore[no-untyped-call]
    finally:
        if errors:
            raise _bad_request(errors)
    raise _bad_request({name: _explained(found[name], given.get(name)) for name in found})


def _is_blank(schema: Schema, name: str, value: Any) -> bool:
    """Whether a text parameter is blank, which counts as missing."""
    plain_text = type(schema.fields.get(name)) in (fields.String, AnchorField, Wordings)
    return plain_text and isinstance(value, str) and not value.strip()


def _canonical_name(schema: Schema, name: str) -> str:
    if name in schema.fields:
        return name
    for spellings in SPELLINGS:
        if name in spellings:
            return next((own for own in spellings if own in schema.fields), name)
    return name


def _name_errors(schema: Schema, given: Mapping[str, list[Any]]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    for name, values in given.items():
        if len(errors) == MAX_ERRORS:
            break
        if name not in schema.fields:
            errors[_shortened(name)] = [f"unknown parameter{_nearest(name, schema.fields)}"]
        elif len(values) > 1 and not isinstance(schema.fields[name], fields.List):
            errors[name] = [f"given {len(values)} times; it takes one value"]
    return errors


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name[:MAX_SHOWN], names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; allowed: {', '.join(names)}" if names else "; this operation takes no parameters"


def _explained(messages: Any, values: list[Any] | None) -> list[str]:
    reasons = sorted(set(_flatten(messages)))
    if values is None:
        return ["missing; it is required"]
    shown = _shortened(",".join(map(str, values)))
    return [f"given {shown!r}; {message}" for message in reasons]


def _flatten(messages: Any) -> Iterable[str]:
    if isinstance(messages, Mapping):
        for value in messages.values():
            yield from _flatten(value)
    elif isinstance(messages, list):
        yield from map(str, messages)


def _bad_request(errors: dict[str, list[str]]) -> BadRequest:
    name, messages = next(iter(errors.items()))
    if messages[0].startswith("missing"):
        return BadRequest(f"Missing required parameter: {name}", errors)
    joiner = " " if messages[0].startswith("given") else ": "
    return BadRequest(f"{_shortened(name)}{joiner}{messages[0]}", errors)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
