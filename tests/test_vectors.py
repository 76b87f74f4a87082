"""Vectors in the SQLite file: at half precision, under a name that stays, also in old stores."""

from pathlib import Path

import numpy
from fake_semantic import DIMENSION
from old_stores import bring_back
from samples import NOW

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.core.records import Kind, Observation, Prompt, Record

FINGERPRINT = f"{DIMENSION}-one"


def test_vectors_are_kept_at_half_precision(own_store: SqliteStore) -> None:
    own_store.write([Observation(title="a", created_at_epoch=NOW)])
    vectors = SqliteVectors(own_store.connections)
    given = numpy.linspace(-1, 1, DIMENSION, dtype=numpy.float32).reshape(1, -1)
    vectors.keep_vectors([(vectors.pending(1)[0], given)], FINGERPRINT)
    kept = vectors.vectors(Kind.OBSERVATION, [1], FINGERPRINT)[1]
    assert numpy.abs(kept - given).max() < 0.001
    assert kept.dtype == numpy.float32


def test_every_store_has_a_name_of_its_own_that_stays(tmp_path: Path) -> None:
    names = []
    for file in ("a.db", "b.db", "a.db"):
        store = open_store(tmp_path / file)
        names.append(SqliteVectors(store.connections).store_name())
        store.close()
    assert names[0] == names[2] != names[1]


def test_the_records_of_a_store_from_before_vectors_wait(tmp_path: Path) -> None:
    old = _store_of_step_two(tmp_path / "old.db", Observation(title="a"), Prompt(prompt_text="why"))
    vectors = SqliteVectors(old.connections)
    begun = vectors.pending(9)
    assert sorted(str(each.ref) for each in begun) == ["1", "P1"]
    made = numpy.ones((1, DIMENSION), numpy.float32)
    vectors.keep_vectors([(each, made) for each in begun], FINGERPRINT)
    assert len(vectors.changes(0, 9, FINGERPRINT)) == 2
    old.close()


def _store_of_step_two(path: Path, *records: Record) -> SqliteStore:
    """A store with records, as it was before it knew vectors, brought up to date."""
    store = open_store(path)
    store.write(records)
    store.close()
    bring_back(path, 2)
    return open_store(path)
