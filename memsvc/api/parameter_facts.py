"""What there is to say of a parameter: for help, OpenAPI, tools, commands and skill pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import fields, validate

from memsvc.schemas.parameters import DateField, Days


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its type, default, bounds and description. `allowed` has the words it takes.

    `seldom` marks a rarely used one, which a short page lists with others on one line.
    """

    name: str
    type: str
    required: bool
    default: str | int | list[str] | None
    bounds: tuple[int, int] | None
    allowed: tuple[str, ...]
    description: str
    seldom: bool

    def as_json(self) -> dict[str, Any]:
        """The parameter as help shows it."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            **({} if self.default is None else {"default": self.default}),
            **({"range": "{}-{}".format(*self.bounds)} if self.bounds else {}),
            **({"allowed": list(self.allowed)} if self.allowed else {}),
            "meaning": self.description,
        }

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameter."""
        inner: dict[str, Any] = {"type": "integer" if self.type == "number" else "string"}
        if self.allowed:
            inner["enum"] = list(self.allowed)
        if self.bounds:
            inner |= dict(zip(("minimum", "maximum"), self.bounds, strict=True))
        schema = {"type": "array", "items": inner} if self.type == "list" else inner
        return schema if self.default is None else schema | {"default": self.default}


def facts_of(described: Mapping[str, Any]) -> list[str]:
    """The facts about a parameter as short texts: `["number", "default 20", "1-100"]`."""
    facts = [described["type"], "required" if described["required"] else ""]
    if "default" in described:
        default = described["default"]
        facts.append(f"default {','.join(default) if isinstance(default, list) else default}")
    facts += [described.get("range", ""), "|".join(described.get("allowed", ()))]
    return [fact for fact in facts if fact]


def parameter_line(described: Mapping[str, Any]) -> str:
    """A parameter as one line of a list."""
    return f"- {described['name']} ({', '.join(facts_of(described))}): {described['meaning']}"


def parameters_of(members: dict[str, fields.Field[Any]]) -> list[Parameter]:
    """The parameters of a schema, in order."""
    return [_parameter(name, field) for name, field in members.items()]


def _parameter(name: str, field: fields.Field[Any]) -> Parameter:
    inner = field.inner if isinstance(field, fields.List) else field
    default = field.load_default
    return Parameter(
        name=name,
        type=_type(field),
        required=field.required,
        default=default if isinstance(default, str | int | list) else None,
        bounds=next(((int(v.min), int(v.max)) for v in _validators(inner, validate.Range)), None),
        allowed=next((tuple(map(str, v.choices)) for v in _validators(inner, validate.OneOf)), ()),
        description=field.metadata.get("description", ""),
        seldom=field.metadata.get("seldom", False),
    )


def _validators(field: fields.Field[Any], kind: type[Any]) -> list[Any]:
    return [validator for validator in field.validators if isinstance(validator, kind)]


def _type(field: fields.Field[Any]) -> str:
    named = ((fields.List, "list"), (DateField, "date"), (Days, "days"), (fields.Integer, "number"))
    return next((word for cls, word in named if isinstance(field, cls)), "text")
