"""Writing what was read: batches, interruptions, rehearsals, reports."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.importing.ingest import BATCH, ingest
from memsvc.core.filters import Filter
from memsvc.core.ports.sources import Counter, Item, Reading, Refused, Skipped, UnknownFields
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Kind, Observation, Prompt, Record, Ref, WorkSession, kind_of

NOON = 1_790_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store(tmp_path / "memories.db")
    yield opened
    opened.close()


def observation(number: int, **changes: object) -> Observation:
    fields: dict[str, object] = {
        "title": f"Observation {number}",
        "created_at_epoch": NOON + number,
        "source": "test",
        "source_id": str(number),
        "project": "shop",
        "session_id": "s1",
    }
    return Observation(**{**fields, **changes})  # type: ignore[arg-type]


def reading(*items: Item, merge_within: dict[Kind, int] | None = None) -> Reading:
    counter = Counter()

    def read() -> Iterator[Item]:
        for item in items:
            counter.done += 1
            yield item

    def window(record: Record) -> int | None:
        return (merge_within or {}).get(kind_of(record))

    return Reading("test", read(), "rows", len(items), counter.position, window)


def size(store: SqliteStore) -> int:
    return sum(store.count(kind, Filter()) for kind in Kind)


def interrupt_at(batch: int) -> Callable[[int, int | None], None]:
    calls = 0

    def progress(done: int, total: int | None) -> None:
        nonlocal calls
        calls += 1
        if calls == batch:
            raise KeyboardInterrupt

    return progress


def test_progress_tells_how_far_the_source_is_read(store: SqliteStore) -> None:
    told: list[tuple[int, int | None]] = []
    items = [observation(i) for i in range(2 * BATCH + 1)]
    ingest(store, reading(*items), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2 * BATCH + 1, 2 * BATCH + 1)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_interrupted_between_batches_and_run_again_it_is_complete_without_doubles(
    store: SqliteStore,
) -> None:
    items = [observation(i) for i in range(4 * BATCH)]
    with pytest.raises(KeyboardInterrupt):
        ingest(store, reading(*items), progress=interrupt_at(2))
    assert size(store) == 2 * BATCH
    report = ingest(store, reading(*items))
    assert (report.stored, report.unchanged) == (2 * BATCH, 2 * BATCH)
    assert size(store) == 4 * BATCH


def test_interrupted_within_a_batch_only_complete_batches_remain(store: SqliteStore) -> None:
    def broken_off() -> Iterator[Item]:
        yield from (observation(i) for i in range(BATCH + 500))
        raise KeyboardInterrupt

    source = Reading("test", broken_off(), "rows", None, lambda: 0)
    with pytest.raises(KeyboardInterrupt):
        ingest(store, source)
    assert size(store) == BATCH


def test_an_interrupted_write_leaves_nothing_of_its_batch(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_write(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memsvc.adapters.sqlite.records.write_work_session", broken_write)
    items = (observation(1), WorkSession(session_id="s1", project="shop"))
    with pytest.raises(KeyboardInterrupt):
        ingest(store, reading(*items))
    assert size(store) == 0


def test_a_dry_run_writes_nothing_and_foresees_the_real_run(store: SqliteStore) -> None:
    there, forgotten, edited = (observation(i) for i in range(3))
    receipts = store.write([there, forgotten, edited])
    assert receipts[1].ref
    store.forget(receipts[1].ref)
    generation = store.generation()
    items = (
        there,
        forgotten,
        observation(2, title="Edited"),
        observation(3),
        observation(3),
        observation(3, title="Again, and other"),
        observation(4, title="Twin"),
        observation(5, title="Twin"),
        observation(6, title="<private>only this</private>"),
        Refused("line 9", "bad"),
        Skipped("internal"),
    )
    window = {Kind.OBSERVATION: 1000}
    foreseen = ingest(store, reading(*items, merge_within=window), dry_run=True)
    assert (store.generation(), size(store)) == (generation, 2)
    real = ingest(store, reading(*items, merge_within=window))
    assert foreseen.outcomes == real.outcomes
    assert foreseen.as_json() == {**real.as_json(), "dry_run": True}
    assert set(foreseen.outcomes) == set(Outcome)
    assert "nothing was written" in str(foreseen)


def test_equal_records_within_the_window_are_one_and_the_earliest_is_kept(
    store: SqliteStore,
) -> None:
    prompts = [
        Prompt(prompt_text="continue", created_at_epoch=NOON + s, source="x", source_id=str(s))
        for s in (0, 30_000, 7_000_000)
    ]
    window = {Kind.PROMPT: 60_000}
    report = ingest(store, reading(*prompts, merge_within=window))
    assert (report.stored, report.merged) == (2, 1)
    assert store.records([Ref(Kind.PROMPT, 1)])[Ref(Kind.PROMPT, 1)].created_at_epoch == NOON


def test_kinds_with_their_own_windows_do_not_mix(store: SqliteStore) -> None:
    twins = [observation(1, title="Same"), observation(2, title="Same")]
    prompt = Prompt(prompt_text="x", created_at_epoch=NOON, source="test", source_id="p")
    items = (twins[0], prompt, twins[1])
    report = ingest(store, reading(*items, merge_within={Kind.PROMPT: 60_000}))
    assert (report.stored, report.merged) == (3, 0)


def test_without_a_window_equal_records_with_ids_of_their_own_stay_two(store: SqliteStore) -> None:
    report = ingest(store, reading(observation(1, title="Same"), observation(2, title="Same")))
    assert (report.stored, report.merged) == (2, 0)


def test_what_was_forgotten_stays_away(store: SqliteStore) -> None:
    ingest(store, reading(observation(1)))
    store.forget(Ref(Kind.OBSERVATION, 1))
    report = ingest(store, reading(observation(1)))
    assert (report.stored, report.forgotten) == (0, 1)
    assert "skipped: deleted earlier" in str(report)


def test_the_report_counts_every_refusal_and_keeps_the_first_places(store: SqliteStore) -> None:
    refusals = [Refused(f"line {i}", "bad") for i in range(50)]
    report = ingest(store, reading(observation(1), *refusals))
    assert (report.refused, len(report.refusals)) == (50, 20)
    assert "50 refused" in str(report)
    assert "and 30 more" in str(report)


def test_a_source_of_noise_cannot_fill_the_memory_with_field_names(store: SqliteStore) -> None:
    noise = [UnknownFields((f"field-{i}" + "x" * 1000,)) for i in range(5000)]
    report = ingest(store, reading(*noise))
    assert sum(report.unknown_fields.values()) == 5000
    assert len(report.unknown_fields) < 1100
    assert len(str(report)) < 5000


def test_the_report_is_readable_and_fits_into_json(store: SqliteStore) -> None:
    report = ingest(store, reading(observation(1), Skipped("internal"), UnknownFields(("commit",))))
    assert str(report).splitlines() == [
        "test: 1 stored (1 observation)",
        "  1 skipped: internal",
        "  unknown fields, not stored: commit (1)",
    ]
    said = json.loads(json.dumps(report.as_json()))
    assert said["stored"] == 1
    assert said["stored_kinds"] == {"observation": 1, "session": 0, "prompt": 0}


def test_an_empty_source_writes_nothing(store: SqliteStore) -> None:
    before = store.generation()
    assert str(ingest(store, reading())) == "test: 0 stored"
    assert store.generation() == before
