"""The life of a store beside its model, step by step: after each, all that can be read is equal."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from adapters import ADAPTERS
from histories import Batch, batches, counted, everything, few_records, play, refs, work_sessions
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from memory_store import MemoryStore
from profiles import FEWER
from samples import DAY, NOW

from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import Outcome, Point, Store
from memsvc.core.query import parse
from memsvc.core.records import Kind, Record, Ref, WorkSession, kind_of

ONE = "8-one"
QUERIES = list(map(parse, ["payment retry cache", '"payment retry"', "title:token", "登录 -cache"]))
SELECTIONS = [
    Filter((("project", ("API",)),)),
    Filter((("type", ("bugfix", "decision")), ("concept", ("payment", "token")))),
    Filter((("file", ("src", "*.ts")),), since=NOW - DAY),
]


class Life(RuleBasedStateMachine):
    """One store and its model; every step is taken by both."""

    def __init__(self, adapter: str) -> None:
        super().__init__()
        self._open = ADAPTERS[adapter]
        self._folder = TemporaryDirectory()
        self._opened = self._open(Path(self._folder.name))
        self._memory = MemoryStore()
        self._snapshots = ExitStack()
        self._in_snapshot = False
        self._generations = [0, 0]

    def teardown(self) -> None:
        self._snapshots.close()
        self._opened.store.close()
        self._folder.cleanup()

    @property
    def _stores(self) -> tuple[Store, MemoryStore]:
        return self._opened.store, self._memory

    def _held(self, number: int) -> Record | None:
        """One of the records that the store has now, snapshot or not."""
        rows = [row.record for row in self._memory.rows if not row.is_forgotten]
        return rows[number % len(rows)] if rows else None

    def _write(
        self, *records: Record, work: tuple[WorkSession, ...] = (), merge_within: int | None = None
    ) -> list[str]:
        batch = Batch(records, work, merge_within)
        previews = [store.preview(records, merge_within=merge_within) for store in self._stores]
        assert previews[0] == previews[1]
        receipts = [play(store, batch) for store in self._stores]
        assert receipts[0] == receipts[1]
        return [str(receipt.outcome) for receipt in receipts[0]]

    @initialize(data=st.data())  # what a rule draws from has to have a short name
    def begin_with_something(self, data: st.DataObject) -> None:
        self.write(data)

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        batch = data.draw(batches)
        self._write(*batch.records, work=batch.work_sessions, merge_within=batch.merge_within)

    @rule(session=work_sessions)
    def write_a_work_session_alone(self, session: WorkSession) -> None:
        self._write(work=(session,))

    @rule(data=st.data(), number=st.integers(0, 9), all_of_it=st.booleans())
    def update(self, data: st.DataObject, number: int, all_of_it: bool) -> None:
        """Let the source of a record say something else, or move it elsewhere."""
        if held := self._held(number):
            changed = data.draw(few_records)
            kept = {"source": held.source, "source_id": held.source_id}
            moved = {"project": changed.project, "session_id": changed.session_id}
            same_kind = all_of_it and type(changed) is type(held)
            after = replace(changed, **kept) if same_kind else replace(held, **moved)
            assert self._write(after) in (["updated"], ["unchanged"])

    @rule(merge_within=st.sampled_from([None, 0, DAY]))
    def import_all_again(self, merge_within: int | None) -> None:
        held = [row.record for row in self._memory.rows if not row.is_forgotten]
        assert set(self._write(*held, merge_within=merge_within)) <= {"unchanged"}

    @rule(merge_within=st.sampled_from([None, 0, DAY]))
    def import_what_was_forgotten(self, merge_within: int | None) -> None:
        gone = [row.record for row in self._memory.rows if row.is_forgotten]
        assert set(self._write(*gone, merge_within=merge_within)) <= {str(Outcome.FORGOTTEN)}

    @rule(
        number=st.integers(0, 9),
        name=st.sampled_from(["", "new", "newer"]),
        later=st.sampled_from([0, 1, DAY]),
        merge_within=st.sampled_from([None, 0, DAY]),
    )
    def import_a_twin(self, number: int, name: str, later: int, merge_within: int | None) -> None:
        """What says the same as a record that is there, or that was, under another source id."""
        rows = self._memory.rows
        gone = [row for row in rows if row.is_forgotten]
        if found := gone if gone and number % 2 else rows:
            first = found[number % len(found)].record
            moment = first.created_at_epoch + later
            twin = replace(first, source_id=name, created_at_epoch=moment)
            self._write(twin, merge_within=merge_within)

    @rule(data=st.data())
    def break_off(self, data: st.DataObject) -> None:
        """A source that fails in the middle has written nothing."""
        records = data.draw(st.lists(few_records, max_size=2))

        def broken() -> Any:
            yield from records
            raise EOFError

        for store in self._stores:
            with pytest.raises(EOFError):
                store.write(broken())

    @rule(ref=refs)
    def forget(self, ref: Ref) -> None:
        assert play(self._opened.store, ref) == play(self._memory, ref)

    @rule(number=st.integers(0, 9))
    def forget_what_is_there(self, number: int) -> None:
        if held := self._held(number):
            ref = Ref(kind_of(held), held.id)
            assert all([store.forget(ref) for store in self._stores])

    @rule()
    def stop_and_start(self) -> None:
        self.end_the_snapshots()
        self._opened.store.close()
        self._opened = self._open(Path(self._folder.name))

    @rule()
    def begin_a_snapshot(self) -> None:
        for store in self._stores:
            self._snapshots.enter_context(store.snapshot())
            store.generation()  # the first read says which state it is of
        self._in_snapshot = True

    @rule()
    def end_the_snapshots(self) -> None:
        self._snapshots.close()
        self._in_snapshot = False

    @invariant()
    def records_are_equal(self) -> None:
        assert everything(self._opened.store) == everything(self._memory)

    @invariant()
    def lists_are_equal(self) -> None:
        found, model = (_lists(store) for store in self._stores)
        assert found == model

    @invariant()
    def searches_are_equal(self) -> None:
        found, model = (_searches(store) for store in self._stores)
        assert found == model

    @invariant()
    def the_generation_never_falls(self) -> None:
        if not self._in_snapshot:
            seen = [store.generation() for store in self._stores]
            assert all(now >= before for now, before in zip(seen, self._generations, strict=True))
            self._generations = seen


def _lists(store: Store) -> list[object]:
    everywhere = [EVERYTHING, *SELECTIONS]
    return [
        [store.page(list(Kind), each, newest_first=True, limit=5, offset=1) for each in everywhere],
        [sorted(store.selected_ids(kind, each)) for each in everywhere for kind in Kind],
        [store.count(kind, each) for each in everywhere for kind in Kind],
        [counted(store, each) for each in everywhere],
        [
            store.neighbours(list(Kind), EVERYTHING, Point(NOW - 500), before=before, limit=3)
            for before in (True, False)
        ],
    ]


def _searches(store: Store) -> list[object]:
    return [
        (
            store.count_matches(kind, query, EVERYTHING),
            store.matches_by_time(kind, query, EVERYTHING, newest_first=True, limit=9),
            {hit.ref for hit in store.rank(kind, query, EVERYTHING, 99)},
        )
        for kind in Kind
        for query in QUERIES
    ]


@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if name != "memory"])
def test_whatever_happens_to_a_store_it_stays_equal_to_its_model(adapter: str) -> None:
    run_state_machine_as_test(
        partial(Life, adapter), settings=settings(FEWER, stateful_step_count=16)
    )
