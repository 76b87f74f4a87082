"""Pure semantic search: the records most similar to a text, without full text or fusion."""

import math

from memsvc.answers.page import Page
from memsvc.answers.rows import make_rows
from memsvc.application.requests import NearestRequest
from memsvc.application.services import Services
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.ports.store import Hit
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.core.records import Ref


def search_memories(services: Services, request: NearestRequest) -> Page:
    """The most similar records of the requested kinds, with similarity 1 / (1 + distance).

    Raises SemanticUnavailable, since there is nothing to fall back on.
    """
    if services.semantic is None:
        default = "This worker has no semantic index; use /api/search for full text."
        raise SemanticUnavailable(services.no_semantic or default)
    with services.store.snapshot():
        hits = _nearest(services, services.semantic, request)
        records = services.store.records(hit.ref for hit in hits)
        hits = [hit for hit in hits if hit.ref in records]
        rows = make_rows(hits, records, request.format)
    for row, hit in zip(rows, hits, strict=True):
        row["similarity"] = round(hit.relevance, 4)
    missing = services.semantic.missing()
    return Page(
        echo={"query": request.text},
        rows=rows,
        total=len(rows),
        limit=request.limit,
        format=request.format,
        strategy="semantic",
        notes={"degraded": missing} if missing else {},
        paged=False,
    )


def _nearest(services: Services, semantic: SemanticSearch, request: NearestRequest) -> list[Hit]:
    found = {
        Ref(kind, id): similarity(cosine)
        for kind in request.kinds
        for id, cosine in semantic.nearest(kind, request.text, request.limit, request.selection)
    }
    best_first = sorted(found, key=lambda ref: (-found[ref], ref))
    times = services.store.times(best_first)
    hits = [Hit(ref, times[ref], found[ref]) for ref in best_first if ref in times]
    return hits[: request.limit]


def similarity(cosine: float) -> float:
    """1 / (1 + d), with d the Euclidean distance between two unit vectors; 1 means identical."""
    return 1 / (1 + math.sqrt(max(0.0, 2 - 2 * cosine)))
