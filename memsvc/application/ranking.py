"""The candidates of a search, best first: by words, by meaning, by being recent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memsvc.application.requests import Search
from memsvc.application.services import Services
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.fusion import Fused, fuse
from memsvc.core.ports.store import Hit
from memsvc.core.query import Query, meaning
from memsvc.core.recency import weigh
from memsvc.core.records import Kind, Ref

DEPTH: Final = 100
"""Candidates of each side for a kind, whatever page is asked for: pages never repeat a record."""

MEANT: Final = 0.3
"""The cosine from which a record without any word of the query counts as a match."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, best first, and how they were found.

    `added` are those that hold none of the query's words; `degraded` says what the ranking lacks.
    """

    hits: list[Hit]
    strategy: str = "fulltext"
    added: frozenset[Ref] = frozenset()
    degraded: str = ""

    @property
    def notes(self) -> dict[str, str]:
        """What an answer says of this ranking besides its strategy."""
        return {"degraded": self.degraded} if self.degraded else {}


def rank_candidates(services: Services, search: Search) -> Ranking:
    """The candidates of every kind: a fixed number, whatever page is asked for."""
    if services.semantic and (text := _meant(search)):
        services.semantic.prepare(text)  # it reads while full text is searched
    lexical = [hit for kind in search.kinds for hit in _lexical(services, search, kind)]
    return _ranked(services, search, lexical, lambda: _nearest(services, search))


def rank_few(services: Services, search: Search, kind: Kind, ids: Sequence[int]) -> Ranking:
    """Those of a few records that match, best first."""
    lexical = services.store.rank_among(kind, search.query, ids)
    return _ranked(services, search, lexical, lambda: _compared(services, search, kind, ids))


def _ranked(
    services: Services,
    search: Search,
    hits: Iterable[Hit],
    near: Callable[[], dict[Ref, float] | None],
) -> Ranking:
    """Full text joined with meaning, or full text alone with the reason."""
    lexical = {hit.ref: hit for hit in hits}
    try:
        nearest = near()
    except SemanticUnavailable as error:
        return Ranking(_in_order(lexical.values(), search), degraded=error.detail)
    if nearest is None:
        return Ranking(_in_order(lexical.values(), search))
    return _fused(services, search, lexical, nearest)


def _in_order(hits: Iterable[Hit], search: Search) -> list[Hit]:
    best_first = sorted(hits, key=lambda hit: (-hit.relevance, -hit.created_at_epoch, hit.ref))
    return best_first if search.bound is None else weigh(best_first, search.bound)


def _lexical(services: Services, search: Search, kind: Kind) -> list[Hit]:
    """The best of all, and the best inside the window: an old match must not hide a recent one."""
    store, query = services.store, search.query
    best = store.rank(kind, query, search.selection, DEPTH)
    if search.bound is None or len(best) < DEPTH:
        return best
    inside = replace(search.selection, since=search.bound)
    if not store.count_matches(kind, query, inside):
        return best
    return best + store.rank(kind, query, inside, DEPTH)


def _nearest(services: Services, search: Search) -> dict[Ref, float] | None:
    """The cosines of the records nearest in meaning; None where meaning has no say."""
    text = _meant(search)
    if services.semantic is None or not text:
        return None
    return {
        Ref(kind, id): cosine
        for kind in search.kinds
        for selection in _selections(search)
        for id, cosine in services.semantic.nearest(kind, text, DEPTH, selection)
    }


def _compared(
    services: Services, search: Search, kind: Kind, ids: Sequence[int]
) -> dict[Ref, float] | None:
    text = _meant(search)
    if services.semantic is None or not text:
        return None
    return {Ref(kind, id): near for id, near in services.semantic.compare(kind, text, ids)}


def _meant(search: Search) -> str:
    """What the query means; empty where it only filters and excludes."""
    return meaning(search.text) if search.query.searchable else ""


def _selections(search: Search) -> list[Filter]:
    """All that is asked for, and what of it lies inside the window."""
    if search.bound is None:
        return [search.selection]
    return [search.selection, replace(search.selection, since=search.bound)]


def _fused(
    services: Services, search: Search, lexical: Mapping[Ref, Hit], nearest: Mapping[Ref, float]
) -> Ranking:
    added = _added(services, search, lexical, nearest)
    cosines = {ref: cosine for ref, cosine in nearest.items() if ref in lexical or ref in added}
    fused = fuse(
        {ref: hit.relevance for ref, hit in lexical.items()},
        cosines,
        _coverage(services, search.query, lexical.values()),
    )
    moments = {ref: hit.created_at_epoch for ref, hit in lexical.items()}
    moments |= services.store.moments(set(fused) - set(moments))
    hits = [_hit(ref, moments[ref], parts) for ref, parts in fused.items() if ref in moments]
    lag = services.semantic.missing() if services.semantic else ""
    unmatched = frozenset(ref for ref in moments if not added.get(ref, True))
    return Ranking(_in_order(hits, search), "hybrid", unmatched, lag)


def _hit(ref: Ref, moment: int, parts: Fused) -> Hit:
    share = parts.semantic / parts.relevance if parts.relevance else 0.0
    return Hit(ref, moment, parts.relevance, meaning=share)


def _added(
    services: Services, search: Search, lexical: Mapping[Ref, Hit], nearest: Mapping[Ref, float]
) -> dict[Ref, bool]:
    """The near records that full text did not rank: whether each matches in full text at all.

    Of those that do not match, only the near ones count, and none where words must, or must not,
    stand as such.
    """
    strict = bool(search.query.required or search.query.excluded or search.query.excluded_tags)
    found: dict[Ref, bool] = {}
    for kind in search.kinds:
        ids = [ref.id for ref in nearest if ref.kind is kind and ref not in lexical]
        matching = services.store.matches_among(kind, search.query, search.selection, ids)
        for ref in (Ref(kind, id) for id in ids):
            if ref.id in matching or (nearest[ref] >= MEANT and not strict):
                found[ref] = ref.id in matching
    return found


def _coverage(services: Services, query: Query, hits: Iterable[Hit]) -> float:
    """How much of the query the best full-text match holds; nothing if there is none."""
    best = max(hits, key=lambda hit: hit.relevance, default=None)
    return services.store.coverage(query, best.ref) if best else 0.0
