"""Finds the nearest vectors of a Chroma collection among those that a filter selects."""

from collections.abc import Sequence
from typing import Final

import numpy
from chromadb.api.models.Collection import Collection
from numpy.typing import NDArray

from memsvc.core.ports.vectors import Vector

SEARCH_WIDTH: Final = 800
"""Candidates that a search of the graph keeps (hnsw's `ef_search`)."""

MAX_COMPARED: Final = 300
"""Up to this many chosen vectors are fetched and compared exactly, without the graph."""

MAX_IDS: Final = 30_000
"""Maximum ids that a query may name for Chroma to search among; SQLite takes 32,766."""

PAGE: Final = 2_000
"""Rows read or removed per call."""

Found = tuple[NDArray[numpy.int64], NDArray[numpy.float32]]
"""The record and the cosine of each vector found."""


def search(
    collection: Collection,
    sought: Vector,
    limit: int,
    chosen: NDArray[numpy.int64],
    size: int,
) -> list[Found]:
    """For each vector sought the nearest of the chosen records, covering `limit` of them if that
    many are chosen.

    `chosen` has the record of each vector to search among, `size` counts all in the collection.
    """
    if len(chosen) > MAX_COMPARED and len(chosen) * 10 >= size:
        found = _search_widely(collection, sought, limit, chosen, size)
        if found is not None:
            return found
    pages = batches(_ids(chosen), MAX_IDS)
    return [
        _joined([_search_among(collection, row, limit, page) for page in pages])
        for row in sought[:, numpy.newaxis]
    ]


def _search_widely(
    collection: Collection,
    sought: Vector,
    limit: int,
    chosen: NDArray[numpy.int64],
    size: int,
) -> list[Found] | None:
    """Search all vectors and keep the chosen ones; None if that would need too many."""
    everything = len(chosen) == size
    # A filter must not lower recall: search widely enough to see SEARCH_WIDTH chosen ones.
    width = limit * 5 // 4 + 1 if everything else max(limit, SEARCH_WIDTH) * size // len(chosen)
    for take in (width, width * 4):
        if take >= len(chosen):
            break
        found = _query(collection, sought, take)
        if not everything:
            found = [_kept(each, chosen) for each in found]
        if all(len(numpy.unique(records)) >= limit for records, _ in found):
            return found
    return None


def _kept(found: Found, chosen: NDArray[numpy.int64]) -> Found:
    records, cosines = found
    kept = numpy.isin(records, chosen)
    return records[kept], cosines[kept]


def _search_among(collection: Collection, sought: Vector, limit: int, ids: list[str]) -> Found:
    width = limit if len(ids) > MAX_COMPARED else len(ids)
    while width < len(ids):
        (found,) = _query(collection, sought, width, ids)
        if len(numpy.unique(found[0])) >= limit:
            return found
        if len(found[0]) < width:
            break  # some vectors are unreachable in the graph
        width *= 4
    return _compare(collection, sought, ids)


def _query(
    collection: Collection, sought: Vector, width: int, ids: list[str] | None = None
) -> list[Found]:
    answer = collection.query(sought, n_results=width, ids=ids, include=["distances"])
    return [
        (
            numpy.array([record_of(id) for id in found], numpy.int64),
            1 - numpy.array(distances, numpy.float32),
        )
        for found, distances in zip(answer["ids"], answer["distances"] or [[]], strict=True)
    ]


def _compare(collection: Collection, sought: Vector, ids: list[str]) -> Found:
    """The exact cosines of all these vectors, computed here."""
    return _joined([_compare_page(collection, sought, page) for page in batches(ids, PAGE)])


def _compare_page(collection: Collection, sought: Vector, ids: list[str]) -> Found:
    held = collection.get(ids, include=["embeddings"])
    records = numpy.array([record_of(id) for id in held["ids"]], numpy.int64)
    vectors = numpy.asarray(held["embeddings"], numpy.float32).reshape(len(records), -1)
    return records, vectors @ sought[0]


def _joined(found: Sequence[Found]) -> Found:
    records, cosines = zip(*found, strict=True)
    return numpy.concatenate(records), numpy.concatenate(cosines)


def _ids(chosen: NDArray[numpy.int64]) -> list[str]:
    """The ids of vectors, given the record of each."""
    records, parts = numpy.unique(chosen, return_counts=True)
    pairs = zip(records.tolist(), parts.tolist(), strict=True)
    return [f"{record}:{part}" for record, count in pairs for part in range(count)]


def batches(ids: list[str], length: int) -> list[list[str]]:
    """The ids in batches of at most this length."""
    return [ids[start : start + length] for start in range(0, len(ids), length)]


def record_of(id: str) -> int:
    """The record of a vector, from the vector's id."""
    return int(id.partition(":")[0])
