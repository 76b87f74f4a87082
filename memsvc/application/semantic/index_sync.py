"""Single steps of indexing: embed some records, apply some changes to the index."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy

from memsvc.core.ports.vectors import Change, Embedder, Pending, SemanticIndex, Vector, VectorStore
from memsvc.core.records import Record
from memsvc.core.semantic.cosines import unit
from memsvc.core.semantic.passages import Mixture, embedding_texts

MAX_RECORDS = 8
"""Records embedded per step: about half a second of work, the most that a kill loses."""

MAX_CHANGES = 1_000
"""Changes applied to the index per step."""


def embed_some(
    store: VectorStore,
    embedder: Embedder,
    stopped: Callable[[], bool] = lambda: False,
    pool: ThreadPoolExecutor | None = None,
) -> int:
    """Embed the newest pending records, one by one or on a pool of threads; return how many."""
    waiting = store.pending(MAX_RECORDS)
    records = store.records(pending.ref for pending in waiting)

    def embedded(pending: Pending) -> Vector | None:
        record = None if stopped() else records.get(pending.ref)
        return embed_record(embedder, record) if record else None

    found = (pool.map if pool else map)(embedded, waiting)
    done = [(pending, v) for pending, v in zip(waiting, found, strict=True) if v is not None]
    if done:
        store.keep_vectors(done, embedder.fingerprint)
    return len(done)


def apply_some(store: VectorStore, index: SemanticIndex, fingerprint: str) -> int:
    """Apply the store's next changes to an index; return how many."""
    changes = store.changes(index.position(), MAX_CHANGES, fingerprint)
    if changes:
        _apply(index, changes)
        index.advance(changes[-1].sequence)
    return len(changes)


def _apply(index: SemanticIndex, changes: list[Change]) -> None:
    index.remove([change.ref for change in changes if change.embedded is None])
    index.upsert([change.embedded for change in changes if change.embedded])


def embed_record(embedder: Embedder, record: Record) -> Vector:
    """The vectors of a record, of shape (n, dimension), each of unit length."""
    mixtures = embedding_texts(record)
    distinct = dict.fromkeys(text for mixture in mixtures for text, _ in mixture)
    vectors = {text: embedder.embed(text) for text in distinct}
    return numpy.stack([_weighted_mean(mixture, vectors) for mixture in mixtures])


def _weighted_mean(mixture: Mixture, vectors: Mapping[str, Vector]) -> Vector:
    weighted = [weight * vectors[text] for text, weight in mixture]
    return unit(numpy.sum(weighted, axis=0))
