"""What every store promises of being copied into another, piece by piece."""

from collections.abc import Iterable

import pytest
from adapters import Compare
from histories import Action, everything, histories, play
from hypothesis import given
from memory_store import MemoryStore
from profiles import FEWER
from samples import NOW, RECORDS, WORK_SESSIONS, named

from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import Outcome, Receipt, Store, Trace
from memsvc.core.records import Kind, Observation, Record, Ref, WorkSession

Piece = WorkSession | Record | Trace


def pieces(store: Store, selection: Filter = EVERYTHING) -> list[Piece]:
    return list(store.contents(selection))


def copy(given_: Iterable[Piece], last_ids: dict[Kind, int], target: Store) -> list[Receipt]:
    """Write the pieces of a store to another."""
    found = list(given_)
    target.write([], [each for each in found if isinstance(each, WorkSession)])
    records = [each for each in found if isinstance(each, Record)]
    receipts = target.write(records, keep_ids=True)
    target.adopt([each for each in found if isinstance(each, Trace)], last_ids)
    return receipts


@FEWER
@given(history=histories)
def test_a_copy_holds_the_same_pieces_and_goes_on_as_the_store_would(
    compared: Compare, history: list[Action]
) -> None:
    with compared() as (opened, memory):
        for action in history:
            play(opened.store, action)
            play(memory, action)
        assert pieces(opened.store) == pieces(memory)
        assert opened.store.last_ids() == memory.last_ids()
        copied = MemoryStore()
        copy(pieces(opened.store), opened.store.last_ids(), copied)
        assert pieces(copied) == pieces(memory)
        assert everything(copied) == everything(memory)
        for action in history:
            assert play(copied, action) == play(memory, action)
            assert pieces(copied) == pieces(memory)


@FEWER
@given(history=histories)
def test_every_adapter_takes_in_the_pieces_of_another(
    compared: Compare, history: list[Action]
) -> None:
    with compared() as (opened, _):
        origin = MemoryStore()
        for action in history:
            play(origin, action)
        copy(pieces(origin), origin.last_ids(), opened.store)
        assert pieces(opened.store) == pieces(origin)
        assert opened.store.last_ids() == origin.last_ids()


def test_a_record_keeps_its_id_only_when_asked_and_above_all_that_were_given(store: Store) -> None:
    assert store.write([named("a", id=7)])[0].ref == Ref(Kind.OBSERVATION, 1)
    kept = store.write([named("b", id=7), named("c", id=5), named("d")], keep_ids=True)
    assert [receipt.ref and receipt.ref.id for receipt in kept] == [7, 8, 9]
    assert store.last_ids() == {Kind.OBSERVATION: 9, Kind.SESSION: 0, Kind.PROMPT: 0}


def test_a_record_that_is_there_keeps_its_own_ref_and_is_not_doubled(store: Store) -> None:
    store.write([named("a")])
    again = store.write([named("a", id=50)], keep_ids=True)
    assert again == [Receipt(Outcome.UNCHANGED, Ref(Kind.OBSERVATION, 1))]


def test_what_another_store_forgot_stays_away_here(store: Store) -> None:
    store.adopt([Trace("observation", "t", "a")], {Kind.OBSERVATION: 12})
    assert store.write([named("a")])[0].outcome is Outcome.FORGOTTEN
    assert store.write([named("b")])[0].ref == Ref(Kind.OBSERVATION, 13)


def test_what_exists_here_is_kept_though_another_store_forgot_it(store: Store) -> None:
    store.write([named("a"), named("b")])
    store.adopt([Trace("observation", "t", "a")], {Kind.OBSERVATION: 1})
    assert store.write([named("a")])[0].outcome is Outcome.UNCHANGED
    assert store.last_ids()[Kind.OBSERVATION] == 2


@pytest.mark.parametrize("project", ["shop", "SHOP"])
def test_the_pieces_of_one_project_are_its_own_and_no_traces(store: Store, project: str) -> None:
    store.write(RECORDS, WORK_SESSIONS)
    store.forget(Ref(Kind.OBSERVATION, 3))
    found = pieces(store, Filter((("project", (project,)),)))
    assert {each.project for each in found if isinstance(each, Record | WorkSession)} == {"shop"}
    assert not [each for each in found if isinstance(each, Trace)]
    ids = [each.id for each in found if isinstance(each, Observation)]
    assert ids == sorted(ids)
    assert len(ids) > 5


def test_pieces_are_of_one_moment(store: Store) -> None:
    store.write([named("a", NOW), named("b", NOW)])
    found = store.contents(EVERYTHING)
    first = next(found)
    store.write([named("c", NOW)])
    titles = [each.title for each in (first, *found) if isinstance(each, Observation)]
    assert titles == ["a", "b"]
