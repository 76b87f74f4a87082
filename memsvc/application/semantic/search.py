"""Pure semantic search: the records most similar to a text, without full text or fusion."""

import math
from dataclasses import replace
from typing import Final

from memsvc.answers.page import Page
from memsvc.answers.rows import make_rows
from memsvc.application.ranking import rank_candidates
from memsvc.application.requests import NearestRequest, SearchRequest
from memsvc.application.services import Services
from memsvc.application.suggestions import future_note
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.ports.store import Hit
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.core.query import parse, plain_text
from memsvc.core.records import Ref

NO_INDEX: Final = "This worker has no semantic index."
NOTHING_SIMILAR: Final = (
    "No record is similar enough; ask in a sentence, or search for words: /api/search."
)


def search_memories(services: Services, request: NearestRequest) -> Page:
    """The most similar records of the requested kinds, with similarity 1 / (1 + distance); the best
    matches of full text while meaning is not there, with the reason.
    """
    with services.store.snapshot():
        if services.semantic is None:
            return _by_words(services, request, services.no_semantic or NO_INDEX)
        try:
            return _by_meaning(services, services.semantic, request)
        except SemanticUnavailable as error:
            return _by_words(services, request, error.detail)


def _by_meaning(services: Services, semantic: SemanticSearch, request: NearestRequest) -> Page:
    hits = _nearest(services, semantic, request)
    page = _page(services, request, hits, "semantic", semantic.missing())
    relevance = {str(hit.ref): hit.relevance for hit in hits}
    for row in page.rows:
        row["similarity"] = round(relevance[row["ref"]], 4)
    return page if hits else replace(page, notes={**page.notes, "notice": NOTHING_SIMILAR})


def _by_words(services: Services, request: NearestRequest, reason: str) -> Page:
    """The best matches of full text; `reason` says why it is not the most similar records."""
    search = SearchRequest(
        kinds=request.kinds,
        text=request.text,
        query=parse(plain_text(request.text)),
        selection=request.selection,
        order="relevance",
    )
    found = rank_candidates(replace(services, semantic=None), search)
    return _page(services, request, found.hits[: request.limit], "fulltext", reason)


def _page(
    services: Services, request: NearestRequest, hits: list[Hit], strategy: str, degraded: str
) -> Page:
    records = services.store.records(hit.ref for hit in hits)
    rows = make_rows([hit for hit in hits if hit.ref in records], records, request.format)
    notes = future_note(services, request.kinds, request.selection)
    return Page(
        echo={"query": request.text},
        rows=rows,
        total=len(rows),
        limit=request.limit,
        format=request.format,
        strategy=strategy,
        notes=notes | ({"degraded": degraded} if degraded else {}),
        paged=False,
    )


def _nearest(services: Services, semantic: SemanticSearch, request: NearestRequest) -> list[Hit]:
    floor = semantic.floor(request.text)
    found = {
        Ref(kind, id): similarity(cosine)
        for kind in request.kinds
        for id, cosine in semantic.nearest(kind, request.text, request.limit, request.selection)
        if cosine >= floor
    }
    best_first = sorted(found, key=lambda ref: (-found[ref], ref))
    times = services.store.times(best_first)
    hits = [Hit(ref, times[ref], found[ref]) for ref in best_first if ref in times]
    return hits[: request.limit]


def similarity(cosine: float) -> float:
    """1 / (1 + d), with d the Euclidean distance between two unit vectors; 1 means identical."""
    return 1 / (1 + math.sqrt(max(0.0, 2 - 2 * cosine)))
