"""JSON Lines files as users have them, read and written into a real store."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.adapters.importers.jsonl import MAX_LINE, read_jsonl
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.importing.ingest import ingest
from memsvc.application.importing.report import Report
from memsvc.core.errors import SourceUnreadable
from memsvc.core.filters import Filter
from memsvc.core.records import Kind, Observation, Record

GOOD = {"id": 7, "title": "Kept", "created_at_epoch": 1_790_000_000_000}


def write_lines(path: Path, *lines: object) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def run_import(path: Path | str, folder: Path) -> tuple[Report, list[Record]]:
    store = open_store(folder / "store" / "memories.db")
    try:
        return ingest(store, read_jsonl(path)), all_records(store)
    finally:
        store.close()


def all_records(store: SqliteStore) -> list[Record]:
    hits = store.page(list(Kind), Filter(), newest_first=False, limit=10_000, offset=0)
    found = store.records(hit.ref for hit in hits)
    return [found[hit.ref] for hit in hits]


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.gz", "notes.gz", "notes"])
def test_source_is_named_after_the_file(tmp_path: Path, name: str) -> None:
    _, [record] = run_import(write_lines(tmp_path / name, GOOD), tmp_path)
    assert (record.source, record.source_id) == ("jsonl:notes", "7")


def test_a_line_may_name_its_own_source(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {**GOOD, "source": "elsewhere"})
    _, [record] = run_import(path, tmp_path)
    assert record.source == "elsewhere"


def test_gzip_is_known_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "plain-name.jsonl"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    report, _ = run_import(path, tmp_path)
    assert (report.stored, report.refused) == (1, 0)


def test_standard_input_is_read_for_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(json.dumps(GOOD).encode())))
    monkeypatch.setattr(sys, "stdin", stdin)
    report, [record] = run_import("-", tmp_path)
    assert (report.stored, record.source) == (1, "jsonl:stdin")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "not valid JSON"),
        ("[1, 2]", "expected a JSON object"),
        ('"text"', "expected a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"title": 5}', "title: expected text; given 5"),
        ('{"title": "x", "created_at": "soon"}', "created_at_epoch: given 'soon'; not a date"),
        ('{"title": "x", "created_at_epoch": 1e999}', "created_at_epoch"),
        ('{"title": "x", "created_at_epoch": NaN}', "created_at_epoch"),
        ('{"kind": "dream", "title": "x"}', "'dream' is not a kind"),
        ('{"type": "bugfix"}', "the record has no text"),
    ],
)
def test_a_bad_line_is_refused_alone_with_place_and_reason(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = write_lines(tmp_path / "a.jsonl", GOOD, line, {**GOOD, "id": 8})
    report, records = run_import(path, tmp_path)
    assert len(records) == 2
    [refusal] = report.refusals
    assert refusal.place == "line 2"
    assert reason in refusal.reason


def test_invalid_utf8_is_refused_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"title": "\xff"}\n')
    report, _ = run_import(path, tmp_path)
    assert (report.stored, report.refused) == (1, 1)
    assert "not valid UTF-8 at byte 12" in report.refusals[0].reason


def test_a_line_over_five_mebibytes_is_refused_alone(tmp_path: Path) -> None:
    long = {**GOOD, "id": 1, "narrative": "x" * (3 * MAX_LINE)}
    report, _ = run_import(write_lines(tmp_path / "a.jsonl", long, GOOD), tmp_path)
    assert (report.stored, report.refused) == (1, 1)
    assert "5 MiB" in report.refusals[0].reason


def test_truncated_gzip_keeps_the_lines_before_the_damage(tmp_path: Path) -> None:
    lines = "".join(json.dumps({**GOOD, "id": i}) + "\n" for i in range(1000))
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode())[:-2000])
    report, records = run_import(path, tmp_path)
    assert len(records) > 100
    assert report.refused == 1
    assert report.refusals[0].place == f"line {len(records) + 1}"


def test_byte_order_mark_blank_lines_and_windows_line_ends_are_forgiven(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n   \n")
    report, _ = run_import(path, tmp_path)
    assert (report.stored, report.refused) == (1, 0)


def test_fields_nobody_keeps_are_named_once_with_their_count(tmp_path: Path) -> None:
    lines = [{**GOOD, "id": i, "commit": "abc"} for i in range(3)]
    path = write_lines(tmp_path / "a.jsonl", *lines, {**GOOD, "id": 9, "text": "old"})
    report, _ = run_import(path, tmp_path)
    assert report.unknown_fields == {"commit": 3, "text": 1}
    assert "unknown fields, not stored: commit (3), text (1)" in str(report)


def test_a_record_as_the_service_answers_it_has_no_field_that_is_not_kept(tmp_path: Path) -> None:
    answered = {**GOOD, "kind": "observation", "created_at": "2026-09-21T14:13:20Z"}
    report, _ = run_import(write_lines(tmp_path / "a.jsonl", answered), tmp_path)
    assert report.unknown_fields == {}


def test_a_second_import_adds_nothing_even_for_lines_without_an_id(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", GOOD, {"title": "No id", "created_at": "2026-10-01"})
    assert run_import(path, tmp_path)[0].stored == 2
    again, records = run_import(path, tmp_path)
    assert (again.stored, again.unchanged, len(records)) == (0, 2, 2)


def test_a_line_edited_since_updates_its_record(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", GOOD)
    run_import(path, tmp_path)
    report, [record] = run_import(write_lines(path, {**GOOD, "title": "Better"}), tmp_path)
    assert report.updated == 1
    assert isinstance(record, Observation)
    assert record.title == "Better"


def test_position_counts_the_bytes_of_the_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    reading = read_jsonl(path)
    list(reading.items)
    assert reading.total == path.stat().st_size
    assert reading.position() == reading.total


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_what_cannot_be_opened_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceUnreadable, match="cannot be read"):
        read_jsonl(tmp_path / name)


@given(noise=st.lists(st.binary(max_size=60), max_size=8), compressed=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_never_crash_and_never_cost_the_good_lines(
    tmp_path: Path, noise: list[bytes], compressed: bool
) -> None:
    good = [json.dumps({**GOOD, "id": f"good-{i}"}).encode() for i in range(len(noise) + 1)]
    lines = [good[0], *(line for pair in zip(noise, good[1:], strict=True) for line in pair)]
    body = b"\n".join(lines)
    path = tmp_path / "noise.jsonl"
    path.write_bytes(gzip.compress(body) if compressed else body)
    records = [item for item in read_jsonl(path).items if isinstance(item, Record)]
    assert {f"good-{i}" for i in range(len(good))} <= {record.source_id for record in records}


@given(body=st.binary(max_size=300), magic=st.sampled_from([b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_of_noise_gives_refusals_not_errors(
    tmp_path: Path, body: bytes, magic: bytes
) -> None:
    path = tmp_path / "noise.jsonl"
    path.write_bytes(magic + body)
    list(read_jsonl(path).items)
