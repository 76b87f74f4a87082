"""The order in which recent and older matches come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.core.ports.store import Hit
from memsvc.core.recency import THRESHOLD, boost_recent
from memsvc.core.records import Kind, Ref

SINCE = 1_000
UNTIL = 10_000


def hit(id: int, relevance: float, epoch: int) -> Hit:
    return Hit(Ref(Kind.OBSERVATION, id), epoch, relevance)


HITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2 * SINCE))).map(
    lambda pairs: [hit(id, relevance, epoch) for id, (relevance, epoch) in enumerate(pairs)]
)


def test_a_recent_relevant_match_comes_before_an_older_perfect_one() -> None:
    older, recent = hit(1, 1.0, SINCE - 1), hit(2, 0.9, SINCE)
    assert [each.ref.id for each in boost_recent([older, recent], SINCE, UNTIL)] == [2, 1]


def test_being_recent_does_not_make_a_weak_match_relevant() -> None:
    older, weak = hit(1, 0.9, SINCE - 1), hit(2, 0.3, SINCE)
    assert [each.ref.id for each in boost_recent([weak, older], SINCE, UNTIL)] == [1, 2]


def test_a_recent_match_at_the_very_threshold_is_relevant() -> None:
    older, recent = hit(1, 1.0, SINCE - 1), hit(2, THRESHOLD, SINCE)
    assert [each.ref.id for each in boost_recent([older, recent], SINCE, UNTIL)] == [2, 1]


def test_older_matches_are_marked() -> None:
    marked = boost_recent([hit(1, 0.9, SINCE - 1), hit(2, 0.9, SINCE)], SINCE, UNTIL)
    assert {each.ref.id: each.older for each in marked} == {1: True, 2: False}


def test_nothing_found_stays_nothing() -> None:
    assert boost_recent([], SINCE, UNTIL) == []


def test_equal_matches_keep_their_order() -> None:
    same = [hit(id, 0.5, SINCE) for id in (3, 1, 2)]
    assert [each.ref.id for each in boost_recent(same, SINCE, UNTIL)] == [3, 1, 2]


@given(HITS)
def test_every_match_comes_once_and_scores_fall_from_1_to_0(hits: list[Hit]) -> None:
    boosted = boost_recent(hits, SINCE, UNTIL)
    assert sorted(each.ref.id for each in boosted) == [hit.ref.id for hit in hits]
    moments = {hit.ref: hit.created_at_epoch for hit in hits}
    assert {each.ref: each.created_at_epoch for each in boosted} == moments
    scores = [each.relevance + each.recency for each in boosted]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(HITS)
def test_recent_matches_nearly_as_relevant_as_the_best_precede_every_other(
    hits: list[Hit],
) -> None:
    """Nearly means .88 of the best. Within both groups the more relevant comes first."""
    best = max((each.relevance for each in hits), default=0.0)
    first = {
        each.ref
        for each in hits
        if each.relevance >= 0.88 * best and each.created_at_epoch >= SINCE
    }
    boosted = boost_recent(hits, SINCE, UNTIL)
    assert {each.ref for each in boosted[: len(first)]} == first
    for group in (boosted[: len(first)], boosted[len(first) :]):
        falling = [each.relevance for each in group]
        assert falling == sorted(falling, reverse=True)


@given(HITS)
def test_relevance_counts_alike_in_every_score_and_being_recent_adds_one_bonus(
    hits: list[Hit],
) -> None:
    """The bonus is .12 / 1.12, and relevance counts for the rest."""
    relevance = {each.ref: each.relevance for each in hits}
    for each in boost_recent(hits, SINCE, UNTIL):
        assert each.relevance == pytest.approx(relevance[each.ref] / 1.12)
        assert each.recency == 0 or each.recency == pytest.approx(0.12 / 1.12)
