"""Searches records by text, by filter, or by both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memsvc.answers.page import Page, Row
from memsvc.answers.rows import make_rows
from memsvc.answers.snippets import stems_of
from memsvc.application.ranking import Ranking, rank_candidates
from memsvc.application.requests import MAX_EXPLAINED, SearchRequest
from memsvc.application.services import Services
from memsvc.application.suggestions import from_future, future_note, suggest
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Hit, Terms
from memsvc.core.ranking.twins import fold
from memsvc.core.records import Kind, Ref


def run_search(services: Services, request: SearchRequest) -> Page:
    """One page of results."""
    with services.store.snapshot():
        found = _found(services, request)
        rows = found_rows(services, request, found.hits)
        _name_twins(rows, found)
        notes = suggest(services, request, found.total - found.added) | found.notes
    return Page(
        echo=dict(request.echo),
        rows=rows,
        total=found.total,
        offset=request.offset,
        limit=request.limit,
        format=request.format,
        strategy=found.strategy,
        window=found.window,
        notes=notes,
        grouped=tuple(map(str, request.kinds)) if request.grouped else (),
        folded=found.folded,
    )


def _name_twins(rows: Sequence[Row], found: "Results") -> None:
    """Let each row name the matches that it also stands for."""
    twins = {str(ref): others for ref, others in found.twins.items() if others}
    for row in rows:
        if others := twins.get(row["ref"]):
            row["twins"] = [str(ref) for ref in others]


def found_rows(services: Services, request: SearchRequest, hits: Sequence[Hit]) -> tuple[Row, ...]:
    """The rows of these hits, in order, with snippets for the query."""
    terms = [t for each in request.query.wordings for t in (*each.words, *each.required)]
    stems = stems_of(term.text for term in terms) if terms else ()
    records = services.store.records(hit.ref for hit in hits)
    rows = make_rows(hits, records, request.format, stems)
    if request.explain:
        shown = [hit for hit in hits if hit.ref in records]
        explained = [hit for hit in shown if hit.relevance or hit.recency][:MAX_EXPLAINED]
        terms_of = _matched_terms(services, request, explained)
        for row, hit in zip(rows, shown, strict=True):
            if hit.ref in terms_of:
                names = [each.name for each in request.wordings]
                row["explain"] = explain_hit(hit, terms_of[hit.ref], names)
    return rows


def _matched_terms(
    services: Services, request: SearchRequest, hits: Sequence[Hit]
) -> dict[Ref, Terms]:
    """The terms of the query that each of these hits has."""
    return {
        Ref(kind, id): terms
        for kind in Kind
        if (ids := [hit.ref.id for hit in hits if hit.ref.kind is kind])
        for id, terms in services.store.matched_terms(kind, ids, request.query).items()
    }


@dataclass(frozen=True, slots=True)
class Results:
    """One page of hits, the number of all matches, and how they were found.

    `added` counts the matches without a word of the query: only semantic search found them.
    `twins` has the matches that share the row of another, on whatever page that stands.
    """

    hits: list[Hit]
    total: int
    strategy: str
    window: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    added: int = 0
    twins: Mapping[Ref, Sequence[Ref]] = field(default_factory=dict)

    @property
    def folded(self) -> int:
        """How many of the matches stand in the row of another."""
        return sum(map(len, self.twins.values()))


def _found(services: Services, request: SearchRequest) -> Results:
    query = request.query
    is_filter = query.filters or not request.text
    if is_filter and not (query.searchable or query.only_excludes):
        return _listed(services, request)
    if request.order == "relevance":
        return _ranked(services, request)
    total = _matches(services, request, request.selection)
    return Results(
        _by_time(services, request), total, "temporal", _window(services, request, total)
    )


def _listed(services: Services, request: SearchRequest) -> Results:
    hits = services.store.page(
        request.kinds,
        request.selection,
        newest_first=request.order != "date_asc",
        limit=request.limit,
        offset=request.offset,
    )
    total = sum(services.store.count(kind, request.selection) for kind in request.kinds)
    notes = future_note(services, request.kinds, request.selection)
    return Results(hits, total, "filter", notes=notes)


def _ranked(services: Services, request: SearchRequest) -> Results:
    """One page by relevance: first the ranked candidates, then all other matches."""
    ranking = rank_candidates(services, request)
    twins = _twins(services, ranking, request.format)
    kept = [hit for hit in ranking.hits if hit.ref in twins]
    page = kept[request.offset : request.offset + request.limit]
    if len(page) < request.limit:
        beyond = max(0, request.offset - len(kept))
        page += _remaining(services, request, ranking, request.limit - len(page), beyond)
    total = _matches(services, request, request.selection)
    window = _window(services, request, total)
    if window and request.window_start is not None:
        window["older_matches"] += sum(h.older for h in ranking.hits if h.ref in ranking.added)
    added = len(ranking.added)
    return Results(page, total + added, ranking.strategy, window, ranking.notes, added, twins)


def _twins(services: Services, ranking: Ranking, form: str) -> dict[Ref, tuple[Ref, ...]]:
    """The candidates that keep a row, each with its twins: the same on every page.

    Who asks for full records reads each of them, so that none is folded.
    """
    if form == "full":
        return dict.fromkeys((hit.ref for hit in ranking.hits), ())
    return fold(ranking.hits, ranking.titles, services.store.records)


def _remaining(
    services: Services, request: SearchRequest, ranking: Ranking, limit: int, offset: int
) -> list[Hit]:
    """Full-text matches beyond the candidates, kind by kind, scored at most like the last one."""
    lowest = ranking.hits[-1] if ranking.hits else None
    ceiling = lowest.relevance + lowest.recency if lowest else 1.0
    found: list[Hit] = []
    for kind in request.kinds:
        without = [
            hit.ref.id
            for hit in ranking.hits
            if hit.ref.kind is kind and hit.ref not in ranking.added
        ]
        hits = services.store.rest(
            kind,
            request.query,
            request.selection,
            without=without,
            limit=limit - len(found),
            offset=offset,
        )
        found += [_beyond_candidates(hit, ceiling, request.window_start) for hit in hits]
        if len(found) >= limit:
            break
        total = services.store.count_matches(kind, request.query, request.selection)
        offset = max(0, offset - (total - len(without))) if not hits else 0
    return found


def _beyond_candidates(hit: Hit, ceiling: float, bound: int | None) -> Hit:
    older = bound is not None and hit.created_at_epoch < bound
    return replace(hit, relevance=min(hit.relevance, ceiling), recency=0.0, older=older)


def _by_time(services: Services, request: SearchRequest) -> list[Hit]:
    newest_first = request.order == "date_desc"
    end = request.offset + request.limit
    hits = [
        hit
        for kind in request.kinds
        for hit in services.store.matches_by_time(
            kind, request.query, request.selection, newest_first=newest_first, limit=end
        )
    ]
    hits.sort(
        key=lambda hit: (hit.created_at_epoch, hit.ref.id, hit.ref.kind), reverse=newest_first
    )
    return hits[request.offset : end]


def _window(services: Services, request: SearchRequest, total: int) -> dict[str, Any] | None:
    """The window that applied, and how many full-text matches are older or from the future."""
    if request.days is None:
        return None
    if request.days == "all":
        return {"days": "all", "older_matches": 0}
    future = _future_matches(services, request)
    beyond = {"future_matches": future} if future else {}
    return {
        "days": request.days,
        "older_matches": _older_matches(services, request, total),
    } | beyond


def _older_matches(services: Services, request: SearchRequest, total: int) -> int:
    if request.window_start is not None:
        inside = replace(request.selection, since=request.window_start)
        return total - _matches(services, request, inside)
    unbound = replace(request.selection, since=None)
    return _matches(services, request, unbound) - total


def _future_matches(services: Services, request: SearchRequest) -> int:
    """How many matches are dated in the future, and so not recent; 0 if a date was asked for."""
    if request.window_start is None and request.selection.until != services.latest:
        return 0
    later = from_future(services, request.selection)
    return _matches(services, request, later) if later else 0


def _matches(services: Services, request: SearchRequest, selection: Filter) -> int:
    store, query = services.store, request.query
    return sum(store.count_matches(kind, query, selection) for kind in request.kinds)


def explain_hit(hit: Hit, terms: Terms, wordings: Sequence[str] = ()) -> dict[str, Any]:
    """Why a hit ranks where it does; the contributions add up to its score.

    If there are several `wordings`, it also says what each of them contributes, but for recency.
    """
    score, recency = round(hit.relevance + hit.recency, 4), round(hit.recency, 4)
    semantic = round(hit.relevance * hit.semantic_share, 4)
    lexical = round(score - recency - semantic, 4)
    where = "; ".join(f"{term} in {', '.join(fields)}" for term, fields in terms.items())
    found = {
        name: round(hit.relevance * share, 4)
        for name, share in zip(wordings, hit.shares, strict=False)
        if share
    }
    by = "; ".join(f"{name} {part}" for name, part in found.items())
    return {
        "line": f"{where or 'no words'} | full text {lexical} + semantic {semantic} "
        f"+ recency {recency} = {score}" + (f" | by {by}" if by else ""),
        "terms": terms,
        "lexical": lexical,
        "semantic": semantic,
        "recency": recency,
        **({"wordings": found} if found else {}),
    }
