"""What every store promises of writing, forgetting and reading back."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from adapters import Compare
from histories import Action, Batch, everything, histories, play
from hypothesis import given
from hypothesis import strategies as st
from profiles import FEWER, HALF
from samples import DAY, NOW, RECORDS, WORK_SESSIONS

from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import Outcome, Receipt, Store
from memsvc.core.query import parse
from memsvc.core.records import Kind, Observation, Prompt, Record, Ref, Summary, WorkSession

FIRST = Ref(Kind.OBSERVATION, 1)


def named(name: str, **given: Any) -> Observation:
    made = {"title": name, "source": "t", "source_id": name, "created_at_epoch": NOW}
    return Observation(**made | given)


def outcomes(receipts: list[Receipt]) -> list[str]:
    return [str(receipt.outcome) for receipt in receipts]


@HALF
@given(history=histories)
def test_the_same_history_leads_to_the_same_answers_and_the_same_records(
    compared: Compare, history: list[Action]
) -> None:
    with compared() as (opened, memory):
        for action in history:
            if isinstance(action, Batch):
                given_ = action.records, action.merge_within
                assert opened.store.preview(given_[0], merge_within=given_[1]) == memory.preview(
                    given_[0], merge_within=given_[1]
                )
            assert play(opened.store, action) == play(memory, action)
            assert everything(opened.store) == everything(memory)


def test_a_new_record_is_stored_once_for_its_source(store: Store) -> None:
    new, prompt = named("a"), Prompt(prompt_text="a", source="t", source_id="a")
    assert store.write([new, prompt]) == [
        Receipt(Outcome.STORED, FIRST),
        Receipt(Outcome.STORED, Ref(Kind.PROMPT, 1)),
    ]
    assert store.write([new]) == [Receipt(Outcome.UNCHANGED, FIRST)]
    assert store.write([named("b", source_id="a")]) == [Receipt(Outcome.UPDATED, FIRST)]
    assert store.records([FIRST, Ref(Kind.OBSERVATION, 2)]) == {
        FIRST: named("b", source_id="a", id=1)
    }


def test_a_record_without_a_date_has_that_of_its_first_writing(store: Store) -> None:
    store.write([named("a", created_at_epoch=0)])
    first = store.times([FIRST])[FIRST]
    assert first > DAY
    assert outcomes(store.write([named("a", created_at_epoch=0)])) == ["unchanged"]
    store.write([named("a", narrative="more", created_at_epoch=0)])
    assert store.times([FIRST, Ref(Kind.PROMPT, 1)]) == {FIRST: first}


@pytest.mark.parametrize(
    ("apart", "given_", "outcome"),
    [
        (10, {}, "merged"),
        (-10, {}, "merged"),
        (11, {}, "stored"),
        (5, {"narrative": "more"}, "stored"),
        (5, {"source": "other"}, "stored"),
        (5, {"discovery_tokens": 7}, "merged"),
    ],
)
def test_a_record_that_says_the_same_at_about_the_same_time_is_merged(
    store: Store, apart: int, given_: dict[str, Any], outcome: str
) -> None:
    store.write([named("a")])
    again = named("a", source_id="b", created_at_epoch=NOW + apart, **given_)
    assert outcomes(store.preview([again])) == ["stored"]
    (receipt,) = store.write([again], merge_within=10)
    assert receipt.outcome == outcome
    assert (receipt.ref == FIRST) == (outcome == "merged")


def test_a_record_is_merged_into_the_earliest_that_says_the_same(store: Store) -> None:
    store.write([named("a", source_id=str(at), created_at_epoch=NOW + at) for at in (5, 3, 3)])
    (receipt,) = store.write([named("a", source_id="new")], merge_within=10)
    assert receipt == Receipt(Outcome.MERGED, Ref(Kind.OBSERVATION, 2))


def test_a_preview_says_what_a_write_would_and_writes_nothing(store: Store) -> None:
    store.write([named("a"), named("b")])
    store.forget(Ref(Kind.OBSERVATION, 2))
    asked = [named("a"), named("a", title="x"), named("b"), named("a", source_id="c"), named("d")]
    generation = store.generation()
    found = store.preview(asked, merge_within=10)
    assert outcomes(found) == ["unchanged", "updated", "forgotten", "merged", "stored"]
    assert [receipt.ref for receipt in found] == [FIRST, FIRST, None, FIRST, None]
    assert (store.generation(), store.count(Kind.OBSERVATION, EVERYTHING)) == (generation, 1)


def test_what_is_forgotten_is_nowhere_and_stays_away(store: Store) -> None:
    secret = named("secret", project="hidden", session_id="s", type="odd", concepts=("c",))
    store.write([named("a"), secret], [WorkSession(session_id="s", project="hidden")])
    ref = Ref(Kind.OBSERVATION, 2)
    assert store.forget(ref)
    assert not store.forget(ref)
    assert store.records([ref]) == store.times([ref]) == {}
    assert [project.name for project in store.projects()] == [""]
    assert [store.count_values(ref.kind, name) for name in ("type", "concept", "project")] == [
        {"discovery": 1},
        {},
        {"": 1},
    ]
    assert store.count_matches(ref.kind, parse("secret"), EVERYTHING) == 0
    assert store.count_work_sessions(EVERYTHING) == 1
    twin = replace(secret, source_id="twin")
    assert outcomes(store.write([secret, twin], merge_within=DAY)) == ["forgotten", "forgotten"]
    assert outcomes(store.write([twin])) == ["stored"]


def test_a_forgotten_work_session_stays_away_until_a_record_of_it_is_written(store: Store) -> None:
    session = WorkSession(session_id="s", project="P", started_at_epoch=NOW, status="completed")
    store.write([named("a", project="p", session_id="s")])
    store.forget(FIRST)
    store.write([], [session])
    assert store.recent_work(EVERYTHING, limit=9, most=9) == []
    store.write([named("b", project="p", session_id="s")], [session])
    (entry,) = store.recent_work(EVERYTHING, limit=9, most=9)
    assert (entry.session.status, entry.session.project) == ("completed", "p")


def test_no_id_is_given_out_twice(store: Store) -> None:
    store.write([named("a"), named("b")])
    store.forget(Ref(Kind.OBSERVATION, 2))
    assert store.write([named("c")])[0].ref == Ref(Kind.OBSERVATION, 3)


def test_a_batch_is_written_whole_or_not_at_all(store: Store) -> None:
    def broken() -> Iterator[Record]:
        yield from RECORDS[:5]
        raise RuntimeError("the source broke off")

    generation = store.generation()
    with pytest.raises(RuntimeError):
        store.write(broken())
    assert (everything(store), store.generation()) == ({}, generation)
    store.write(RECORDS, WORK_SESSIONS)
    assert len(everything(store)) == len(RECORDS)


def test_every_change_counts_the_generation_up(store: Store) -> None:
    seen = [store.generation()]
    for change in (
        lambda: store.write([named("a")]),
        lambda: store.write([named("a", title="b")]),
        lambda: store.write([], [WorkSession(session_id="s")]),
        lambda: store.forget(FIRST),
    ):
        change()
        seen.append(store.generation())
    assert seen == sorted(set(seen))


def test_readers_go_on_while_a_write_is_under_way(store: Store) -> None:
    seen: list[int] = []

    def reading() -> Iterator[Record]:
        yield named("new")
        seen.append(store.count(Kind.OBSERVATION, EVERYTHING))

    store.write(reading())
    assert (seen, store.count(Kind.OBSERVATION, EVERYTHING)) == ([0], 1)


def test_a_snapshot_sees_one_state(store: Store) -> None:
    def state() -> list[object]:
        return [
            store.generation(),
            store.records([FIRST]),
            store.count(Kind.OBSERVATION, EVERYTHING),
            store.count_matches(Kind.OBSERVATION, parse("charge"), EVERYTHING),
            store.projects(),
            store.economics(),
        ]

    store.write(RECORDS)
    with store.snapshot():
        before = state()
        with store.snapshot():
            store.forget(FIRST)
            assert state() == before
        assert state() == before
    after = state()
    assert all(new != old for new, old in zip(after, before, strict=True))


def test_threads_read_and_write_at_once_without_an_error(store: Store) -> None:
    errors: list[BaseException] = []

    def use(number: int) -> None:
        try:
            for turn in range(5):
                store.write([named(f"payment {number}-{turn}")])
                with store.snapshot():
                    hits = store.rank(Kind.OBSERVATION, parse("payment"), EVERYTHING, 20)
                    assert len(store.records(hit.ref for hit in hits)) == len(hits) > 0
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.count(Kind.OBSERVATION, EVERYTHING) == 20


def test_an_edit_moves_a_record_to_where_it_belongs_now(store: Store) -> None:
    store.write([named("a", project="old", session_id="s", files_read=("old.py",))])
    store.write([named("a", project="new", session_id="s", files_read=("new.py",))])
    for field, value, count in (
        ("project", "old", 0),
        ("project", "new", 1),
        ("file", "old.py", 0),
    ):
        assert store.count(Kind.OBSERVATION, Filter(((field, (value,)),))) == count
    assert [each.session.project for each in store.recent_work(EVERYTHING, limit=9, most=9)] == [
        "new"
    ]


@FEWER
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40))
def test_any_text_is_read_back_as_it_was_written(compared: Compare, text: str) -> None:
    made = [
        named(text, source_id="1", facts=(text,), concepts=(text,), files_read=(text,)),
        Summary(request=text, session_id=text, source="t", source_id="1", created_at_epoch=NOW),
    ]
    with compared() as (opened, _):
        opened.store.write(made)
        assert list(everything(opened.store).values()) == [replace(each, id=1) for each in made]


def test_a_store_that_is_well_passes_the_check_before_and_after_it_is_examined(
    store: Store,
) -> None:
    store.check()
    store.write([Observation(title="a", source="t", source_id="1", created_at_epoch=NOW)])
    store.examine()
    store.check()
    assert store.forget(Ref(Kind.OBSERVATION, 1))
    store.check()


def test_a_store_may_be_checked_within_a_snapshot(store: Store) -> None:
    with store.snapshot():
        store.generation()
        store.check()
        store.examine()
