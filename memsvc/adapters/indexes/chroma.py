"""Vectors in Chroma, embedded or on a server: one collection a kind, one id a vector.

Chroma finds the nearest; which records a filter selects is known here, from the labels in memory.
Its own `where` took 61 to 160 ms with 100,000 vectors, and this 2 to 50.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import numpy
from chromadb.api.client import Client
from chromadb.api.collection_configuration import CreateCollectionConfiguration
from chromadb.api.models.Collection import Collection
from chromadb.api.types import Metadata
from chromadb.config import Settings
from chromadb.errors import NotFoundError
from numpy.typing import NDArray

from memsvc.adapters.indexes.filtering import Labels, as_matrix, folded_groups, latest
from memsvc.core.cosines import best
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedded, Vector
from memsvc.core.records import Kind, Ref

EF: Final = 800
"""So many candidates are kept in sight while the graph is searched."""

GRAPH: Final[CreateCollectionConfiguration] = {
    "hnsw": {
        "space": "cosine",
        "max_neighbors": 16,
        "ef_construction": 100,
        "ef_search": EF,
    }
}
"""With 100,000 vectors 5 ms a query, and the 100 nearest are to .95 the exact ones. More neighbours
found no more in the same time, and took up to three times as long to fill."""

FRESH_SECONDS: Final = 1.0
"""How long a collection is taken to be there before it is looked up again."""

FEW: Final = 300
"""So many chosen vectors are fetched and compared exactly."""

NAMED: Final = 30_000
"""So many ids at most are named when Chroma is to search among them; SQLite takes 32,766."""

PAGE: Final = 2_000
"""Rows read or removed at a time."""

Found = tuple[NDArray[numpy.int64], NDArray[numpy.float32]]
"""The record and the cosine of each vector."""


Shelf = tuple[Collection, Labels]
"""The vectors of a kind, and what their records can be selected by."""


class Place(Protocol):
    """Where an index lives: a folder, or a server."""

    batch: int
    """The most vectors that are written at a time."""

    def name(self, kind: Kind) -> str:
        """The collection of a kind."""

    def connect(self, check: Callable[[Client], None]) -> Client:
        """A client that passed a check which reads what is there."""

    def disconnect(self, client: Client) -> None:
        """Close a client."""

    def wipe(self, client: Client | None) -> None:
        """Throw the collections away, also with no client and when nothing can be read."""

    def release(self) -> None:
        """Let go of what the place holds besides its client."""

    def explain(self, error: BaseException) -> str:
        """What went wrong and what helps, in one sentence."""


class ChromaIndex:
    """An index in Chroma. One process at a time writes to a place.

    The first call on a place reads it: 2 to 5 s with 100,000 vectors.
    """

    def __init__(self, place: Place, dimension: int) -> None:
        self._place = place
        self._dimension = dimension
        self._client: Client | None = None
        self._works = False
        self._closed = False
        self._shelves: dict[Kind, tuple[UUID, Labels]] = {}
        self._found: dict[Kind, tuple[float, Shelf | None]] = {}
        self._answered: int | None = None
        self._writing = threading.RLock()  # taken first, for as long as a write lasts
        self._lock = threading.Lock()  # taken second, for the labels

    def upsert(self, records: Sequence[Embedded]) -> None:
        checked = [(each, as_matrix(each.vectors, self._dimension)) for each in latest(records)]
        with self._writing, self._errors():
            for kind in Kind:
                self._put(kind, [each for each in checked if each[0].ref.kind is kind])

    def remove(self, refs: Sequence[Ref]) -> None:
        with self._writing, self._errors():
            for kind in Kind:
                self._drop(kind, {ref.id: 0 for ref in refs if ref.kind is kind})

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        sought = as_matrix(vector, self._dimension)
        folded_groups(selection)  # a group of files is the caller's mistake, not the index's
        with self._errors():
            if known := self._known_shelf(kind):
                with contextlib.suppress(NotFoundError):  # removed since: looked up anew
                    return self._nearest_on(known, sought, limit, selection)
            return self._nearest_on(self._shelf(kind), sought, limit, selection)

    def _nearest_on(
        self, shelf: Shelf, sought: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        collection, labels = shelf
        with self._lock:
            chosen = labels.records[labels.select(selection)]
            size = labels.size
        if not len(chosen) or limit < 1:
            return []
        return best(*_search(collection, sought, limit, chosen, size), limit)

    def count(self) -> int:
        with self._errors():
            return sum(self._shelf(kind)[1].size for kind in Kind)

    def position(self) -> int:
        with self._writing, self._errors():
            self._answered = min(_position(self._collection(kind)) for kind in Kind)
            return self._answered

    def advance(self, position: int) -> None:
        with self._writing, self._errors():
            collections = [self._collection(kind) for kind in Kind]
            stored = min(map(_position, collections))
            if self._answered not in (None, stored):
                # Noting the position now would hide for good what was lost in between.
                self._answered = None
                raise SemanticUnavailable(
                    "The semantic index was emptied while it was written; it is filled anew."
                )
            for collection in collections:
                collection.modify(metadata={"position": position})
            self._answered = position

    def clear(self) -> None:
        with self._writing, self._errors():
            client, self._client = self._client, None
            self._forget()
            self._answered = None
            self._place.wipe(client)

    def close(self) -> None:
        with self._writing:
            if not self._closed:
                self._closed = True
                self._disconnect()
                self._place.release()

    def _put(self, kind: Kind, records: Sequence[tuple[Embedded, Vector]]) -> None:
        if not records:
            return
        # The surplus goes first: if we are killed in between, the next run writes the record again.
        self._drop(kind, {record.ref.id: len(vectors) for record, vectors in records})
        collection, labels = self._shelf(kind)
        ids = [f"{record.ref.id}:{part}" for record, rows in records for part in range(len(rows))]
        about = [_metadata(record) for record, rows in records for _ in rows]
        vectors = numpy.concatenate([rows for _, rows in records])
        for start in range(0, len(ids), self._place.batch):
            piece = slice(start, start + self._place.batch)
            collection.upsert(ids[piece], vectors[piece], about[piece])
        with self._lock:
            for record, rows in records:
                labels.drop(record.ref.id)
                for _ in rows:
                    labels.add(record.ref.id, record.created_at_epoch, record.groups)

    def _drop(self, kind: Kind, keep: Mapping[int, int]) -> None:
        """Take out the vectors of records beyond the first so many."""
        if not keep:
            return
        collection, labels = self._shelf(kind)
        with self._lock:
            surplus = [
                f"{record}:{part}"
                for record, kept in keep.items()
                for part in range(kept, labels.parts(record))
            ]
        for piece in _cut(surplus, PAGE):
            collection.delete(piece)
        with self._lock:
            for record in (record for record, kept in keep.items() if not kept):
                labels.drop(record)

    def _known_shelf(self, kind: Kind) -> Shelf | None:
        """The shelf as it was found a moment ago: to look it up takes as long as to search it."""
        with self._lock:
            moment, shelf = self._found.get(kind, (0.0, None))
        return shelf if self._works and time.monotonic() < moment + FRESH_SECONDS else None

    def _shelf(self, kind: Kind) -> Shelf:
        collection = self._collection(kind)
        with self._lock:
            known, labels = self._shelves.get(kind, (None, Labels()))
            if known != collection.id:
                labels = _read_labels(collection)
                self._shelves[kind] = collection.id, labels
            self._found[kind] = time.monotonic(), (collection, labels)
            return collection, labels

    def _collection(self, kind: Kind, client: Client | None = None) -> Collection:
        """The collection as it is now: on a server it may have been removed and made anew."""
        return (client or self._connected()).get_or_create_collection(
            self._place.name(kind),
            embedding_function=None,  # without this Chroma loads a model of its own
            configuration=GRAPH,
            metadata={"position": 0},
        )

    def _connected(self) -> Client:
        with self._writing if not self._works else contextlib.nullcontext():
            if self._closed:
                raise SemanticUnavailable("The semantic index is closed.")
            if self._client is None or not self._works:
                self._disconnect()
                self._client = self._place.connect(self._check)
                self._works = True
            return self._client

    def _check(self, client: Client) -> None:
        # Where the files of the graph are missing Chroma finds less and says nothing, but it does
        # fail to give back a vector.
        for kind in Kind:
            held = self._collection(kind, client).get(limit=1, include=["embeddings"])["embeddings"]
            if held is not None and len(held) and len(held[0]) != self._dimension:
                raise ValueError(f"vectors of {len(held[0])} numbers, not {self._dimension}")

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        self._forget()
        if client is not None:
            with contextlib.suppress(Exception):  # what cannot be read may fail to close as well
                self._place.disconnect(client)

    def _forget(self) -> None:
        self._works = False
        with self._lock:
            self._shelves.clear()
            self._found.clear()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (SemanticUnavailable, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic inside Chroma is no Exception
            # The next call connects anew: the server may be back, the labels may not be right.
            self._works = False
            raise SemanticUnavailable(self._place.explain(error)) from error


def quiet_settings() -> Settings:
    """Settings for a client that tells nobody anything, and reads no .env where it is started."""
    given: dict[str, Any] = {
        "_env_file": None,
        "anonymized_telemetry": False,
        "chroma_otel_collection_endpoint": "",
    }
    return Settings(**given)


def in_one_line(error: BaseException) -> str:
    """What an error says, cut to fit into a sentence."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _position(collection: Collection) -> int:
    return int((collection.metadata or {}).get("position", 0))


def _metadata(record: Embedded) -> Metadata:
    # As JSON, for labels are only ever read whole: half the rows to write, twice as fast to read.
    return {"created_at_epoch": record.created_at_epoch, "groups": json.dumps(record.groups)}


def _read_labels(collection: Collection) -> Labels:
    labels = Labels()
    offset = 0
    while True:
        page = collection.get(limit=PAGE, offset=offset, include=["metadatas"])
        for name, about in zip(page["ids"], page["metadatas"] or (), strict=True):
            groups = json.loads(str(about["groups"]))
            labels.add(_record(name), int(str(about["created_at_epoch"])), groups)
        if len(page["ids"]) < PAGE:
            return labels
        offset += PAGE


def _record(name: str) -> int:
    return int(name.partition(":")[0])


def _names(chosen: NDArray[numpy.int64]) -> list[str]:
    """The ids of all vectors, given the record of each."""
    records, parts = numpy.unique(chosen, return_counts=True)
    pairs = zip(records.tolist(), parts.tolist(), strict=True)
    return [f"{record}:{part}" for record, count in pairs for part in range(count)]


def _cut(names: list[str], length: int) -> list[list[str]]:
    return [names[start : start + length] for start in range(0, len(names), length)]


def _search(
    collection: Collection,
    sought: Vector,
    limit: int,
    chosen: NDArray[numpy.int64],
    size: int,
) -> Found:
    """The nearest of the chosen vectors; at least `limit` records, if there are as many."""
    if len(chosen) > FEW and len(chosen) * 10 >= size:
        found = _search_widely(collection, sought, limit, chosen, size)
        if found is not None:
            return found
    pieces = _cut(_names(chosen), NAMED)
    return _joined([_search_among(collection, sought, limit, piece) for piece in pieces])


def _search_widely(
    collection: Collection,
    sought: Vector,
    limit: int,
    chosen: NDArray[numpy.int64],
    size: int,
) -> Found | None:
    """Search among all and keep the chosen; None if that would take too many."""
    everything = len(chosen) == size
    # A filter must not cost any of the care that EF stands for: as many chosen ones are seen.
    width = limit * 5 // 4 + 1 if everything else max(limit, EF) * size // len(chosen)
    for take in (width, width * 4):
        if take >= len(chosen):
            break
        records, cosines = _query(collection, sought, take)
        if not everything:
            kept = numpy.isin(records, chosen)
            records, cosines = records[kept], cosines[kept]
        if len(numpy.unique(records)) >= limit:
            return records, cosines
    return None


def _search_among(collection: Collection, sought: Vector, limit: int, names: list[str]) -> Found:
    width = limit if len(names) > FEW else len(names)
    while width < len(names):
        found = _query(collection, sought, width, names)
        if len(numpy.unique(found[0])) >= limit:
            return found
        if len(found[0]) < width:
            break  # some cannot be reached in the graph
        width *= 4
    return _compare(collection, sought, names)


def _query(
    collection: Collection, sought: Vector, width: int, names: list[str] | None = None
) -> Found:
    answer = collection.query(sought, n_results=width, ids=names, include=["distances"])
    distances = numpy.array((answer["distances"] or [[]])[0], numpy.float32)
    records = numpy.array([_record(name) for name in answer["ids"][0]], numpy.int64)
    return records, 1 - distances


def _compare(collection: Collection, sought: Vector, names: list[str]) -> Found:
    """All of these vectors, compared here and exactly."""
    return _joined([_compare_page(collection, sought, piece) for piece in _cut(names, PAGE)])


def _compare_page(collection: Collection, sought: Vector, names: list[str]) -> Found:
    held = collection.get(names, include=["embeddings"])
    records = numpy.array([_record(name) for name in held["ids"]], numpy.int64)
    vectors = numpy.asarray(held["embeddings"], numpy.float32).reshape(len(records), -1)
    return records, vectors @ sought[0]


def _joined(found: Sequence[Found]) -> Found:
    records, cosines = zip(*found, strict=True)
    return numpy.concatenate(records), numpy.concatenate(cosines)
