"""Vectors in Chroma, in this process or on a server: one collection per kind, one id per vector.

Chroma finds the nearest vectors; filters are applied here, to labels in memory. With 100,000
vectors, Chroma's own `where` took 61 to 160 ms; this takes 2 to 50.
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

from memsvc.adapters.indexes.chroma_search import PAGE, SEARCH_WIDTH, batches, record_of, search
from memsvc.adapters.indexes.filtering import Labels, as_matrix, folded_groups, latest_versions
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedded, Vector
from memsvc.core.records import Kind, Ref
from memsvc.core.semantic.cosines import best

HNSW: Final[CreateCollectionConfiguration] = {
    "hnsw": {
        "space": "cosine",
        "max_neighbors": 16,
        "ef_construction": 100,
        "ef_search": SEARCH_WIDTH,
    }
}
"""With 100,000 vectors: 5 ms per query and a recall of .95 among the 100 nearest. More neighbours
found no more in the same time and took up to three times as long to write.
"""

FRESH_SECONDS: Final = 1.0
"""How long a collection is taken to exist before it is looked up again."""

Shelf = tuple[Collection, Labels]
"""The vectors of a kind, and the labels to filter their records by."""


class Place(Protocol):
    """Where the collections are: in a folder or on a server."""

    batch: int
    """Maximum vectors per write."""

    def name(self, kind: Kind) -> str:
        """The name of the collection of a kind."""

    def connect(self, check: Callable[[Client], None]) -> Client:
        """A client, once `check` has read the collections with it."""

    def disconnect(self, client: Client) -> None:
        """Close a client."""

    def wipe(self, client: Client | None) -> None:
        """Delete the collections, also without a client and when they cannot be read."""

    def release(self) -> None:
        """Release what the place holds besides its client."""

    def explain(self, error: BaseException) -> str:
        """One sentence: what went wrong and what to do."""


class ChromaIndex:
    """An index in Chroma. Only one process at a time may write to a place.

    The first call reads the labels: 2 to 5 s with 100,000 vectors.
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
        self._writing = threading.RLock()  # acquired first, held for a whole write
        self._lock = threading.Lock()  # acquired second, guards the labels

    def upsert(self, records: Sequence[Embedded]) -> None:
        checked = [
            (each, as_matrix(each.vectors, self._dimension)) for each in latest_versions(records)
        ]
        with self._writing, self._explained_errors():
            for kind in Kind:
                self._put(kind, [each for each in checked if each[0].ref.kind is kind])

    def remove(self, refs: Sequence[Ref]) -> None:
        with self._writing, self._explained_errors():
            for kind in Kind:
                self._drop(kind, {ref.id: 0 for ref in refs if ref.kind is kind})

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        (found,) = self.nearest_each(kind, [vector], limit, selection)
        return found

    def nearest_each(
        self, kind: Kind, vectors: Sequence[Vector], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        sought = as_matrix(vectors, self._dimension)
        folded_groups(selection)  # a file filter is the caller's mistake, not the index's
        with self._explained_errors():
            if known := self._known_shelf(kind):
                with contextlib.suppress(NotFoundError):  # removed since: look it up again
                    return self._nearest_on(known, sought, limit, selection)
            return self._nearest_on(self._shelf(kind), sought, limit, selection)

    def _nearest_on(
        self, shelf: Shelf, sought: Vector, limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        collection, labels = shelf
        with self._lock:
            chosen = labels.records[labels.select(selection)]
            size = labels.size
        if not len(chosen) or limit < 1:
            return [[] for _ in sought]
        return [best(*found, limit) for found in search(collection, sought, limit, chosen, size)]

    def count(self) -> int:
        with self._explained_errors():
            return sum(self._shelf(kind)[1].size for kind in Kind)

    def position(self) -> int:
        with self._writing, self._explained_errors():
            self._answered = min(_position(self._collection(kind)) for kind in Kind)
            return self._answered

    def advance(self, position: int) -> None:
        with self._writing, self._explained_errors():
            collections = [self._collection(kind) for kind in Kind]
            stored = min(map(_position, collections))
            if self._answered not in (None, stored):
                # Storing the position now would hide forever what was lost in between.
                self._answered = None
                raise SemanticUnavailable(
                    "The semantic index was emptied while it was written; it is filled again."
                )
            for collection in collections:
                collection.modify(metadata={"position": position})
            self._answered = position

    def clear(self) -> None:
        with self._writing, self._explained_errors():
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
        # Delete the surplus first: after a kill in between, the next run writes the record again.
        self._drop(kind, {record.ref.id: len(vectors) for record, vectors in records})
        collection, labels = self._shelf(kind)
        ids = [f"{record.ref.id}:{part}" for record, rows in records for part in range(len(rows))]
        metadatas = [_metadata(record) for record, rows in records for _ in rows]
        vectors = numpy.concatenate([rows for _, rows in records])
        for start in range(0, len(ids), self._place.batch):
            piece = slice(start, start + self._place.batch)
            collection.upsert(ids[piece], vectors[piece], metadatas[piece])
        with self._lock:
            for record, rows in records:
                labels.drop(record.ref.id)
                for _ in rows:
                    labels.add(record.ref.id, record.created_at_epoch, record.groups)

    def _drop(self, kind: Kind, keep: Mapping[int, int]) -> None:
        """Delete the vectors of records beyond the first `keep[record]`."""
        if not keep:
            return
        collection, labels = self._shelf(kind)
        with self._lock:
            surplus = [
                f"{record}:{part}"
                for record, kept in keep.items()
                for part in range(kept, labels.rows_of(record))
            ]
        for piece in batches(surplus, PAGE):
            collection.delete(piece)
        with self._lock:
            for record in (record for record, kept in keep.items() if not kept):
                labels.drop(record)

    def _known_shelf(self, kind: Kind) -> Shelf | None:
        """The shelf as it was found a moment ago: looking it up takes as long as searching it."""
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
        """The collection as it is now: on a server it may have been deleted and created again."""
        return (client or self._connected()).get_or_create_collection(
            self._place.name(kind),
            embedding_function=None,  # otherwise Chroma loads its own model
            configuration=HNSW,
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
        # If the files of the graph are missing, Chroma silently finds less, but it fails to return
        # a vector.
        for kind in Kind:
            held = self._collection(kind, client).get(limit=1, include=["embeddings"])["embeddings"]
            if held is not None and len(held) and len(held[0]) != self._dimension:
                raise ValueError(
                    f"its vectors have dimension {len(held[0])}, not {self._dimension}"
                )

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        self._forget()
        if client is not None:
            with contextlib.suppress(
                Exception
            ):  # a client that cannot read may fail to close as well
                self._place.disconnect(client)

    def _forget(self) -> None:
        self._works = False
        with self._lock:
            self._shelves.clear()
            self._found.clear()

    @contextlib.contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except (SemanticUnavailable, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic inside Chroma is not an Exception
            # The next call connects again: the server may be back, the labels may be wrong.
            self._works = False
            raise SemanticUnavailable(self._place.explain(error)) from error


def quiet_settings() -> Settings:
    """Settings for a client without telemetry that reads no .env in the current folder."""
    given: dict[str, Any] = {
        "_env_file": None,
        "anonymized_telemetry": False,
        "chroma_otel_collection_endpoint": "",
    }
    return Settings(**given)


def in_one_line(error: BaseException) -> str:
    """The message of an error, batches to fit into a sentence."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _position(collection: Collection) -> int:
    return int((collection.metadata or {}).get("position", 0))


def _metadata(record: Embedded) -> Metadata:
    # As JSON, because labels are only read whole: half the rows to write, twice as fast to read.
    return {"created_at_epoch": record.created_at_epoch, "groups": json.dumps(record.groups)}


def _read_labels(collection: Collection) -> Labels:
    labels = Labels()
    offset = 0
    while True:
        page = collection.get(limit=PAGE, offset=offset, include=["metadatas"])
        for id, metadata in zip(page["ids"], page["metadatas"] or (), strict=True):
            groups = json.loads(str(metadata["groups"]))
            labels.add(record_of(id), int(str(metadata["created_at_epoch"])), groups)
        if len(page["ids"]) < PAGE:
            return labels
        offset += PAGE
