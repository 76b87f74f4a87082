"""What every store promises of deadlines: past one, a thread reads and writes nothing."""

from collections.abc import Callable, Iterator

import pytest
from samples import NOW
from workers import wait_until

from memsvc.core.errors import DeadlineExceeded
from memsvc.core.filters import EVERYTHING
from memsvc.core.limits import deadline
from memsvc.core.ports.store import Store
from memsvc.core.query import parse
from memsvc.core.records import Kind, Observation, Ref

OBSERVATION = Kind.OBSERVATION
FIRST = Ref(OBSERVATION, 1)

USES: dict[str, Callable[[Store], object]] = {
    "write": lambda store: store.write([named("b")]),
    "records": lambda store: store.records([FIRST]),
    "page": lambda store: store.page(
        [OBSERVATION], EVERYTHING, newest_first=True, limit=5, offset=0
    ),
    "rank": lambda store: store.rank(OBSERVATION, parse("a"), EVERYTHING, 5),
    "count_matches": lambda store: store.count_matches(OBSERVATION, parse("a"), EVERYTHING),
    "snapshot": lambda store: store.snapshot().__enter__(),
}


def named(name: str) -> Observation:
    return Observation(title=name, source="t", source_id=name, created_at_epoch=NOW)


def outlast() -> None:
    """Wait until this thread's deadline is over."""
    wait_until(lambda: deadline.left(None) == 0)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_past_the_deadline_nothing_is_read_or_written(
    store: Store, use: Callable[[Store], object]
) -> None:
    store.write([named("a")])
    with deadline.within(0), pytest.raises(DeadlineExceeded, match="at the deadline"):
        use(store)
    assert store.records([FIRST, Ref(OBSERVATION, 2)]).keys() == {FIRST}


def test_the_deadline_of_one_question_does_not_outlive_it(store: Store) -> None:
    with deadline.within(0), pytest.raises(DeadlineExceeded):
        store.count(OBSERVATION, EVERYTHING)
    assert store.count(OBSERVATION, EVERYTHING) == 0


def test_a_batch_that_outlasts_the_deadline_is_undone(store: Store) -> None:
    def records() -> Iterator[Observation]:
        yield named("a")
        outlast()
        yield named("b")

    with deadline.within(0.05), pytest.raises(DeadlineExceeded):
        store.write(records())
    assert store.count(OBSERVATION, EVERYTHING) == 0
    assert store.write([named("c")])[0].ref is not None


def test_within_the_deadline_everything_is_as_ever(store: Store) -> None:
    with deadline.within(1000), store.snapshot():
        assert store.count(OBSERVATION, EVERYTHING) == 0
    with deadline.within(1000):
        assert store.write([named("a")])[0].ref == FIRST


def test_an_inner_deadline_cannot_extend_an_outer_one(store: Store) -> None:
    with deadline.within(0), deadline.within(1000), pytest.raises(DeadlineExceeded):
        store.count(OBSERVATION, EVERYTHING)
