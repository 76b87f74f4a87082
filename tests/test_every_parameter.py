"""Every parameter of every operation has an effect: a pair of requests shows it."""

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import pytest
from fake_semantic import indexed
from flask.testing import FlaskClient
from samples import NOW, OBSERVATIONS, fill

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.parameter_facts import Parameter, parameters_of
from memsvc.application.services import Services
from memsvc.core.filters import FIELDS
from memsvc.entrypoints.http.app import create_app

Given = dict[str, str]

TEXTS = {
    "folder": ["api", "none such"],
    "query": ["checkout", "worker"],
    "also": ["worker", "catalogue"],
    "anchor": ["12", "S3"],
    "ids": ["12,S3", "S3,12"],
    "id": ["1", "2"],
    "operation": ["timeline", "batch"],
    "source": ["samples", "none such"],
}
"""Values for a text parameter that is no filter; of any other, its name."""


def values_of(parameter: Parameter) -> list[str]:
    """Values worth trying for a parameter."""
    for field in FIELDS.values():
        if parameter.name in (field.parameter, *field.spellings):
            carried = (value for record in OBSERVATIONS for value in field.values(record))
            known = sorted(set(carried))
            return [",".join(known), *known[:3]]
    if parameter.bounds:
        low, high = parameter.bounds
        return [str(number) for number in (low, low + 1, 50 * low) if number <= high]
    known = {"date": ["2026-11-06", "60d"], "days": ["30", "all"]}
    given = parameter.allowed or known.get(parameter.type)
    return list(given or TEXTS.get(parameter.name, [parameter.name]))


def pairs(operation: Operation, parameter: Parameter) -> Iterator[tuple[Given, Given]]:
    """Pairs of requests that differ by one parameter, alone or beside one other."""
    all_values = {each.name: values_of(each) for each in parameters_of(operation.schema.fields)}
    must = {
        each.name: all_values[each.name][0]
        for each in parameters_of(operation.schema.fields)
        if each.required or f"<{each.name}>" in operation.path
    }
    if operation.name == "forget" and parameter.name != "dry_run":
        must["dry_run"] = "1"  # the first request must not forget what the second one asks for
    others = ((name, value) for name, values in all_values.items() for value in values)
    beside = ({name: value} for name, value in others if name != parameter.name)
    values = [{parameter.name: value} for value in all_values[parameter.name]]
    for situation in chain([{}], beside):
        around = must | situation
        if parameter.name not in must:
            yield from ((around, around | each) for each in values)
        yield from ((around | one, around | other) for one, other in combinations(values, 2))


def answer(client: FlaskClient, operation: Operation, given: Given) -> Any:
    """What an operation answers, without what it only repeats; None if it refuses."""
    path = operation.path.replace("<id>", given.get("id", ""))
    rest = {name: value for name, value in given.items() if f"<{name}>" not in operation.path}
    how: dict[str, Any] = {"json": rest} if operation.body else {"query_string": rest}
    headers = {"Accept": "application/json"}
    response = client.open(path, method=operation.method, headers=headers, **how)
    if response.status_code != 200:
        return None
    if not response.is_json:
        return response.get_data(as_text=True)
    page = response.get_json()
    return {
        name: value
        for name, value in page.items()
        if name not in operation.schema.fields or isinstance(value, dict)
    }


PARAMETERS = [
    pytest.param(operation, parameter, id=f"{operation.name}-{operation.method}-{parameter.name}")
    for operation in OPERATIONS
    for parameter in parameters_of(operation.schema.fields)
]


@pytest.mark.parametrize(("operation", "parameter"), PARAMETERS)
def test_every_parameter_has_an_effect(
    request: pytest.FixtureRequest, operation: Operation, parameter: Parameter
) -> None:
    changes = operation.method == "DELETE" or operation.name == "forget"
    client = request.getfixturevalue("own_samples" if changes else "semantic_client")
    for one, other in pairs(operation, parameter):
        found = answer(client, operation, one), answer(client, operation, other)
        if None not in found and found[0] != found[1]:
            return
    pytest.fail(f"nothing shows that {operation.name} reads {parameter.name}")


@pytest.fixture
def own_samples(own_store: SqliteStore) -> FlaskClient:
    """The samples, to change."""
    fill(own_store)
    return create_app(Services(own_store, lambda: NOW, indexed(own_store))).test_client()
