"""Schemathesis makes requests from /openapi.json: every answer is one that the document describes.

A few examples for each route, and many in the thorough profile.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fake_semantic import indexed
from hypothesis import HealthCheck, given, settings
from samples import NOW, fill, new_store
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from memsvc.api.operations import OPERATIONS
from memsvc.application.services import Services
from memsvc.entrypoints.http.app import create_app

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]

ROUTES = [(o.method, path) for o in OPERATIONS for path in (o.path, *o.aliases)]

BOUNDED = settings(
    max_examples=settings().max_examples // 16,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The document of a worker over the samples, and what is written and forgotten on the way."""
    store = new_store(tmp_path_factory.mktemp("described") / "memsvc.db")
    fill(store)
    services = Services(store, lambda: NOW, indexed(store))
    yield schemathesis.openapi.from_wsgi("/openapi.json", create_app(services))
    store.close()


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda word: word)
def test_every_answer_is_as_described(
    described: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """Negative examples break the schema of a parameter or body."""
    operation = described[path.replace("<id>", "{id}")][method]

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def every_case_is(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    every_case_is()
