"""Shared by the semantic indexes: the labels to filter records by."""

from collections.abc import Sequence
from typing import Any, Final

import numpy
from numpy.typing import NDArray

from memsvc.core.filters import FIELDS, Filter
from memsvc.core.ports.vectors import Embedded, Vector
from memsvc.core.records import Ref

SELECTABLE: Final = tuple(name for name, field in FIELDS.items() if not field.is_path)
"""The fields that an index can filter by."""

Groups = Sequence[tuple[str, Sequence[str]]]

_ROW: Final = numpy.dtype(
    [("record", "i8"), ("created_at_epoch", "i8"), *((field, "i4") for field in SELECTABLE)]
)


class Labels:
    """The values to filter vectors by, in rows without gaps."""

    def __init__(self) -> None:
        self.size = 0
        self._table = numpy.zeros(16, _ROW)
        self._rows: dict[int, list[int]] = {}
        # Each combination of values is numbered, so that a filter tests each combination once.
        self._numbers: dict[str, dict[tuple[str, ...], int]] = {field: {} for field in SELECTABLE}

    @property
    def records(self) -> NDArray[numpy.int64]:
        """The record of each row."""
        held: NDArray[numpy.int64] = self._table["record"][: self.size]
        return held

    def rows_of(self, record: int) -> int:
        """How many rows a record has."""
        return len(self._rows.get(record, ()))

    def add(self, record: int, created_at_epoch: int, groups: Groups) -> int:
        """Add a row for a vector of a record and return its number."""
        if self.size == len(self._table):
            self._table = with_double_capacity(self._table)
        row = self.size
        values = dict(groups)
        numbers = (self._number(field, tuple(values.get(field, ()))) for field in SELECTABLE)
        self._table[row] = (record, created_at_epoch, *numbers)
        self._rows.setdefault(record, []).append(row)
        self.size += 1
        return row

    def drop(self, record: int) -> list[tuple[int, int]]:
        """Remove a record's rows. The last row fills each gap; returns the moves as (to, from)."""
        moves = []
        for row in sorted(self._rows.pop(record, ()), reverse=True):
            self.size -= 1
            if row != self.size:
                self._move(self.size, row)
                moves.append((row, self.size))
        return moves

    def select(self, selection: Filter) -> NDArray[numpy.bool_]:
        """A mask of the rows that a filter selects."""
        chosen = numpy.ones(self.size, numpy.bool_)
        times = self._table["created_at_epoch"][: self.size]
        if selection.since is not None:
            chosen &= times >= selection.since
        if selection.until is not None:
            chosen &= times <= selection.until
        for field, wanted in folded_groups(selection):
            fits = [not wanted.isdisjoint(values) for values in self._numbers[field]]
            chosen &= numpy.array(fits, numpy.bool_)[self._table[field][: self.size]]
        return chosen

    def _number(self, field: str, values: tuple[str, ...]) -> int:
        known = self._numbers[field]
        return known.setdefault(values, len(known))

    def _move(self, source: int, target: int) -> None:
        self._table[target] = self._table[source]
        rows = self._rows[int(self._table[target]["record"])]
        rows[rows.index(source)] = target


def with_double_capacity(array: NDArray[Any]) -> NDArray[Any]:
    """The array with its capacity with_double_capacity."""
    grown = numpy.empty((2 * len(array), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def folded_groups(selection: Filter) -> list[tuple[str, frozenset[str]]]:
    """The groups of a filter with case-folded values. Raises ValueError for a field that no index
    has.
    """
    for field, _ in selection.groups:
        if field not in SELECTABLE:
            raise ValueError(f"a semantic index cannot filter by {field}")
    return [
        (field, frozenset(map(FIELDS[field].key, values))) for field, values in selection.groups
    ]


def latest_versions(records: Sequence[Embedded]) -> list[Embedded]:
    """Each record once, in its latest version."""
    by_ref: dict[Ref, Embedded] = {record.ref: record for record in records}
    return list(by_ref.values())


def as_matrix(vectors: Any, dimension: int) -> Vector:
    """Vectors as rows of float32. Raises ValueError if the dimension is wrong or a value is not
    finite.
    """
    matrix = numpy.ascontiguousarray(vectors, numpy.float32).reshape(-1, numpy.shape(vectors)[-1])
    if matrix.shape[1] != dimension or not numpy.isfinite(matrix).all():
        raise ValueError(f"expected vectors of {dimension} finite numbers; given {matrix.shape}")
    return matrix
