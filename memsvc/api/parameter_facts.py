"""TODO parameter_facts."""

from collections.abc import Mapping
from typing import Any

from marshmallow import fields, validate

from memsvc.schemas.parameters import CommaList, Date, Days


def describe_parameter(name: str, field: fields.Field[Any]) -> dict[str, Any]:
    """One parameter: its type, whether it is required, its default, its range, its meaning."""
    described: dict[str, Any] = {"name": name, "type": _type(field), "required": field.required}
    if isinstance(field.load_default, str | int | list):
        described["default"] = field.load_default
    described |= _range(field)
    return {**described, "meaning": field.metadata.get("description", "")}


def _type(field: fields.Field[Any]) -> str:
    named = ((CommaList, "list"), (Date, "date"), (Days, "days"), (fields.Integer, "number"))
    return next((word for cls, word in named if isinstance(field, cls)), "text")


def _range(field: fields.Field[Any]) -> dict[str, Any]:
    inner = field.inner if isinstance(field, CommaList) else field
    for validator in inner.validators:
        if isinstance(validator, validate.Range):
            return {"range": f"{validator.min}-{validator.max}"}
        if isinstance(validator, validate.OneOf):
            return {"allowed": list(map(str, validator.choices))}
    return {}


def parameter_text(parameter: Mapping[str, Any]) -> str:
    """One described parameter as a line."""
    facts = ["required"] if parameter["required"] else []
    if "default" in parameter:
        facts.append(f"default {default_text(parameter['default'])}")
    facts += [parameter["range"]] if "range" in parameter else []
    facts += ["|".join(parameter["allowed"])] if "allowed" in parameter else []
    shape = ", ".join([parameter["type"], *facts])
    return f"- {parameter['name']} ({shape}): {parameter['meaning']}"


def default_text(default: Any) -> str:
    """A default value in words."""
    return ",".join(default) if isinstance(default, list) else str(default)


def parameter_schema(field: fields.Field[Any]) -> dict[str, Any]:
    """JSON Schema of a parameter, as far as a schema can say it."""
    described = describe_parameter("", field)
    inner: dict[str, Any] = {"type": "integer" if described["type"] == "number" else "string"}
    if "allowed" in described:
        inner["enum"] = described["allowed"]
    if "range" in described:
        low, high = described["range"].split("-")
        inner |= {"minimum": int(low), "maximum": int(high)}
    schema = {"type": "array", "items": inner} if described["type"] == "list" else inner
    return schema | ({"default": described["default"]} if "default" in described else {})
