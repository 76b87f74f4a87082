"""Unit vectors, and the nearest records by cosine."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy
from numpy.typing import NDArray

from memsvc.core.ports.vectors import Vector

_TIE: Final = 1e-6  # cosines nearer than this are equal: the last bits depend on a row's position


def unit(vector: Vector) -> Vector:
    """The vector scaled to length 1."""
    length = float(numpy.linalg.norm(vector)) or 1.0
    return (vector / length).astype(numpy.float32)


def rank_all(vectors: Mapping[int, Vector], sought: Vector) -> list[tuple[int, float]]:
    """These records, each by its nearest vector: id and cosine, nearest first."""
    (ranked,) = rank_each(vectors, [sought], len(vectors))
    return ranked


def rank_each(
    vectors: Mapping[int, Vector], sought: Sequence[Vector], limit: int
) -> list[list[tuple[int, float]]]:
    """The `limit` best of these records for each vector sought."""
    if not vectors:
        return [[] for _ in sought]
    records = numpy.repeat(list(vectors), [len(rows) for rows in vectors.values()])
    held = numpy.concatenate(list(vectors.values()))
    return [best(records, held @ each, limit) for each in sought]


def best(
    records: NDArray[numpy.int64], cosines: NDArray[numpy.float32], limit: int
) -> list[tuple[int, float]]:
    """The `limit` records with the highest cosines, each by its best row, ties by id."""
    take = limit
    while limit > 0:
        rows = _highest(cosines, take)
        found = _ranked(records[rows], cosines[rows])
        if len(found) >= limit or len(rows) == len(cosines):
            return found[:limit]
        take *= 2
    return []


def _highest(cosines: NDArray[numpy.float32], take: int) -> NDArray[numpy.int64]:
    """The rows of the `take` highest cosines, and of those equal to the last of them."""
    if take >= len(cosines):
        return numpy.arange(len(cosines))
    last = len(cosines) - take
    lowest = numpy.partition(cosines, last)[last]
    return numpy.flatnonzero(cosines >= lowest - _TIE)


def _ranked(
    records: NDArray[numpy.int64], cosines: NDArray[numpy.float32]
) -> list[tuple[int, float]]:
    """Each record once, with its highest cosine."""
    rounded = numpy.clip(cosines.astype(numpy.float64), -1, 1).round(6)
    order = numpy.lexsort((records, -rounded))
    _, first = numpy.unique(records[order], return_index=True)
    kept = order[numpy.sort(first)]
    return list(zip(records[kept].tolist(), rounded[kept].tolist(), strict=True))
