"""Ranks the candidates of a search by full text, semantic similarity and recency."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import mul
from typing import Final

from memsvc.application.requests import SearchRequest
from memsvc.application.services import Services
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.fusion import Fused, fuse
from memsvc.core.ports.store import Hit, Title
from memsvc.core.query import Query, plain_text
from memsvc.core.ranking.chores import asks_for_chores, put_behind
from memsvc.core.ranking.companions import lift_companions
from memsvc.core.ranking.wordings import combine
from memsvc.core.recency import boost_recent
from memsvc.core.records import Kind, Ref
from memsvc.core.semantic.unknown import estimate_unknown

DEPTH: Final = 100
"""Candidates per kind and ranking. It does not depend on the page requested, so pages never repeat
a record.
"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, best first, and how they were found.

    `added` are the candidates without any word of the query; `degraded` says why the ranking is
    incomplete. `titles` are those of the candidates, which are read once for all that needs them.
    """

    hits: list[Hit]
    strategy: str = "fulltext"
    added: frozenset[Ref] = frozenset()
    degraded: str = ""
    titles: Mapping[Ref, Title] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, str]:
        """What an answer says about this ranking besides its strategy."""
        return {"degraded": self.degraded} if self.degraded else {}


Cosines = Mapping[Ref, float]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What one wording found: full-text matches, how much of its words the best of them holds, and
    cosines; `nearest` is None without semantic search, and `degraded` then says why, if there is a
    reason. `floor` is the lowest cosine at which a record without any of its words counts.
    """

    query: Query
    lexical: Mapping[Ref, Hit]
    coverage: float
    nearest: Cosines | None
    degraded: str = ""
    floor: float = 0.0


def rank_candidates(services: Services, request: SearchRequest) -> Ranking:
    """The candidates of every kind, the same number for every page; with several wordings, those
    of each.
    """
    asked = request.each_wording()
    for each in asked:
        if services.semantic and (text := _plain_text(each)):
            services.semantic.prepare(text)  # it is embedded while full text is searched
    has_recent = cache(partial(_has_recent, services, request))
    lexical = [
        [hit for kind in request.kinds for hit in _lexical(services, each, kind, has_recent)]
        for each in asked
    ]
    found = _candidates(services, asked, lexical, partial(_nearest, services, asked))
    return _ranked(services, request, found)


def rank_records(
    services: Services, request: SearchRequest, kind: Kind, ids: Sequence[int]
) -> Ranking:
    """The matches among these records, best first."""
    lexical = services.store.rank_among(kind, request.query, ids)
    near = partial(_compared, services, request, kind, ids)
    return _ranked(services, request, _candidates(services, [request], [lexical], near))


def _candidates(
    services: Services,
    asked: Sequence[SearchRequest],
    lexical: Sequence[Sequence[Hit]],
    near: Callable[[], Sequence[Cosines | None]],
) -> list[Candidates]:
    """Full-text matches with the cosines of similar records, or with the reason why not."""
    texts = [_plain_text(each) for each in asked]
    # while the texts are embedded
    coverages = [
        _coverage(services, each.query, hits) for each, hits in zip(asked, lexical, strict=True)
    ]
    floors, degraded = [0.0] * len(asked), ""
    try:
        nearest = near()
        if semantic := services.semantic:
            floors = [semantic.floor(text) if text else 0.0 for text in texts]
    except SemanticUnavailable as error:
        nearest, degraded = [None] * len(asked), error.detail
    if not degraded and any(texts) and None in nearest:
        degraded = services.no_semantic
    return [
        Candidates(each.query, {hit.ref: hit for hit in hits}, coverage, cosines, degraded, floor)
        for each, hits, coverage, cosines, floor in zip(
            asked, lexical, coverages, nearest, floors, strict=True
        )
    ]


def _ranked(services: Services, request: SearchRequest, found: Sequence[Candidates]) -> Ranking:
    """The candidates fused, as far as there is semantic search, and summed over all wordings."""
    matching = _matching(services, request, found)
    times = {ref: hit.created_at_epoch for each in found for ref, hit in each.lexical.items()}
    times |= services.store.times(
        {ref for each in found for ref in each.nearest or () if ref not in times}
    )
    fused = [_fused(services, each, matching, times) for each in found]
    hits = _hits(fused[0], times) if len(fused) == 1 else _summed_hits(fused, times)
    is_hybrid = any(each.nearest is not None for each in found)
    if is_hybrid:
        origins = services.store.origins(hit.ref for hit in hits)
        lifted = lift_companions({hit.ref: hit.relevance for hit in hits}, origins)
        hits = [replace(hit, relevance=lifted[hit.ref]) for hit in hits]
    named = {ref for each in found for ref, hit in each.lexical.items() if hit.named}
    hits = [replace(hit, named=True) if hit.ref in named else hit for hit in hits]
    lag = services.semantic.missing() if services.semantic and is_hybrid else ""
    titles = services.store.titles(hit.ref for hit in hits)
    if not asks_for_chores(request.query):
        hits = _chores_behind(hits, titles)
    return Ranking(
        _ordered(services, hits, request),
        "hybrid" if is_hybrid else "fulltext",
        frozenset(ref for each in fused for ref in each if ref not in matching),
        next((each.degraded for each in found if each.degraded), lag),
        titles,
    )


def _matching(services: Services, request: SearchRequest, found: Sequence[Candidates]) -> set[Ref]:
    """The candidates that match in full text, by any of the wordings."""
    known = {ref for each in found for ref in each.lexical}
    near = {ref for each in found for ref in each.nearest or ()} - known
    return known | {
        Ref(kind, id)
        for kind in request.kinds
        if (ids := sorted(ref.id for ref in near if ref.kind is kind))
        for id in services.store.matches_among(kind, request.query, request.selection, ids)
    }


def _ordered(services: Services, hits: Iterable[Hit], request: SearchRequest) -> list[Hit]:
    """Best first, then newest first; of equally good ones, those from the future come last."""
    latest = services.latest

    def place(hit: Hit) -> tuple[float, bool, int, Ref]:
        moment = hit.created_at_epoch
        return -hit.relevance, moment > latest, -moment, hit.ref

    best_first = sorted(hits, key=place)
    start = request.window_start
    if start is None:
        return sorted(best_first, key=lambda hit: not hit.named)
    named = [replace(h, older=h.created_at_epoch < start) for h in best_first if h.named]
    return named + boost_recent((hit for hit in best_first if not hit.named), start, latest)


def _chores_behind(hits: Iterable[Hit], titles: Mapping[Ref, Title]) -> list[Hit]:
    """The hits with the chores among them less relevant; a prompt asks, so it is none."""
    told = {ref: title for ref, title in titles.items() if ref.kind is not Kind.PROMPT}
    return put_behind(hits, told)


def _lexical(
    services: Services, request: SearchRequest, kind: Kind, has_recent: Callable[[Kind], bool]
) -> list[Hit]:
    """The best matches, overall and inside the window: old ones must not crowd out recent ones."""
    store, query = services.store, request.query
    best = store.rank(kind, query, request.selection, DEPTH)
    if request.window_start is None or len(best) < DEPTH or not has_recent(kind):
        return best
    inside = _window(services, request, request.window_start)
    return best + store.rank(kind, query, inside, DEPTH)


def _has_recent(services: Services, request: SearchRequest, kind: Kind) -> bool:
    """Whether anything since the start of the window matches, by any wording."""
    since = replace(request.selection, since=request.window_start)
    return services.store.count_matches(kind, request.query, since) > 0


def _nearest(services: Services, asked: Sequence[SearchRequest]) -> Sequence[Cosines | None]:
    """The cosines of the records most similar to each wording; None if semantic search does not
    apply.
    """
    texts = [_plain_text(each) for each in asked]
    if services.semantic is None or not all(texts):
        return [None] * len(asked)
    found: list[dict[Ref, float]] = [{} for _ in asked]
    for kind in asked[0].kinds:
        for selection in _selections(services, asked[0]):
            near = services.semantic.nearest_each(kind, texts, DEPTH, selection)
            for cosines, each in zip(found, near, strict=True):
                cosines.update((Ref(kind, id), cosine) for id, cosine in each)
    return found


def _compared(
    services: Services, request: SearchRequest, kind: Kind, ids: Sequence[int]
) -> Sequence[Cosines | None]:
    text = _plain_text(request)
    if services.semantic is None or not text:
        return [None]
    return [{Ref(kind, id): near for id, near in services.semantic.compare(kind, text, ids)}]


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
    services: Services, found: Candidates, matching: set[Ref], times: Mapping[Ref, int]
) -> dict[Ref, Fused]:
    """The candidates of one wording that exist, fused if there is semantic search."""
    if found.nearest is None:
        return {ref: Fused(hit.relevance, 0.0) for ref, hit in found.lexical.items()}
    named = {ref: Fused(hit.relevance, 0.0) for ref, hit in found.lexical.items() if hit.named}
    lexical = {ref: hit.relevance for ref, hit in found.lexical.items() if ref not in named}
    nearest = {ref: cosine for ref, cosine in found.nearest.items() if ref not in named}
    added = _added(found, nearest, lexical, matching)
    cosines = {ref: cosine for ref, cosine in nearest.items() if ref in lexical or ref in added}
    fused = fuse(lexical, cosines, found.coverage, _length(found.query))
    fused = estimate_unknown(fused, _unknown(services, lexical))
    return named | {ref: parts for ref, parts in fused.items() if ref in times}


def _unknown(services: Services, refs: Collection[Ref]) -> set[Ref]:
    """Those of these records whose meaning is not known yet."""
    semantic = services.semantic
    if semantic is None:
        return set()
    ids = {kind: [ref.id for ref in refs if ref.kind is kind] for kind in Kind}
    return {Ref(kind, id) for kind in ids for id in semantic.unknown_among(kind, ids[kind])}


def _hits(fused: Mapping[Ref, Fused], times: Mapping[Ref, int]) -> list[Hit]:
    return [
        Hit(ref, times[ref], parts.relevance, semantic_share=_semantic_share(parts))
        for ref, parts in fused.items()
    ]


def _summed_hits(fused: Sequence[Mapping[Ref, Fused]], times: Mapping[Ref, int]) -> list[Hit]:
    """The candidates of several wordings, each with the share of each wording."""
    relevances = [{ref: parts.relevance for ref, parts in each.items()} for each in fused]
    semantic = [{ref: _semantic_share(parts) for ref, parts in each.items()} for each in fused]
    return [
        _summed_hit(ref, times[ref], parts, [each.get(ref, 0.0) for each in semantic])
        for ref, parts in combine(relevances).items()
    ]


def _summed_hit(ref: Ref, moment: int, parts: Sequence[float], semantic: Sequence[float]) -> Hit:
    relevance = sum(parts)
    shares = tuple([part / (relevance or 1.0) for part in parts])
    return Hit(
        *(ref, moment, relevance),
        semantic_share=sum(map(mul, shares, semantic)),
        shares=shares,
    )


def _semantic_share(parts: Fused) -> float:
    return parts.semantic / parts.relevance if parts.semantic else 0.0


def _added(
    found: Candidates,
    nearest: Mapping[Ref, float],
    lexical: Mapping[Ref, float],
    matching: set[Ref],
) -> set[Ref]:
    """The similar records that full text did not rank.

    Those that do not match at all count only if they are similar enough, and never if the query
    requires or excludes words.
    """
    strict = bool(found.query.required or found.query.excludes)
    return {
        ref
        for ref, cosine in nearest.items()
        if ref not in lexical and (ref in matching or (cosine >= found.floor and not strict))
    }


def _coverage(services: Services, query: Query, hits: Iterable[Hit]) -> float:
    """The share of the query's words that the best full-text match contains; 0 without a match."""
    matches = (hit for hit in hits if not hit.named)
    best = max(matches, key=lambda hit: hit.relevance, default=None)
    return services.store.coverage(query, best.ref) if best else 0.0


def _length(query: Query) -> int:
    """The characters of the words and phrases of a query, with one space between them."""
    return len(" ".join(term.text for term in (*query.words, *query.required)))
