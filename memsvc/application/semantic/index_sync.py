"""Single steps of indexing: embed some records, apply some changes to the index."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import numpy

from memsvc.core.ports.vectors import Change, Embedder, Pending, SemanticIndex, Vector, VectorStore
from memsvc.core.records import Record
from memsvc.core.semantic.cosines import unit
from memsvc.core.semantic.passages import Mixture, embedding_texts, lead_text, says_all

MAX_RECORDS = 8
"""Records embedded whole per step: about half a second of work, the most that a kill loses."""

MAX_LEADS = 64
"""Leads embedded per step: as much work."""

MAX_BATCH = 600
"""Characters embedded at once, each text counted as long as the longest: some 10 titles. Long texts
are faster one by one.
"""

MAX_CHANGES = 1_000
"""Changes applied to the index per step."""


@dataclass(frozen=True, slots=True)
class Model:
    """An embedder, the threads to run it on, and whether it is time to stop."""

    embedder: Embedder
    pool: ThreadPoolExecutor | None = None
    stopped: Callable[[], bool] = lambda: False

    def embed(self, texts: Iterable[str]) -> dict[str, Vector]:
        """The vector of each text, similar lengths together; some are missing once it stopped."""
        batches = _batches(sorted(set(texts), key=lambda text: (len(text), text)))
        found = (self.pool.map if self.pool else map)(self._embed_batch, batches)
        pairs = (zip(*each, strict=False) for each in zip(batches, found, strict=True))
        return dict(chain.from_iterable(pairs))

    def _embed_batch(self, texts: list[str]) -> Sequence[Vector]:
        return [] if self.stopped() else self.embedder.embed_all(texts)


def _batches(texts: Iterable[str]) -> list[list[str]]:
    """The texts in this order, shortest first, in batches of at most MAX_BATCH characters."""
    batches: list[list[str]] = []
    for text in texts:
        if batches and (len(batches[-1]) + 1) * len(text) <= MAX_BATCH:
            batches[-1].append(text)
        else:
            batches.append([text])
    return batches


def embed_some(store: VectorStore, model: Model) -> int:
    """Embed the first pending records; return how many.

    While many have no vectors at all, only their leads are embedded.
    """
    waiting = store.pending(MAX_LEADS)
    unknown = [pending for pending in waiting if not pending.has_lead]
    if len(unknown) > MAX_RECORDS:
        return _embed_leads(store, model, unknown)
    return _embed_whole(store, model, waiting[:MAX_RECORDS])


def _embed_leads(store: VectorStore, model: Model, waiting: Sequence[Pending]) -> int:
    """Keep the lead of each record; if that is all that a record says, it is done."""
    records = store.records(pending.ref for pending in waiting)
    leads = {each: lead_text(records[each.ref]) for each in waiting if each.ref in records}
    vectors = model.embed(leads.values())
    done = [(each, vectors[lead][None]) for each, lead in leads.items() if lead in vectors]
    all_said = {each for each, lead in leads.items() if says_all(records[each.ref], lead)}
    fingerprint = model.embedder.fingerprint
    store.keep_vectors([pair for pair in done if pair[0] in all_said], fingerprint)
    store.keep_leads([pair for pair in done if pair[0] not in all_said], fingerprint)
    return len(done)


def _embed_whole(store: VectorStore, model: Model, waiting: Sequence[Pending]) -> int:
    records = store.records(pending.ref for pending in waiting)
    mixtures = {each: embedding_texts(records[each.ref]) for each in waiting if each.ref in records}
    texts = {each: _texts(mixtures) for each, mixtures in mixtures.items()}
    vectors = model.embed(chain.from_iterable(texts.values()))
    done = [
        (each, _mixed(mixtures[each], vectors))
        for each in mixtures
        if texts[each] <= vectors.keys()
    ]
    if done:
        store.keep_vectors(done, model.embedder.fingerprint)
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
    return _mixed(mixtures, Model(embedder).embed(_texts(mixtures)))


def _texts(mixtures: list[Mixture]) -> set[str]:
    return {text for mixture in mixtures for text, _ in mixture}


def _mixed(mixtures: list[Mixture], vectors: Mapping[str, Vector]) -> Vector:
    return numpy.stack([_weighted_mean(mixture, vectors) for mixture in mixtures])


def _weighted_mean(mixture: Mixture, vectors: Mapping[str, Vector]) -> Vector:
    weighted = [weight * vectors[text] for text, weight in mixture]
    return unit(numpy.sum(weighted, axis=0))
