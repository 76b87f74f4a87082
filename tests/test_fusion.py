"""Two rankings made one: what each side adds, and what holds for any two rankings."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.core.fusion import (
    MIN_LENGTH,
    MIN_SCALED,
    Fused,
    evidence,
    full_text_weight,
    fuse,
)

LEXICAL = st.dictionaries(st.integers(0, 12), st.floats(0, 1), max_size=8)
COSINES = st.dictionaries(st.integers(0, 12), st.floats(-1, 1), max_size=8)
COVERAGE = st.floats(0, 1)
LENGTH = st.integers(0, 2000)
USUAL = 60
"""Characters of a usual query."""

TINY = 1e-9


def relevances(fused: dict[int, Fused]) -> dict[int, float]:
    return {key: each.relevance for key, each in fused.items()}


def parts_of(fused: dict[int, Fused]) -> dict[int, tuple[float, float]]:
    return {key: (each.lexical, each.semantic) for key, each in fused.items()}


@given(LEXICAL, COSINES, COVERAGE, LENGTH)
def test_every_candidate_gets_a_relevance_between_0_and_1(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float, length: int
) -> None:
    fused = fuse(lexical, cosines, coverage, length)
    assert fused.keys() == lexical.keys() | cosines.keys()
    assert all(0 <= parts.relevance <= 1 + TINY for parts in fused.values())
    assert all(parts.lexical >= 0 and parts.semantic >= 0 for parts in fused.values())


@given(LEXICAL.filter(bool), COSINES.filter(bool), COVERAGE, LENGTH)
def test_the_best_of_both_sides_together_lie_between_what_each_side_says(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float, length: int
) -> None:
    fused = fuse(lexical, cosines, coverage, length).values()
    together = max(each.lexical for each in fused) + max(each.semantic for each in fused)
    low, high = sorted([max(lexical.values()), max(0, *cosines.values())])
    assert low - TINY <= together <= high + TINY


@given(LEXICAL, COSINES, COVERAGE, LENGTH)
def test_who_is_better_on_both_sides_is_never_less_relevant(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float, length: int
) -> None:
    fused = relevances(fuse(lexical, cosines, coverage, length))
    for a, b in itertools.permutations(fused, 2):
        words = lexical.get(a, -2) >= lexical.get(b, -2)
        if words and cosines.get(a, -2) >= cosines.get(b, -2):
            assert fused[a] >= fused[b]


@given(LEXICAL, COSINES, COVERAGE, LENGTH)
def test_who_is_missing_on_one_side_gets_nothing_from_it(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float, length: int
) -> None:
    for key, parts in fuse(lexical, cosines, coverage, length).items():
        assert key in lexical or parts.lexical == 0
        assert key in cosines or parts.semantic == 0


@given(LEXICAL, COSINES, COVERAGE, LENGTH, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    lexical: dict[int, float],
    cosines: dict[int, float],
    coverage: float,
    length: int,
    chance: object,
) -> None:
    def shuffled(values: dict[int, float]) -> dict[int, float]:
        items = list(values.items())
        chance.shuffle(items)  # type: ignore[attr-defined]
        return dict(items)

    mixed = fuse(shuffled(lexical), shuffled(cosines), coverage, length)
    assert mixed == fuse(lexical, cosines, coverage, length)


@given(LEXICAL, COVERAGE)
def test_without_meaning_the_order_of_the_words_stays(
    lexical: dict[int, float], coverage: float
) -> None:
    fused = fuse(lexical, {}, coverage, USUAL)
    for a, b in itertools.permutations(fused, 2):
        if lexical[a] >= lexical[b]:
            assert fused[a].relevance >= fused[b].relevance
    assert all(parts.semantic == 0 for parts in fused.values())


@given(COSINES)
def test_without_words_the_order_of_the_cosines_stays(cosines: dict[int, float]) -> None:
    fused = fuse({}, cosines, 0.0, USUAL)
    for a, b in itertools.permutations(fused, 2):
        if cosines[a] >= cosines[b]:
            assert fused[a].relevance >= fused[b].relevance
    assert all(parts.lexical == 0 for parts in fused.values())


def test_nothing_joined_with_nothing_is_nothing() -> None:
    assert fuse({}, {}, 1.0, USUAL) == {}


def test_the_best_on_both_sides_is_as_relevant_as_its_sides_say() -> None:
    """With weight a for full text, the weights apply to a * .5 + (1 - a) * .8."""
    words, near = {1: 0.5, 2: 0.25}, {1: 0.8, 3: 0.4}
    a = full_text_weight(evidence(words, near, 1.0, USUAL))
    best = a * 0.5 + (1 - a) * 0.8
    assert parts_of(fuse(words, near, 1.0, USUAL)) == {
        1: pytest.approx((best * a, best * (1 - a))),
        2: pytest.approx((best * a * MIN_SCALED, 0)),
        3: pytest.approx((0, best * (1 - a) * MIN_SCALED)),
    }


def test_words_that_lead_away_from_all_similar_records_weigh_less() -> None:
    near = rivalled(0.7, 2)
    agreed, misled = {2: 0.9, 12: 0.5}, {12: 0.9, 2: 0.5}
    weights = [full_text_weight(evidence(each, near, 0.5, USUAL)) for each in (agreed, misled)]
    assert weights[0] > weights[1]
    assert evidence(agreed, near, 0.5, USUAL).discord == 0


def test_the_evidence_is_how_far_the_best_are_ahead_of_those_five_places_behind() -> None:
    words = {place: 0.8 - 0.1 * place for place in range(8)}
    near = {place: 0.7 - 0.05 * place for place in range(8)}
    shown = evidence(words, near, 0.4, 100)
    assert shown.coverage == 0.4
    assert shown.lexical_lead == pytest.approx((0.8 - 0.3) / 0.8)
    assert shown.semantic_lead == pytest.approx(0.25)
    assert shown.length == pytest.approx(math.log(100))


def test_a_match_without_rivals_is_ahead_by_what_it_holds() -> None:
    assert evidence({1: 0.2, 2: 0.2}, {}, 1.0, USUAL).lexical_lead == 1
    assert evidence({1: 0.2, 2: 0.2}, {}, 0.4, USUAL).lexical_lead == pytest.approx(0.4)


def test_a_name_counts_as_a_query_of_two_words() -> None:
    assert evidence({}, {}, 0.0, 4) == evidence({}, {}, 0.0, MIN_LENGTH)


def test_the_weight_of_full_text_grows_with_the_words_its_best_match_holds() -> None:
    """A match of few words gives way to a near record, one of all words does not."""
    words, near = rivalled(0.9, 1), rivalled(0.7, 2)
    paraphrased = fuse(words, near, 0.0, USUAL)
    literal = fuse(words, near, 1.0, USUAL)
    assert paraphrased[2].relevance > paraphrased[1].relevance
    assert literal[1].relevance > literal[2].relevance


def test_half_of_a_long_query_says_more_than_half_of_a_short_one() -> None:
    words, near = rivalled(0.9, 1), rivalled(0.7, 2)
    short, long = fuse(words, near, 0.5, 25), fuse(words, near, 0.5, 500)
    assert short[2].relevance > short[1].relevance
    assert long[1].relevance > long[2].relevance


def test_a_record_that_is_much_nearer_than_all_others_is_trusted() -> None:
    words = rivalled(0.9, 1)
    crowded = fuse(words, rivalled(0.7, 2, behind=0.02), 0.6, USUAL)
    alone = fuse(words, rivalled(0.7, 2, behind=0.4), 0.6, USUAL)
    assert crowded[1].relevance > crowded[2].relevance
    assert alone[2].relevance > alone[1].relevance


def rivalled(best: float, key: int, behind: float = 0.2) -> dict[int, float]:
    """A ranking that one candidate leads, with the same candidates behind it."""
    return {key: best} | {rival: best - behind - rival / 1000 for rival in range(10, 20)}


def test_a_score_compares_between_queries() -> None:
    """A weak best match stays weak, though it is the best."""
    strong, weak = fuse({1: 0.9}, {1: 0.9}, 1.0, USUAL), fuse({1: 0.2}, {1: 0.3}, 0.2, USUAL)
    assert strong[1].relevance > 2 * weak[1].relevance


def test_where_only_one_side_finds_anything_it_alone_makes_the_score() -> None:
    assert parts_of(fuse({1: 0.5}, {}, 0.0, USUAL)) == {1: (0.5, 0.0)}
    assert parts_of(fuse({}, {1: 0.5}, 0.0, USUAL)) == {1: (0.0, 0.5)}


def test_a_cosine_that_rounding_made_too_large_takes_nothing_away() -> None:
    fused = fuse({1: 1.0}, {2: 1.001}, 1.0, USUAL)
    assert sum(each.relevance for each in fused.values()) == pytest.approx(1)
