"""Records of one work session help each other to be found."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from memsvc.core.ports.store import Origin
from memsvc.core.ranking.companions import COMPANION_WEIGHT, MAX_SHORT, lift_companions
from memsvc.core.records import Kind, Ref

RELEVANCES = st.dictionaries(st.integers(1, 9), st.floats(0, 1))
ORIGIN = st.builds(
    Origin, st.sampled_from(["", "shop"]), st.sampled_from(["", "s1", "s2"]), st.integers(0, 5000)
)
ORIGINS = st.dictionaries(st.integers(1, 9), ORIGIN)
SHORT = Origin("shop", "s1", MAX_SHORT)
"""A short record of some work session."""

ELSEWHERE = Origin("shop", "s2", MAX_SHORT)


def lifted(relevances: Mapping[int, float], origins: Mapping[int, Origin]) -> dict[int, float]:
    found = lift_companions(
        {observation(id): relevance for id, relevance in relevances.items()},
        {observation(id): origin for id, origin in origins.items()},
    )
    return {ref.id: relevance for ref, relevance in found.items()}


def observation(id: int) -> Ref:
    return Ref(Kind.OBSERVATION, id)


def test_of_two_equally_relevant_records_the_one_in_good_company_leads() -> None:
    found = lifted({1: 0.9, 2: 0.5, 3: 0.5}, {1: SHORT, 2: SHORT, 3: ELSEWHERE})
    assert found[1] > found[2] > found[3]


def test_the_best_of_a_work_session_is_lifted_by_the_next_and_all_others_by_the_best() -> None:
    found = lifted({1: 0.9, 2: 0.6, 3: 0.3}, dict.fromkeys((1, 2, 3), SHORT))
    whole = 1 + COMPANION_WEIGHT
    assert found == {
        1: (0.9 + COMPANION_WEIGHT * 0.6) / whole,
        2: (0.6 + COMPANION_WEIGHT * 0.9) / whole,
        3: (0.3 + COMPANION_WEIGHT * 0.9) / whole,
    }


def test_a_long_record_stands_by_itself() -> None:
    long = Origin("shop", "s1", 100 * MAX_SHORT)
    found = lifted({1: 0.9, 2: 0.5, 3: 0.5}, {1: SHORT, 2: long, 3: ELSEWHERE})
    assert found[2] - found[3] < 0.01


def test_records_of_one_session_in_two_projects_are_no_companions() -> None:
    found = lifted({1: 0.9, 2: 0.5, 3: 0.5}, {1: SHORT, 2: Origin("api", "s1", 9), 3: ELSEWHERE})
    assert found[2] == found[3]


def test_records_without_a_work_session_are_no_companions() -> None:
    alone = Origin("shop", "", 9)
    found = lifted({1: 0.9, 2: 0.5, 3: 0.5}, {1: alone, 2: alone})
    assert found[2] == found[3]


def test_records_of_another_kind_are_no_companions() -> None:
    prompt, other = Ref(Kind.PROMPT, 1), Ref(Kind.OBSERVATION, 2)
    found = lift_companions({prompt: 0.9, other: 0.5}, {prompt: SHORT, other: SHORT})
    whole = 1 + COMPANION_WEIGHT
    assert found == {prompt: 0.9 / whole, other: 0.5 / whole}


@given(RELEVANCES, ORIGINS)
def test_relevance_stays_between_0_and_1(
    relevances: dict[int, float], origins: dict[int, Origin]
) -> None:
    found = lifted(relevances, origins)
    assert found.keys() == relevances.keys()
    assert all(0 <= each <= 1 for each in found.values())


@given(RELEVANCES)
def test_without_companions_the_order_stays(relevances: dict[int, float]) -> None:
    found = lifted(relevances, {})
    assert all(found[a] >= found[b] for a in found for b in found if relevances[a] >= relevances[b])


@given(RELEVANCES)
def test_within_one_work_session_of_short_records_the_order_stays(
    relevances: dict[int, float],
) -> None:
    """A companion counts a fifth: it never lifts a record past the companion itself."""
    found = lifted(relevances, dict.fromkeys(relevances, SHORT))
    assert all(
        found[a] >= found[b] - 1e-9 for a in found for b in found if relevances[a] >= relevances[b]
    )
