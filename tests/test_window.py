"""The order in which recent and older matches come."""

from hypothesis import given
from hypothesis import strategies as st

from memsvc.core.ports.store import Hit
from memsvc.core.recency import THRESHOLD, boost_recent
from memsvc.core.records import Kind, Ref

SINCE = 1_000


def hit(id: int, relevance: float, epoch: int) -> Hit:
    return Hit(Ref(Kind.OBSERVATION, id), epoch, relevance)


HITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2 * SINCE))).map(
    lambda pairs: [hit(id, relevance, epoch) for id, (relevance, epoch) in enumerate(pairs)]
)


def test_a_recent_relevant_match_comes_before_an_older_perfect_one() -> None:
    older, recent = hit(1, 1.0, SINCE - 1), hit(2, 0.9, SINCE)
    assert [each.ref.id for each in boost_recent([older, recent], SINCE)] == [2, 1]


def test_being_recent_does_not_make_a_weak_match_relevant() -> None:
    older, weak = hit(1, 0.9, SINCE - 1), hit(2, 0.3, SINCE)
    assert [each.ref.id for each in boost_recent([weak, older], SINCE)] == [1, 2]


def test_older_matches_are_marked() -> None:
    marked = boost_recent([hit(1, 0.9, SINCE - 1), hit(2, 0.9, SINCE)], SINCE)
    assert {each.ref.id: each.older for each in marked} == {1: True, 2: False}


def test_nothing_found_stays_nothing() -> None:
    assert boost_recent([], SINCE) == []


def test_equal_matches_keep_their_order() -> None:
    same = [hit(id, 0.5, SINCE) for id in (3, 1, 2)]
    assert [each.ref.id for each in boost_recent(same, SINCE)] == [3, 1, 2]


@given(HITS)
def test_no_match_is_lost_and_scores_fall_from_1_to_0(hits: list[Hit]) -> None:
    scores = [each.relevance + each.recency for each in boost_recent(hits, SINCE)]
    assert len(scores) == len(hits)
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(HITS)
def test_every_recent_relevant_match_precedes_every_other(hits: list[Hit]) -> None:
    best = max((each.relevance for each in hits), default=0.0)
    first = {
        each.ref
        for each in hits
        if each.relevance >= THRESHOLD * best and each.created_at_epoch >= SINCE
    }
    assert {each.ref for each in boost_recent(hits, SINCE)[: len(first)]} == first


@given(HITS)
def test_within_a_tier_the_more_relevant_comes_first(hits: list[Hit]) -> None:
    for promoted in (True, False):
        tier = [
            each.relevance for each in boost_recent(hits, SINCE) if bool(each.recency) == promoted
        ]
        assert tier == sorted(tier, reverse=True)
