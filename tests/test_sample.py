"""The bundled sample store: complete, clean, and worth searching."""

import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from memsvc.adapters.importers.jsonl import read_jsonl
from memsvc.adapters.sqlite.store import open_store
from memsvc.application.importing.ingest import ingest
from memsvc.core.dates import utc_text
from memsvc.core.filters import Filter
from memsvc.core.records import CONCEPTS, TYPES, Kind

SAMPLE = Path(str(resources.files("memsvc.adapters.importers"))) / "sample.jsonl"


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]


def test_it_imports_whole_and_a_second_time_adds_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memories.db")
    try:
        report = ingest(store, read_jsonl(SAMPLE))
        assert report.stored_kinds == {Kind.OBSERVATION: 121, Kind.SESSION: 24, Kind.PROMPT: 48}
        assert (report.refused, report.unknown_fields) == (0, {})
        again = ingest(store, read_jsonl(SAMPLE))
        assert (again.stored, again.unchanged) == (0, 193)
        webhook = Filter((("file", ("src/payments/webhook.ts",)),))
        assert store.count(Kind.OBSERVATION, webhook) >= 10
    finally:
        store.close()


def test_every_record_names_its_kind_source_id_and_moment(lines: list[dict[str, Any]]) -> None:
    assert {line["source"] for line in lines} == {"sample"}
    assert len({line["id"] for line in lines}) == len(lines)
    days = [utc_text(line["created_at_epoch"])[:10] for line in lines]
    assert (days[0], days[-1]) == ("2026-08-03", "2026-11-12")
    assert days == sorted(days)


def test_all_types_all_concepts_and_three_projects_are_there(lines: list[dict[str, Any]]) -> None:
    observations = [line for line in lines if line["kind"] == "observation"]
    types = Counter(line["type"] for line in observations)
    concepts = Counter(concept for line in observations for concept in line["concepts"])
    assert set(types) == set(TYPES)
    assert set(concepts) == set(CONCEPTS)
    assert {line["project"] for line in lines} == {"shop-api", "shop-web", "infra"}
    assert len({line["session_id"] for line in lines}) == 24


def test_titles_are_not_repeated_and_the_file_is_small(lines: list[dict[str, Any]]) -> None:
    titles = [line["title"] for line in lines if line["kind"] == "observation"]
    assert len(set(titles)) == len(titles)
    assert SAMPLE.stat().st_size < 300_000
