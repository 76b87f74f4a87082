"""The README says nothing that the service does not do."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.sample import sample_worker
from memsvc.api.operations import OPERATIONS, TEN
from tests.documents import BASH, EXAMPLE, ROOT, refresh

README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def refreshed() -> str:
    """The README as the service would write it now."""
    with sample_worker() as address:
        return refresh(README, address)


def test_every_answer_shown_is_the_one_that_the_service_gives(refreshed: str) -> None:
    shown = [found["answer"] for found in EXAMPLE.finditer(README)]
    given = [found["answer"] for found in EXAMPLE.finditer(refreshed)]
    assert shown == given


def test_every_bash_block_is_followed_by_its_answer() -> None:
    assert len(BASH.findall(README)) == len(EXAMPLE.findall(README)) > 10


def test_every_json_answer_has_the_shape_of_the_real_one(refreshed: str) -> None:
    pairs = zip(EXAMPLE.finditer(README), EXAMPLE.finditer(refreshed), strict=True)
    compared = [
        (shape(json.loads(shown["answer"])), shape(json.loads(given["answer"])))
        for shown, given in pairs
        if shown["kind"] == "json"
    ]
    assert compared
    assert all(shown == given for shown, given in compared)


def shape(value: object) -> object:
    """The names and types of a JSON value, without what it says."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__


def test_each_of_the_ten_routes_has_a_curl() -> None:
    commands = "\n".join(BASH.findall(README))
    missing = [o.path for o in TEN if "curl -s" not in commands or o.path not in commands]
    assert not missing


def test_every_setting_is_listed_and_every_saving_as_measured(refreshed: str) -> None:
    assert refreshed == README


def test_every_file_and_folder_named_is_there() -> None:
    named = re.findall(r"`((?:memsvc|tests|benchmarks)/[\w./]*)`", README)
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_route_of_the_table_is_listed() -> None:
    assert not [o.path for o in OPERATIONS if o.path not in README]


def test_no_path_of_a_machine_is_named() -> None:
    assert not re.search(r"/(?:home|root|tmp|Users)/", README)
    assert Path(ROOT, "README.md").stat().st_size < 40_000
