"""Candidates whose meaning is not known yet, beside those whose meaning is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.core.fusion import Fused
from memsvc.core.semantic.unknown import estimate_unknown

parts = st.floats(0, 0.5)
candidates = st.dictionaries(st.integers(0, 20), st.builds(Fused, parts, parts), min_size=1)


def ranked(fused: dict[int, Fused]) -> list[int]:
    return sorted(fused, key=lambda key: (-fused[key].relevance, key))


@given(candidates)
def test_where_all_is_known_nothing_changes(fused: dict[int, Fused]) -> None:
    assert estimate_unknown(fused, ()) == fused


@given(candidates)
def test_where_nothing_is_known_words_decide(fused: dict[int, Fused]) -> None:
    known = {key: Fused(each.lexical, 0.0) for key, each in fused.items()}
    assert ranked(estimate_unknown(known, set(known))) == ranked(known)


@given(candidates, st.sets(st.integers(0, 20)))
def test_relevance_stays_within_its_bounds_and_words_keep_their_part(
    fused: dict[int, Fused], unknown: set[int]
) -> None:
    found = estimate_unknown(fused, unknown)
    most = max(each.semantic for each in fused.values())
    assert {key: each.lexical for key, each in found.items()} == {
        key: each.lexical for key, each in fused.items()
    }
    assert all(0 <= each.semantic <= most + 1e-9 for each in found.values())


@given(candidates, st.sets(st.integers(0, 20)))
def test_an_unknown_record_is_never_behind_a_match_of_fewer_words(
    fused: dict[int, Fused], unknown: set[int]
) -> None:
    """Of two unknown ones, words decide; an unknown one that matches best is not passed."""
    found = estimate_unknown(fused, unknown)
    waiting = sorted(unknown & fused.keys(), key=lambda key: fused[key].lexical)
    scores = [found[key].relevance for key in waiting if fused[key].lexical]
    assert scores == pytest.approx(sorted(scores))
    best = max(fused, key=lambda key: fused[key].lexical)
    if best in unknown and fused[best].lexical:
        assert found[best].relevance == pytest.approx(max(f.relevance for f in found.values()))
