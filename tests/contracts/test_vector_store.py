"""What every vector store promises: what waits, what is kept, what an index has to follow."""

from dataclasses import replace

import numpy
import pytest
from adapters import Compare
from fake_semantic import DIMENSION
from histories import histories, play
from hypothesis import given
from hypothesis import strategies as st
from profiles import HALF
from samples import DAY, NOW, RECORDS

from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import Change, Pending, Vector, VectorStore
from memsvc.core.records import Kind, Observation, Prompt, Ref, Summary

ONE, OTHER = f"{DIMENSION}-one", f"{DIMENSION}-other"
FIRST = Ref(Kind.OBSERVATION, 1)


def named(name: str, when: int = NOW, **given: object) -> Observation:
    return Observation(source="t", source_id=name, title=name, created_at_epoch=when, **given)


def made(rows: int = 1, first: float = 1.0) -> Vector:
    """Vectors that half precision keeps as they are."""
    vector = numpy.zeros((rows, DIMENSION), numpy.float32)
    vector[:, 0] = first
    return vector


def keep_all(vectors: VectorStore, fingerprint: str = ONE) -> list[Ref]:
    waiting = vectors.pending(1_000)
    vectors.keep_vectors([(each, made()) for each in waiting], fingerprint)
    return [each.ref for each in waiting]


def waiting(vectors: VectorStore) -> list[Ref]:
    return [each.ref for each in vectors.pending(1_000)]


def followed(vectors: VectorStore, position: int = 0) -> list[Change]:
    return vectors.changes(position, 1_000, ONE)


def test_a_write_leaves_every_record_waiting(store: Store, vectors: VectorStore) -> None:
    store.write(RECORDS)
    total = len(RECORDS)
    assert vectors.count_pending() == total == len(waiting(vectors))
    assert {ref.kind for ref in waiting(vectors)} == set(Kind)


def test_the_newest_come_first_over_all_kinds(store: Store, vectors: VectorStore) -> None:
    store.write(
        [
            named("older", NOW - 2 * DAY),
            Prompt(source="t", source_id="p", prompt_text="newest", created_at_epoch=NOW),
            Summary(source="t", source_id="s", request="oldest", created_at_epoch=NOW - 3 * DAY),
            named("newer", NOW - DAY),
        ]
    )
    assert list(map(str, waiting(vectors))) == ["P1", "2", "1", "S1"]
    assert [each.ref for each in vectors.pending(2)] == waiting(vectors)[:2]


def test_kept_vectors_come_back_and_nothing_waits(store: Store, vectors: VectorStore) -> None:
    store.write([named("a")])
    (pending,) = vectors.pending(9)
    vectors.keep_vectors([(pending, made(3, 0.5))], ONE)
    assert vectors.count_pending() == 0
    assert numpy.array_equal(vectors.vectors(Kind.OBSERVATION, [1, 2], ONE)[1], made(3, 0.5))


def test_vectors_of_another_fingerprint_are_not_given(store: Store, vectors: VectorStore) -> None:
    store.write([named("a")])
    keep_all(vectors)
    assert vectors.vectors(Kind.OBSERVATION, [1], OTHER) == {}
    (change,) = vectors.changes(0, 9, OTHER)
    assert change.embedded is None


def test_writing_the_same_again_changes_nothing(store: Store, vectors: VectorStore) -> None:
    store.write([named("a")])
    keep_all(vectors)
    position = followed(vectors)[-1].sequence
    store.write([named("a")])
    assert (waiting(vectors), followed(vectors, position)) == ([], [])


def test_an_edit_of_the_text_puts_a_record_back(store: Store, vectors: VectorStore) -> None:
    store.write([named("a"), named("b")])
    keep_all(vectors)
    store.write([replace(named("a"), narrative="more")])
    assert waiting(vectors) == [FIRST]


def test_an_edit_of_its_date_alone_asks_for_no_vectors_but_the_index_learns_it(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a")])
    keep_all(vectors)
    position = followed(vectors)[-1].sequence
    store.write([named("a", NOW - DAY)])
    assert waiting(vectors) == []
    (change,) = followed(vectors, position)
    assert change.embedded is not None
    assert change.embedded.created_at_epoch == NOW - DAY


def test_the_index_learns_what_a_record_is_selected_by_in_folded_case(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a", project="Shop", type="BugFix", concepts=("Gotcha", "gotcha", "A"))])
    keep_all(vectors)
    (change,) = followed(vectors)
    assert change.embedded is not None
    assert dict(change.embedded.groups) == {
        "project": ("shop",),
        "type": ("bugfix",),
        "concept": ("a", "gotcha"),
    }


def test_vectors_of_a_text_that_changed_meanwhile_are_not_kept(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a")])
    (begun,) = vectors.pending(9)
    store.write([replace(named("a"), narrative="more")])
    vectors.keep_vectors([(begun, made())], ONE)
    assert waiting(vectors) == [FIRST]
    assert vectors.vectors(Kind.OBSERVATION, [1], ONE) == {}


def test_vectors_of_a_record_forgotten_meanwhile_are_not_kept(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a")])
    (begun,) = vectors.pending(9)
    store.forget(FIRST)
    vectors.keep_vectors([(begun, made())], ONE)
    assert vectors.vectors(Kind.OBSERVATION, [1], ONE) == {}


def test_nobody_inherits_the_vectors_of_a_forgotten_record(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a")])
    (begun,) = vectors.pending(9)
    store.forget(FIRST)
    store.write([named("b")])
    vectors.keep_vectors([(begun, made())], ONE)
    (ref,) = waiting(vectors)
    assert vectors.vectors(Kind.OBSERVATION, [1, ref.id], ONE) == {}


def test_forgetting_removes_the_vectors_and_the_index_is_told(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a"), named("b")])
    keep_all(vectors)
    position = followed(vectors)[-1].sequence
    store.write([replace(named("a"), narrative="more")])
    store.forget(FIRST)
    assert waiting(vectors) == []
    assert list(vectors.vectors(Kind.OBSERVATION, [1, 2], ONE)) == [2]
    (change,) = followed(vectors, position)
    assert (change.ref, change.embedded) == (FIRST, None)


def test_all_of_a_batch_is_kept_or_nothing(store: Store, vectors: VectorStore) -> None:
    store.write([named("a"), named("b")])
    first, second = vectors.pending(9)
    with pytest.raises(AttributeError):
        vectors.keep_vectors([(first, made()), (second, None)], ONE)
    assert vectors.count_pending() == 2


def test_another_fingerprint_puts_every_record_back_once(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a"), named("b")])
    keep_all(vectors)
    store.write([named("c")])
    vectors.queue_others(ONE)
    assert len(waiting(vectors)) == 1
    vectors.queue_others(OTHER)
    vectors.queue_others(OTHER)
    assert sorted(waiting(vectors)) == [Ref(Kind.OBSERVATION, id) for id in (1, 2, 3)]


def test_while_records_are_embedded_anew_each_has_vectors_of_one_model(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a"), named("b")])
    keep_all(vectors)
    vectors.queue_others(OTHER)
    vectors.keep_vectors([(vectors.pending(1)[0], made(1, 0.5))], OTHER)
    old, new = (vectors.vectors(Kind.OBSERVATION, [1, 2], name) for name in (ONE, OTHER))
    assert (sorted(old), sorted(new)) == ([1], [2])


def test_a_lead_stands_for_its_record_until_all_is_embedded(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a")])
    (pending,) = vectors.pending(9)
    vectors.keep_leads([(pending, made(1, 0.5))], ONE)
    assert numpy.array_equal(vectors.vectors(Kind.OBSERVATION, [1], ONE)[1], made(1, 0.5))
    assert vectors.embedded_among(Kind.OBSERVATION, [1, 2], ONE) == {1}
    assert (vectors.count_pending(), vectors.count_unknown()) == (1, 0)
    (lead,) = followed(vectors)
    vectors.keep_vectors([(pending, made(2))], ONE)
    assert numpy.array_equal(vectors.vectors(Kind.OBSERVATION, [1], ONE)[1], made(2))
    assert (vectors.count_pending(), len(followed(vectors, lead.sequence))) == (0, 1)


def test_records_without_a_lead_come_before_those_with_one(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a", NOW - 2 * DAY), named("b", NOW - DAY), named("c", NOW)])
    vectors.keep_leads([(each, made()) for each in vectors.pending(2)], ONE)
    assert [each.ref.id for each in vectors.pending(9)] == [1, 3, 2]
    store.write([replace(named("b", NOW - DAY), narrative="more")])
    assert [(each.ref.id, each.has_lead) for each in vectors.pending(9)] == [
        (2, False),
        (1, False),
        (3, True),
    ]
    assert vectors.count_unknown() == 2


def test_a_lead_of_another_fingerprint_stands_for_nothing(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a", NOW - DAY), named("b", NOW)])
    vectors.keep_leads([(each, made()) for each in vectors.pending(2)], ONE)
    vectors.queue_others(ONE)
    assert vectors.count_unknown() == 0
    vectors.queue_others(OTHER)
    assert [(each.ref.id, each.has_lead) for each in vectors.pending(9)] == [(2, False), (1, False)]
    assert vectors.embedded_among(Kind.OBSERVATION, [1, 2], OTHER) == set()


def test_a_lead_begun_before_its_record_changed_is_not_kept(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a")])
    begun = vectors.pending(9)
    store.write([replace(named("a"), narrative="more")])
    vectors.keep_leads([(each, made()) for each in begun], ONE)
    assert (vectors.count_unknown(), vectors.vectors(Kind.OBSERVATION, [1], ONE)) == (1, {})


def test_changes_come_in_order_the_last_of_each_record_only(
    store: Store, vectors: VectorStore
) -> None:
    store.write([named("a"), named("b"), named("c")])
    keep_all(vectors)
    store.write([named("a", NOW - DAY)])
    changes = followed(vectors)
    sequences = [change.sequence for change in changes]
    assert sequences == sorted(set(sequences))
    assert [change.ref.id for change in changes][-1] == 1
    assert sorted(change.ref.id for change in changes) == [1, 2, 3]
    assert vectors.count_changes(0) == 3
    assert vectors.count_changes(sequences[-2]) == 1


def test_changes_are_read_in_pieces_without_a_gap(store: Store, vectors: VectorStore) -> None:
    store.write(RECORDS)
    keep_all(vectors)
    position, found = 0, []
    while piece := vectors.changes(position, 4, ONE):
        found += piece
        position = piece[-1].sequence
    assert [change.sequence for change in found] == [c.sequence for c in followed(vectors)]


def test_a_rebuild_is_asked_for_by_counting(vectors: VectorStore) -> None:
    assert vectors.rebuilds() == 0
    vectors.ask_rebuild()
    assert vectors.rebuilds() == 1


def test_a_pending_entry_names_its_record(store: Store, vectors: VectorStore) -> None:
    store.write([named("a")])
    (pending,) = vectors.pending(1)
    assert isinstance(pending, Pending)
    assert vectors.records([pending.ref])[FIRST].title == "a"  # type: ignore[attr-defined]


steps = st.one_of(
    st.tuples(st.just("play"), histories),
    st.tuples(st.just("begin"), st.integers(1, 4)),
    st.tuples(st.just("keep"), st.sampled_from([ONE, OTHER])),
    st.tuples(st.just("keep leads"), st.sampled_from([ONE, OTHER])),
    st.tuples(st.just("queue"), st.sampled_from([ONE, OTHER])),
)


@HALF
@given(taken=st.lists(steps, min_size=2, max_size=8), position=st.integers(0, 6))
def test_the_same_history_leaves_the_same_to_be_done(
    compared: Compare, taken: list[tuple[str, object]], position: int
) -> None:
    """Vectors may be kept long after they were begun, whatever was written in between."""
    with compared() as (opened, memory):
        sides = [(opened.store, opened.vectors, []), (memory, memory, [])]
        for step in taken:
            for store, vectors, begun in sides:
                take(store, vectors, begun, *step)
            assert state(opened.vectors, position) == state(memory, position)


def take(
    store: Store, vectors: VectorStore, begun: list[Pending], step: str, given_: object
) -> None:
    match step, given_:
        case "play", list(actions):
            for action in actions:
                play(store, action)
        case "begin", int(limit):
            begun += vectors.pending(limit)
        case "keep", str(fingerprint):
            vectors.keep_vectors([(each, made(each.ref.id)) for each in begun], fingerprint)
            begun.clear()
        case "keep leads", str(fingerprint):
            vectors.keep_leads([(each, made(1, 0.5)) for each in begun], fingerprint)
        case "queue", str(fingerprint):
            vectors.queue_others(fingerprint)


def state(vectors: VectorStore, position: int) -> list[object]:
    """What waits, what has changed and what is kept; the numbers of changes are left open."""
    changes = [change for name in (ONE, OTHER) for change in vectors.changes(0, 99, name)]
    embedded = [each.embedded for each in changes if each.embedded]
    after = changes[: len(changes) // 2][position : position + 1]
    kept = {
        (kind, id, name): vector.tolist()
        for kind in Kind
        for name in (ONE, OTHER)
        for id, vector in vectors.vectors(kind, range(9), name).items()
    }
    return [
        [(each.ref, each.has_lead) for each in vectors.pending(1_000)],
        (vectors.count_pending(), vectors.count_unknown()),
        [(each.ref, each.embedded is None) for each in changes],
        [(each.ref, each.created_at_epoch, each.groups) for each in embedded],
        [each.vectors.tolist() for each in embedded],
        [vectors.count_changes(each.sequence) for each in after],
        kept,
    ]
