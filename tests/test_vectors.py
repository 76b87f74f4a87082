"""Vectors beside the rows: what waits, what is kept, what an index has to follow."""

from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from fake_semantic import DIMENSION
from old_stores import bring_back
from samples import DAY, NOW, fill, named

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Change, Pending, Vector
from memsvc.core.records import Kind, Prompt, Record, Ref, Summary

ONE, OTHER = f"{DIMENSION}-one", f"{DIMENSION}-other"
FIRST = Ref(Kind.OBSERVATION, 1)


def made(rows: int = 1, first: float = 1.0) -> Vector:
    """Vectors that half precision keeps as they are."""
    vector = numpy.zeros((rows, DIMENSION), numpy.float32)
    vector[:, 0] = first
    return vector


def keep_all(vectors: SqliteVectors, fingerprint: str = ONE) -> list[Ref]:
    waiting = vectors.pending(1_000)
    vectors.keep_vectors([(each, made()) for each in waiting], fingerprint)
    return [each.ref for each in waiting]


def waiting(vectors: SqliteVectors) -> list[Ref]:
    return [each.ref for each in vectors.pending(1_000)]


def followed(vectors: SqliteVectors, position: int = 0) -> list[Change]:
    return vectors.changes(position, 1_000, ONE)


def test_a_write_leaves_every_record_waiting(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    fill(own_store)
    total = sum(own_store.count(kind, Filter()) for kind in Kind)
    assert vectors.count_pending() == total == len(waiting(vectors))
    assert {ref.kind for ref in waiting(vectors)} == set(Kind)


def test_the_newest_come_first_over_all_kinds(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write(
        [
            named("older", NOW - 2 * DAY),
            Prompt(source="t", source_id="p", prompt_text="newest", created_at_epoch=NOW),
            Summary(source="t", source_id="s", request="oldest", created_at_epoch=NOW - 3 * DAY),
            named("newer", NOW - DAY),
        ]
    )
    assert list(map(str, waiting(vectors))) == ["P1", "2", "1", "S1"]
    assert [each.ref for each in vectors.pending(2)] == waiting(vectors)[:2]


def test_kept_vectors_come_back_and_nothing_waits(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    (pending,) = vectors.pending(9)
    vectors.keep_vectors([(pending, made(3, 0.5))], ONE)
    assert vectors.count_pending() == 0
    assert numpy.array_equal(vectors.vectors(Kind.OBSERVATION, [1, 2], ONE)[1], made(3, 0.5))


def test_vectors_of_another_fingerprint_are_not_given(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    keep_all(vectors)
    assert vectors.vectors(Kind.OBSERVATION, [1], OTHER) == {}
    (change,) = vectors.changes(0, 9, OTHER)
    assert change.embedded is None


def test_writing_the_same_again_changes_nothing(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    keep_all(vectors)
    position = followed(vectors)[-1].sequence
    own_store.write([named("a")])
    assert (waiting(vectors), followed(vectors, position)) == ([], [])


def test_an_edit_of_the_text_puts_a_record_back(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a"), named("b")])
    keep_all(vectors)
    own_store.write([replace(named("a"), narrative="more")])
    assert waiting(vectors) == [FIRST]


def test_an_edit_of_its_date_alone_asks_for_no_vectors_but_the_index_learns_it(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    keep_all(vectors)
    position = followed(vectors)[-1].sequence
    own_store.write([named("a", NOW - DAY)])
    assert waiting(vectors) == []
    (change,) = followed(vectors, position)
    assert change.embedded is not None
    assert change.embedded.created_at_epoch == NOW - DAY


def test_the_index_learns_what_a_record_is_selected_by_in_folded_case(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a", project="Shop", type="BugFix", concepts=("Gotcha", "gotcha", "A"))])
    keep_all(vectors)
    (change,) = followed(vectors)
    assert change.embedded is not None
    assert dict(change.embedded.groups) == {
        "project": ("shop",),
        "type": ("bugfix",),
        "concept": ("a", "gotcha"),
    }


def test_vectors_of_a_text_that_changed_meanwhile_are_not_kept(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    (begun,) = vectors.pending(9)
    own_store.write([replace(named("a"), narrative="more")])
    vectors.keep_vectors([(begun, made())], ONE)
    assert waiting(vectors) == [FIRST]
    assert vectors.vectors(Kind.OBSERVATION, [1], ONE) == {}


def test_vectors_of_a_record_forgotten_meanwhile_are_not_kept(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    (begun,) = vectors.pending(9)
    own_store.forget(FIRST)
    vectors.keep_vectors([(begun, made())], ONE)
    assert vectors.vectors(Kind.OBSERVATION, [1], ONE) == {}


def test_nobody_inherits_the_vectors_of_a_forgotten_record(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a")])
    (begun,) = vectors.pending(9)
    own_store.forget(FIRST)
    own_store.write([named("b")])
    vectors.keep_vectors([(begun, made())], ONE)
    (ref,) = waiting(vectors)
    assert vectors.vectors(Kind.OBSERVATION, [1, ref.id], ONE) == {}


def test_forgetting_removes_the_vectors_and_the_index_is_told(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a"), named("b")])
    keep_all(vectors)
    position = followed(vectors)[-1].sequence
    own_store.write([replace(named("a"), narrative="more")])
    own_store.forget(FIRST)
    assert waiting(vectors) == []
    assert list(vectors.vectors(Kind.OBSERVATION, [1, 2], ONE)) == [2]
    (change,) = followed(vectors, position)
    assert (change.ref, change.embedded) == (FIRST, None)


def test_all_of_a_batch_is_kept_or_nothing(own_store: SqliteStore, vectors: SqliteVectors) -> None:
    own_store.write([named("a"), named("b")])
    first, second = vectors.pending(9)
    with pytest.raises(AttributeError):
        vectors.keep_vectors([(first, made()), (second, None)], ONE)
    assert vectors.count_pending() == 2


def test_another_fingerprint_puts_every_record_back_once(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a"), named("b")])
    keep_all(vectors)
    own_store.write([named("c")])
    vectors.queue_others(ONE)
    assert len(waiting(vectors)) == 1
    vectors.queue_others(OTHER)
    vectors.queue_others(OTHER)
    assert sorted(waiting(vectors)) == [Ref(Kind.OBSERVATION, id) for id in (1, 2, 3)]


def test_while_records_are_embedded_anew_each_has_vectors_of_one_model(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a"), named("b")])
    keep_all(vectors)
    vectors.queue_others(OTHER)
    vectors.keep_vectors([(vectors.pending(1)[0], made(1, 0.5))], OTHER)
    old, new = (vectors.vectors(Kind.OBSERVATION, [1, 2], name) for name in (ONE, OTHER))
    assert (sorted(old), sorted(new)) == ([1], [2])


def test_changes_come_in_order_the_last_of_each_record_only(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    own_store.write([named("a"), named("b"), named("c")])
    keep_all(vectors)
    own_store.write([named("a", NOW - DAY)])
    changes = followed(vectors)
    sequences = [change.sequence for change in changes]
    assert sequences == sorted(set(sequences))
    assert [change.ref.id for change in changes][-1] == 1
    assert sorted(change.ref.id for change in changes) == [1, 2, 3]
    assert vectors.count_changes(0) == 3
    assert vectors.count_changes(sequences[-2]) == 1


def test_changes_are_read_in_pieces_without_a_gap(
    own_store: SqliteStore, vectors: SqliteVectors
) -> None:
    fill(own_store)
    keep_all(vectors)
    position, found = 0, []
    while piece := vectors.changes(position, 4, ONE):
        found += piece
        position = piece[-1].sequence
    assert [change.sequence for change in found] == [c.sequence for c in followed(vectors)]


def test_a_rebuild_is_asked_for_by_counting(vectors: SqliteVectors) -> None:
    assert vectors.rebuilds() == 0
    vectors.ask_rebuild()
    assert vectors.rebuilds() == 1


def test_every_store_has_a_name_of_its_own_that_stays(tmp_path: Path) -> None:
    names = []
    for file in ("a.db", "b.db", "a.db"):
        store = open_store(tmp_path / file)
        names.append(SqliteVectors(store.connections).store_name())
        store.close()
    assert names[0] == names[2] != names[1]


def test_the_records_of_a_store_from_before_vectors_wait(tmp_path: Path) -> None:
    old = _store_of_step_two(tmp_path / "old.db", named("a"), Prompt(prompt_text="why"))
    vectors = SqliteVectors(old.connections)
    assert sorted(map(str, waiting(vectors))) == ["1", "P1"]
    keep_all(vectors)
    assert len(followed(vectors)) == 2
    old.close()


def _store_of_step_two(path: Path, *records: Record) -> SqliteStore:
    """A store with records, as it was before it knew vectors, brought up to date."""
    store = open_store(path)
    store.write(records)
    store.close()
    bring_back(path, 2)
    return open_store(path)


def test_a_pending_entry_names_its_record(own_store: SqliteStore, vectors: SqliteVectors) -> None:
    own_store.write([named("a")])
    (pending,) = vectors.pending(1)
    assert isinstance(pending, Pending)
    assert vectors.records([pending.ref])[FIRST].title == "a"  # type: ignore[attr-defined]
