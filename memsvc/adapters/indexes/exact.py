"""Vectors in memory, compared exactly. Nothing is kept on disk; each start rebuilds the index."""

import threading
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from memsvc.adapters.indexes.filtering import Labels, as_matrix, with_double_capacity
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedded, Vector
from memsvc.core.records import Kind, Ref
from memsvc.core.semantic.cosines import best


class ExactIndex:
    """An index for small stores: 100,000 vectors take 150 MB and some 10 ms per search."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._empty()

    def upsert(self, records: Sequence[Embedded]) -> None:
        checked = [(record, as_matrix(record.vectors, self._dimension)) for record in records]
        with self._lock:
            for record, vectors in checked:
                self._shelves[record.ref.kind].put(record, vectors)

    def remove(self, refs: Sequence[Ref]) -> None:
        with self._lock:
            for ref in refs:
                self._shelves[ref.kind].drop(ref.id)

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        (sought,) = as_matrix(vector, self._dimension)
        with self._lock:
            records, cosines = self._shelves[kind].compare(sought, selection)
        return best(records, cosines, limit)

    def nearest_each(
        self, kind: Kind, vectors: Sequence[Vector], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        return [self.nearest(kind, vector, limit, selection) for vector in vectors]

    def count(self) -> int:
        with self._lock:
            return sum(shelf.labels.size for shelf in self._shelves.values())

    def position(self) -> int:
        with self._lock:
            return self._position

    def advance(self, position: int) -> None:
        with self._lock:
            self._position = position

    def clear(self) -> None:
        with self._lock:
            self._empty()

    def close(self) -> None:
        self.clear()

    def _empty(self) -> None:
        self._shelves = {kind: _Shelf(self._dimension) for kind in Kind}
        self._position = 0


class _Shelf:
    """The vectors of one kind, each in the same row as its labels."""

    def __init__(self, dimension: int) -> None:
        self.labels = Labels()
        self._vectors = numpy.empty((16, dimension), numpy.float32)

    def put(self, record: Embedded, vectors: Vector) -> None:
        self.drop(record.ref.id)
        for vector in vectors:
            row = self.labels.add(record.ref.id, record.created_at_epoch, record.groups)
            if row == len(self._vectors):
                self._vectors = with_double_capacity(self._vectors)
            self._vectors[row] = vector

    def drop(self, record: int) -> None:
        for target, source in self.labels.drop(record):
            self._vectors[target] = self._vectors[source]

    def compare(
        self, vector: Vector, selection: Filter
    ) -> tuple[NDArray[numpy.int64], NDArray[numpy.float32]]:
        """The record and the cosine of each row that a filter selects."""
        held = self._vectors[: self.labels.size]
        if selection == Filter():
            return self.labels.records.copy(), held @ vector
        rows = numpy.flatnonzero(self.labels.select(selection))
        # Copying few rows is cheaper than comparing all; comparing all is cheaper than copying
        # many.
        few = len(rows) * 4 < len(held)
        cosines = held[rows] @ vector if few else (held @ vector)[rows]
        return self.labels.records[rows], cosines
