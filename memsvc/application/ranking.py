"""Ranks the candidates of a search by full text, semantic similarity and recency."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memsvc.application.requests import SearchRequest
from memsvc.application.services import Services
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.fusion import Fused, fuse
from memsvc.core.ports.store import Hit
from memsvc.core.query import Query, plain_text
from memsvc.core.ranking.companions import lift_companions
from memsvc.core.recency import boost_recent
from memsvc.core.records import Kind, Ref

DEPTH: Final = 100
"""Candidates per kind and ranking. It does not depend on the page requested, so pages never repeat
a record.
"""

MIN_COSINE: Final = 0.3
"""The lowest cosine at which a record without any word of the query counts as a match."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, best first, and how they were found.

    `added` are the candidates without any word of the query; `degraded` says why the ranking is
    incomplete.
    """

    hits: list[Hit]
    strategy: str = "fulltext"
    added: frozenset[Ref] = frozenset()
    degraded: str = ""

    @property
    def notes(self) -> dict[str, str]:
        """What an answer says about this ranking besides its strategy."""
        return {"degraded": self.degraded} if self.degraded else {}


def rank_candidates(services: Services, request: SearchRequest) -> Ranking:
    """The candidates of every kind, the same number for every page."""
    if services.semantic and (text := _plain_text(request)):
        services.semantic.prepare(text)  # it is embedded while full text is searched
    lexical = [hit for kind in request.kinds for hit in _lexical(services, request, kind)]
    return _ranked(services, request, lexical, lambda: _nearest(services, request))


def rank_records(
    services: Services, request: SearchRequest, kind: Kind, ids: Sequence[int]
) -> Ranking:
    """The matches among these records, best first."""
    lexical = services.store.rank_among(kind, request.query, ids)
    return _ranked(services, request, lexical, lambda: _compared(services, request, kind, ids))


def _ranked(
    services: Services,
    request: SearchRequest,
    hits: Iterable[Hit],
    near: Callable[[], dict[Ref, float] | None],
) -> Ranking:
    """Full text fused with semantic search, or full text alone with the reason."""
    lexical = {hit.ref: hit for hit in hits}
    try:
        nearest = near()
    except SemanticUnavailable as error:
        return Ranking(_ordered(services, lexical.values(), request), degraded=error.detail)
    if nearest is None:
        missing = services.no_semantic if _plain_text(request) else ""
        return Ranking(_ordered(services, lexical.values(), request), degraded=missing)
    return _fused(services, request, lexical, nearest)


def _ordered(services: Services, hits: Iterable[Hit], request: SearchRequest) -> list[Hit]:
    """Best first, then newest first; of equally good ones, those from the future come last."""
    latest = services.latest

    def place(hit: Hit) -> tuple[float, bool, int, Ref]:
        moment = hit.created_at_epoch
        return -hit.relevance, moment > latest, -moment, hit.ref

    best_first = sorted(hits, key=place)
    if request.window_start is None:
        return best_first
    return boost_recent(best_first, request.window_start, latest)


def _lexical(services: Services, request: SearchRequest, kind: Kind) -> list[Hit]:
    """The best matches, overall and inside the window: old ones must not crowd out recent ones."""
    store, query = services.store, request.query
    best = store.rank(kind, query, request.selection, DEPTH)
    if request.window_start is None or len(best) < DEPTH:
        return best
    inside = _window(services, request, request.window_start)
    if not store.count_matches(kind, query, inside):
        return best
    return best + store.rank(kind, query, inside, DEPTH)


def _nearest(services: Services, request: SearchRequest) -> dict[Ref, float] | None:
    """The cosines of the most similar records; None if semantic search does not apply."""
    text = _plain_text(request)
    if services.semantic is None or not text:
        return None
    return {
        Ref(kind, id): cosine
        for kind in request.kinds
        for selection in _selections(services, request)
        for id, cosine in services.semantic.nearest(kind, text, DEPTH, selection)
    }


def _compared(
    services: Services, request: SearchRequest, kind: Kind, ids: Sequence[int]
) -> dict[Ref, float] | None:
    text = _plain_text(request)
    if services.semantic is None or not text:
        return None
    return {Ref(kind, id): near for id, near in services.semantic.compare(kind, text, ids)}


def _plain_text(request: SearchRequest) -> str:
    """The text to embed; empty if the query only filters and excludes."""
    return plain_text(request.text) if request.query.searchable else ""


def _selections(services: Services, request: SearchRequest) -> list[Filter]:
    """The filter as requested, and the same limited to the window."""
    if request.window_start is None:
        return [request.selection]
    return [request.selection, _window(services, request, request.window_start)]


def _window(services: Services, request: SearchRequest, start: int) -> Filter:
    return replace(request.selection, since=start, until=services.latest)


def _fused(
    services: Services,
    request: SearchRequest,
    lexical: Mapping[Ref, Hit],
    nearest: Mapping[Ref, float],
) -> Ranking:
    added = _added(services, request, lexical, nearest)
    cosines = {ref: cosine for ref, cosine in nearest.items() if ref in lexical or ref in added}
    fused = fuse(
        {ref: hit.relevance for ref, hit in lexical.items()},
        cosines,
        _coverage(services, request.query, lexical.values()),
        _length(request.query),
    )
    times = {ref: hit.created_at_epoch for ref, hit in lexical.items()}
    times |= services.store.times(set(fused) - set(times))
    relevances = lift_companions(
        {ref: parts.relevance for ref, parts in fused.items()}, services.store.origins(fused)
    )
    hits = [
        _hit(ref, times[ref], parts, relevances[ref])
        for ref, parts in fused.items()
        if ref in times
    ]
    lag = services.semantic.missing() if services.semantic else ""
    unmatched = frozenset(ref for ref in times if not added.get(ref, True))
    return Ranking(_ordered(services, hits, request), "hybrid", unmatched, lag)


def _hit(ref: Ref, moment: int, parts: Fused, relevance: float) -> Hit:
    share = parts.semantic / parts.relevance if parts.relevance else 0.0
    return Hit(ref, moment, relevance, semantic_share=share)


def _added(
    services: Services,
    request: SearchRequest,
    lexical: Mapping[Ref, Hit],
    nearest: Mapping[Ref, float],
) -> dict[Ref, bool]:
    """The similar records that full text did not rank, each with whether it matches at all.

    Those that do not match count only if they are similar enough, and never if the query requires
    or excludes words.
    """
    strict = bool(request.query.required or request.query.excludes)
    found: dict[Ref, bool] = {}
    for kind in request.kinds:
        ids = [ref.id for ref in nearest if ref.kind is kind and ref not in lexical]
        matching = services.store.matches_among(kind, request.query, request.selection, ids)
        for ref in (Ref(kind, id) for id in ids):
            if ref.id in matching or (nearest[ref] >= MIN_COSINE and not strict):
                found[ref] = ref.id in matching
    return found


def _coverage(services: Services, query: Query, hits: Iterable[Hit]) -> float:
    """The share of the query's words that the best full-text match contains; 0 without a match."""
    best = max(hits, key=lambda hit: hit.relevance, default=None)
    return services.store.coverage(query, best.ref) if best else 0.0


def _length(query: Query) -> int:
    """The characters of the words and phrases of a query, with one space between them."""
    return len(" ".join(term.text for term in (*query.words, *query.required)))
