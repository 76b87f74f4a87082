"""Every filter of every operation, as the table lists them, selects what `selects` says."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fake_semantic import indexed
from flask.testing import FlaskClient
from hypothesis import settings
from samples import DAY, NOW, numbered

from memsvc.adapters.sqlite.store import open_store
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.application.services import Services
from memsvc.core.filters import FIELDS, Filter, FilterField, selects
from memsvc.core.paths import path_endings
from memsvc.core.records import Kind, Observation, Prompt, Record, Ref, Summary, kind_of
from memsvc.entrypoints.http.app import create_app
from memsvc.schemas.parameters import SYNTAX

Given = dict[str, str]
Check = Callable[[str, Record], bool]

COMMON = "payment"
"""A word that every record holds."""


def _carries(field: FilterField, value: str, record: Record) -> bool:
    return selects(Filter(((field.name, tuple(value.split(","))),)), record)


FIELD_OF = {name: f for f in FIELDS.values() for name in (f.parameter, *f.spellings)}
CHECKS: dict[str, Check] = {
    **{name: partial(_carries, field) for name, field in FIELD_OF.items()},
    "kinds": lambda value, record: kind_of(record) in value.split(","),
    "dateStart": lambda value, record: record.created_at_epoch >= int(value),
    "dateEnd": lambda value, record: record.created_at_epoch <= int(value),
    "days": lambda value, record: record.created_at_epoch >= NOW - int(value) * DAY,
    "days_back": lambda value, record: record.created_at_epoch >= NOW - int(value) * DAY,
}
"""Which records a parameter selects."""

OTHERS = {
    *("query", "anchor", "ids", "id", "operation", "mode", "depth_before", "depth_after"),
    *("limit", "offset", "orderBy", "format", "explain", "max_tokens", "render"),
    *("since", "until", "source", "dry_run"),  # of forgetting: test_forgetting
    "folder",  # whose project is the default: test_place
    "also",  # other wordings of the query: test_wordings
    *("during", "end"),  # spans, which stand alone: test_time
}
"""Parameters that are no filters: what to look for, where, and how to answer."""


def filters_of(operation: Operation) -> list[str]:
    return [name for name in operation.schema.fields if name in CHECKS]


FILTERED = [each for each in OPERATIONS if filters_of(each) and each.name != "forget"]
each_operation = pytest.mark.parametrize(
    "operation", FILTERED, ids=lambda operation: f"{operation.name}-{operation.method}"
)


class Crowd:
    """A generated store with semantic search: twenty records, as few as any answer may hold."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = Random(seed)
        self.store = open_store(folder / "memsvc.db")
        made = numbered(map(self._record, [Observation] * 12 + [Summary] * 4 + [Prompt] * 4))
        receipts = self.store.write(made)
        self.records = self.store.records(receipt.ref for receipt in receipts if receipt.ref)
        services = Services(self.store, lambda: NOW, indexed(self.store))
        self.client = create_app(services).test_client()

    def _record(self, record: Any) -> Record:
        choose = self.chance.choice
        texts = {Observation: "title", Summary: "request", Prompt: "prompt_text"}
        given: dict[str, Any] = {texts[record]: f"{choose(['late', 'early'])} {COMMON}"}
        if record is Observation:
            given["type"] = choose(["bugfix", "Bugfix", "decision", "odd type"])
            given["concepts"] = tuple(self.chance.sample(["gotcha", "Gotcha", "pattern"], 2))
        if record is not Prompt:
            paths = ["src/main.py", "src/api/main.py", "docs/a b.md", "README.md"]
            given["files_read"] = tuple(self.chance.sample(paths, self.chance.randint(0, 2)))
        return record(
            project=choose(["api", "Shop", "shop", "docs"]),
            session_id=choose(["s1", "s2"]),
            created_at_epoch=NOW - self.chance.randint(0, 100 * DAY),
            **given,
        )

    def value(self, name: str) -> str:
        """A value for a filter: carried by some records, in any case, or by none."""
        chance = self.chance
        if name in FIELD_OF:
            field = FIELD_OF[name]
            carried = sorted({v for record in self.records.values() for v in field.values(record)})
            texts = chance.sample(carried, min(len(carried), 2))
            forms = [_paths(text) if field.is_path else [text, text.swapcase()] for text in texts]
            found = [chance.choice(each) for each in forms]
            return ",".join(chance.choice([found, found[:1], [*found[:1], "none such"], ["none"]]))
        if name == "kinds":
            return ",".join(chance.sample(list(Kind), chance.randint(1, 2)))
        if name in ("dateStart", "dateEnd"):
            return str(chance.choice(list(self.records.values())).created_at_epoch)
        return str(chance.randint(1, 100))

    def selected(self, operation: Operation, given: Given) -> set[Ref]:
        """The records that all filters of a request select."""
        shown = (Kind.OBSERVATION,) if _is_index(operation, given) else operation.kinds
        asked = [(CHECKS[name], value) for name, value in given.items() if name in CHECKS]
        return {
            ref
            for ref, record in self.records.items()
            if ref.kind in shown and all(check(value, record) for check, value in asked)
        }

    def last_summary(self, given: Given) -> str | None:
        """The newest session summary that all filters of a request select."""
        asked = [(FIELD_OF[name], value) for name, value in given.items() if name in FIELD_OF]
        found = [
            (record.created_at_epoch, str(ref))
            for ref, record in self.records.items()
            if ref.kind is Kind.SESSION and all(_carries(*each, record) for each in asked)
        ]
        return max(found)[1] if found else None

    def situations(self, operation: Operation) -> list[Given]:
        """The requests of an operation that its filters are added to, with and without a query."""
        fields = operation.schema.fields
        widest = {name: self._widest(name, operation) for name in fields if name in WIDE}
        must = {name: self._all(name) for name in fields if fields[name].required}
        choices = [{}, {"query": COMMON}, {"anchor": FAR}, {"query": COMMON, "mode": "interactive"}]
        possible = [widest | must | each for each in choices if set(each) <= set(fields)]
        probe = {filters_of(operation)[0]: self.value(filters_of(operation)[0])}
        found = [each for each in possible if ask(self.client, operation, each | probe)[0] == 200]
        assert found, operation.name
        return found

    def _widest(self, name: str, operation: Operation) -> str:
        highest = operation.schema.fields[name].validate.max  # type: ignore[union-attr]
        return str(min(highest, operation.ceiling or highest))

    def _all(self, name: str) -> str:
        """What a required parameter must be for everything to be selected."""
        if name in FIELD_OF:
            field = FIELD_OF[name]
            carried = {v for record in self.records.values() for v in field.values(record)}
            return ",".join(sorted(carried))
        return {"query": COMMON, "anchor": FAR, "ids": ",".join(map(str, self.records))}[name]


WIDE = ("limit", "depth_before", "depth_after", "max_tokens")
FAR = datetime.fromtimestamp((NOW + DAY) / 1000, UTC).isoformat()


def _paths(path: str) -> list[str]:
    """What names a path: its endings, a folder, a glob."""
    return [*path_endings(path), path.split("/")[0], f"*{path[-4:]}", f"./{path}"]


def _is_index(operation: Operation, given: Given) -> bool:
    """Whether an operation of all kinds lists observations alone."""
    recent = operation.name == "recent-context" and "query" in given
    return recent or operation.name == "session-start"


def ask(client: FlaskClient, operation: Operation, given: Given) -> tuple[int, Any]:
    headers = {"Accept": "application/json"}
    how: dict[str, Any] = {"json": given} if operation.body else {"query_string": given}
    response = client.open(operation.path, method=operation.method, headers=headers, **how)
    return response.status_code, response.get_json()


def rows(answer: Any) -> Iterator[Any]:
    """Every row that names a record, however deep it lies."""
    if isinstance(answer, dict) and "ref" in answer:
        yield answer
    elif isinstance(answer, dict | list):
        for inner in answer.values() if isinstance(answer, dict) else answer:
            yield from rows(inner)


SEEDS = range(settings().max_examples // 50)


@pytest.fixture(scope="module", params=SEEDS)
def crowd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crowd]:
    made = Crowd(request.param, tmp_path_factory.mktemp("crowd"))
    yield made
    made.store.close()


def check(crowd: Crowd, operation: Operation, given: Given, expected: set[Ref]) -> None:
    status, answer = ask(crowd.client, operation, given)
    assert status == 200, (given, answer)
    found = [ref for row in rows(answer["results"]) for ref in (row["ref"], *row.get("twins", ()))]
    assert sorted(found) == sorted(map(str, expected)), given
    if operation.name == "session-start":
        assert answer.get("summary", {}).get("ref") == crowd.last_summary(given)


def test_every_parameter_is_a_filter_with_a_check_or_known_to_be_none() -> None:
    named = {name for operation in OPERATIONS for name in operation.schema.fields}
    assert named - CHECKS.keys() - OTHERS == set()


@each_operation
def test_every_filter_of_every_operation_selects(crowd: Crowd, operation: Operation) -> None:
    for situation in crowd.situations(operation):
        for name in filters_of(operation):
            for _ in range(2):
                given = situation | {name: crowd.value(name)}
                check(crowd, operation, given, crowd.selected(operation, given))


@each_operation
def test_all_filters_of_a_request_hold_together(crowd: Crowd, operation: Operation) -> None:
    names = filters_of(operation)
    for situation in crowd.situations(operation):
        for size in range(2, min(4, len(names)) + 1):
            chosen = crowd.chance.sample(names, size)
            given = situation | {name: crowd.value(name) for name in chosen}
            if int(given.get("dateStart", 0)) <= int(given.get("dateEnd", NOW)):
                check(crowd, operation, given, crowd.selected(operation, given))


SPEAKING = [
    operation
    for operation in FILTERED
    if "query" in operation.schema.fields
    and operation.schema.fields["query"].metadata["description"] == SYNTAX
]


@pytest.mark.parametrize("operation", SPEAKING, ids=lambda operation: operation.name)
@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
@pytest.mark.parametrize("words", ["", COMMON])
def test_a_filter_in_the_query_selects_as_its_parameter_does(
    crowd: Crowd, operation: Operation, field: FilterField, words: str
) -> None:
    """What a timeline shows is around the match: there only the match must be selected."""
    situation = {"kinds": ",".join(Kind)} if "kinds" in operation.schema.fields else {}
    situation |= next(each for each in crowd.situations(operation) if "query" in each)
    for value in (crowd.value(field.parameter), crowd.value(field.parameter)):
        given = situation | {"query": f'{words} {field.name}:"{value}"'}
        expected = crowd.selected(operation, given)
        expected = {ref for ref in expected if _carries(field, value, crowd.records[ref])}
        if "mode" in operation.schema.fields:
            _, answer = ask(crowd.client, operation, given)
            assert (
                answer["anchor"]["ref"] in map(str, expected) if expected else answer["total"] == 0
            )
        else:
            check(crowd, operation, given, expected)
