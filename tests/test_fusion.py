"""Two rankings made one: what each side adds, and what holds for any two rankings."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.core.fusion import MIN_SCALED, Fused, fuse

LEXICAL = st.dictionaries(st.integers(0, 12), st.floats(0, 1), max_size=8)
COSINES = st.dictionaries(st.integers(0, 12), st.floats(-1, 1), max_size=8)
COVERAGE = st.floats(0, 1)
TINY = 1e-9


def relevances(fused: dict[int, Fused]) -> dict[int, float]:
    return {key: each.relevance for key, each in fused.items()}


def parts_of(fused: dict[int, Fused]) -> dict[int, tuple[float, float]]:
    return {key: (each.lexical, each.semantic) for key, each in fused.items()}


@given(LEXICAL, COSINES, COVERAGE)
def test_every_candidate_gets_a_relevance_between_0_and_1(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float
) -> None:
    fused = fuse(lexical, cosines, coverage)
    assert fused.keys() == lexical.keys() | cosines.keys()
    assert all(0 <= parts.relevance <= 1 + TINY for parts in fused.values())
    assert all(parts.lexical >= 0 and parts.semantic >= 0 for parts in fused.values())


@given(LEXICAL.filter(bool), COSINES.filter(bool), COVERAGE)
def test_the_best_of_both_sides_together_lie_between_what_each_side_says(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float
) -> None:
    fused = fuse(lexical, cosines, coverage).values()
    together = max(each.lexical for each in fused) + max(each.semantic for each in fused)
    low, high = sorted([max(lexical.values()), max(0, *cosines.values())])
    assert low - TINY <= together <= high + TINY


@given(LEXICAL, COSINES, COVERAGE)
def test_who_is_better_on_both_sides_is_never_less_relevant(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float
) -> None:
    fused = relevances(fuse(lexical, cosines, coverage))
    for a, b in itertools.permutations(fused, 2):
        words = lexical.get(a, -2) >= lexical.get(b, -2)
        if words and cosines.get(a, -2) >= cosines.get(b, -2):
            assert fused[a] >= fused[b]


@given(LEXICAL, COSINES, COVERAGE)
def test_who_is_missing_on_one_side_gets_nothing_from_it(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float
) -> None:
    for key, parts in fuse(lexical, cosines, coverage).items():
        assert key in lexical or parts.lexical == 0
        assert key in cosines or parts.semantic == 0


@given(LEXICAL, COSINES, COVERAGE, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    lexical: dict[int, float], cosines: dict[int, float], coverage: float, chance: object
) -> None:
    def shuffled(values: dict[int, float]) -> dict[int, float]:
        items = list(values.items())
        chance.shuffle(items)  # type: ignore[attr-defined]
        return dict(items)

    mixed = fuse(shuffled(lexical), shuffled(cosines), coverage)
    assert mixed == fuse(lexical, cosines, coverage)


@given(LEXICAL, COVERAGE)
def test_without_meaning_the_order_of_the_words_stays(
    lexical: dict[int, float], coverage: float
) -> None:
    fused = fuse(lexical, {}, coverage)
    for a, b in itertools.permutations(fused, 2):
        if lexical[a] >= lexical[b]:
            assert fused[a].relevance >= fused[b].relevance
    assert all(parts.semantic == 0 for parts in fused.values())


@given(COSINES)
def test_without_words_the_order_of_the_cosines_stays(cosines: dict[int, float]) -> None:
    fused = fuse({}, cosines, 0.0)
    for a, b in itertools.permutations(fused, 2):
        if cosines[a] >= cosines[b]:
            assert fused[a].relevance >= fused[b].relevance
    assert all(parts.lexical == 0 for parts in fused.values())


def test_nothing_joined_with_nothing_is_nothing() -> None:
    assert fuse({}, {}, 1.0) == {}


def test_the_best_on_both_sides_is_as_relevant_as_its_sides_say() -> None:
    """Full text weighs .1 + .4 * 1 + .5 * .8 = .9; the weights apply to .9 * .5 + .1 * .8."""
    fused = fuse({1: 0.5, 2: 0.25}, {1: 0.8, 3: 0.4}, 1.0)
    assert parts_of(fused) == {
        1: pytest.approx((0.477, 0.053)),
        2: pytest.approx((0.477 * MIN_SCALED, 0)),
        3: pytest.approx((0, 0.053 * MIN_SCALED)),
    }
    assert relevances(fused) == {
        1: pytest.approx(0.53),
        2: pytest.approx(0.477 * MIN_SCALED),
        3: pytest.approx(0.053 * MIN_SCALED),
    }


def test_the_weight_of_full_text_grows_with_the_words_its_best_match_holds() -> None:
    """A match of few words gives way to a near record, one of all words does not."""
    words, near = {1: 0.9, 9: 0.0}, {2: 0.7, 9: 0.0}
    paraphrased = fuse(words, near, 0.0)
    literal = fuse(words, near, 1.0)
    assert paraphrased[2].relevance > paraphrased[1].relevance
    assert literal[1].relevance > literal[2].relevance


def test_a_score_compares_between_queries() -> None:
    """A weak best match stays weak, though it is the best."""
    strong, weak = fuse({1: 0.9}, {1: 0.9}, 1.0), fuse({1: 0.2}, {1: 0.3}, 0.2)
    assert strong[1].relevance > 2 * weak[1].relevance


def test_with_no_similar_record_words_alone_make_the_score() -> None:
    assert parts_of(fuse({1: 0.5}, {}, 0.0)) == {1: (pytest.approx(0.1 * 0.5 * 0.1), 0.0)}


def test_a_cosine_that_rounding_made_too_large_takes_nothing_away() -> None:
    assert fuse({1: 1.0}, {2: 1.001}, 1.0)[2].semantic == 0
