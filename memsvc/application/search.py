"""Finding memories: by their text and meaning, by what they are, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memsvc.answers.page import Page, Row
from memsvc.answers.rows import full_row, index_row
from memsvc.answers.snippets import stems_of
from memsvc.application.ranking import Ranking, rank_candidates
from memsvc.application.requests import Search, read_search
from memsvc.application.services import Services
from memsvc.application.suggestions import suggest
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Hit
from memsvc.core.query import Query
from memsvc.core.records import Kind


def run_search(
    services: Services,
    given: Mapping[str, Any],
    kinds: Sequence[Kind],
    *,
    echo: str = "query",
    windowed: bool = False,
    grouped: bool = False,
) -> Page:
    """One page of what the parameters ask for. `windowed` puts recent matches before older ones."""
    search = read_search(services, given, kinds, windowed=windowed)
    offset, limit = given["offset"], given["limit"]
    with services.store.snapshot():
        found = _found(services, search, offset, limit)
        rows = make_rows(
            services, found.hits, given["format"], search.query, explain=given["explain"] == "1"
        )
        notes = suggest(services, search, found.total - found.added) | found.notes
    return Page(
        echo=_echo(given, echo),
        rows=rows,
        total=found.total,
        offset=offset,
        limit=limit,
        format=given["format"],
        strategy=found.strategy,
        window=found.window,
        notes=notes,
        grouped=tuple(map(str, kinds)) if grouped else (),
    )


def _echo(given: Mapping[str, Any], name: str) -> dict[str, str]:
    """What was asked, repeated: the operation's own parameter and the query."""
    asked = {key: given[key] for key in (name, "query") if given.get(key)}
    return {key: ",".join(v) if isinstance(v, list) else v for key, v in asked.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """One page of hits, how many there are in all, and how they were found.

    `added` of them hold no word of the query: they were found by meaning alone.
    """

    hits: list[Hit]
    total: int
    strategy: str
    window: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    added: int = 0


def _found(services: Services, search: Search, offset: int, limit: int) -> Found:
    if not (search.query.searchable or search.query.only_excludes or search.wordless):
        return _listed(services, search, offset, limit)
    if search.order == "relevance":
        return _ranked(services, search, offset, limit)
    total = _matches(services, search, search.selection)
    hits = _by_time(services, search, offset, limit)
    return Found(hits, total, "temporal", _window(services, search, total))


def _listed(services: Services, search: Search, offset: int, limit: int) -> Found:
    hits = services.store.page(
        search.kinds,
        search.selection,
        newest_first=search.order != "date_asc",
        limit=limit,
        offset=offset,
    )
    total = sum(services.store.count(kind, search.selection) for kind in search.kinds)
    return Found(hits, total, "filter")


def _ranked(services: Services, search: Search, offset: int, limit: int) -> Found:
    """One page in the order of relevance: the ranked candidates, then all other matches."""
    ranking = rank_candidates(services, search)
    page = ranking.hits[offset : offset + limit]
    if missing := limit - len(page):
        lowest = ranking.hits[-1] if ranking.hits else None
        rest = _rest(services, search, ranking, missing, max(0, offset - len(ranking.hits)))
        page += [_below(hit, lowest, search.bound) for hit in rest]
    total = _matches(services, search, search.selection)
    window = _window(services, search, total)
    if window and search.bound is not None:
        window["older_matches"] += sum(h.older for h in ranking.hits if h.ref in ranking.added)
    added = len(ranking.added)
    return Found(page, total + added, ranking.strategy, window, ranking.notes, added)


def _rest(
    services: Services, search: Search, ranking: Ranking, limit: int, offset: int
) -> list[Hit]:
    """The full-text matches beyond the candidates, kind after kind."""
    matching = [hit.ref for hit in ranking.hits if hit.ref not in ranking.added]
    found: list[Hit] = []
    for kind in search.kinds:
        without = [ref.id for ref in matching if ref.kind is kind]
        hits = services.store.rest(
            kind,
            search.query,
            search.selection,
            without=without,
            limit=limit - len(found),
            offset=offset,
        )
        found += hits
        if len(found) >= limit:
            break
        total = services.store.count_matches(kind, search.query, search.selection)
        offset = max(0, offset - (total - len(without))) if not hits else 0
    return found


def _below(hit: Hit, lowest: Hit | None, bound: int | None) -> Hit:
    """A match beyond the candidates: never above the last of them."""
    top = lowest.score if lowest else 1.0
    older = bound is not None and hit.created_at_epoch < bound
    return replace(hit, relevance=min(hit.relevance, top), recency=0.0, older=older)


def _by_time(services: Services, search: Search, offset: int, limit: int) -> list[Hit]:
    newest_first = search.order == "date_desc"
    hits = [
        hit
        for kind in search.kinds
        for hit in services.store.matches_by_time(
            kind, search.query, search.selection, newest_first=newest_first, limit=offset + limit
        )
    ]
    hits.sort(
        key=lambda hit: (hit.created_at_epoch, hit.ref.id, hit.ref.kind), reverse=newest_first
    )
    return hits[offset : offset + limit]


def _window(services: Services, search: Search, total: int) -> dict[str, Any] | None:
    """Which bound applied, and how many of the full-text matches lie before it."""
    if search.days is None:
        return None
    if search.days == "all":
        return {"days": "all", "older_matches": 0}
    if search.bound is not None:
        inside = replace(search.selection, since=search.bound)
        return {"days": search.days, "older_matches": total - _matches(services, search, inside)}
    unbound = replace(search.selection, since=None)
    return {"days": search.days, "older_matches": _matches(services, search, unbound) - total}


def _matches(services: Services, search: Search, selection: Filter) -> int:
    return sum(services.store.count_matches(kind, search.query, selection) for kind in search.kinds)


def make_rows(
    services: Services,
    hits: Sequence[Hit],
    form: str,
    query: Query | None = None,
    *,
    explain: bool = False,
) -> tuple[Row, ...]:
    """The rows of these hits, in their order, read from the store in one go."""
    records = services.store.records(hit.ref for hit in hits)
    stems = stems_of(term.text for term in (*query.words, *query.required)) if query else ()
    rows = []
    for hit in hits:
        record = records[hit.ref]
        row = full_row(hit, record) if form == "full" else index_row(hit, record, stems)
        if explain and query is not None and hit.score:
            row["explain"] = explain_hit(services, hit, query)
        rows.append(row)
    return tuple(rows)


def explain_hit(services: Services, hit: Hit, query: Query) -> dict[str, Any]:
    """Why a hit stands where it stands; the parts add up to its score."""
    score, recency = round(hit.score, 4), round(hit.recency, 4)
    semantic = round(hit.relevance * hit.meaning, 4)
    lexical = round(score - recency - semantic, 4)
    terms = services.store.matched_terms(hit.ref, query)
    where = "; ".join(f"{term} in {', '.join(fields)}" for term, fields in terms.items())
    return {
        "line": f"{where or 'no words'} | full text {lexical} + meaning {semantic} "
        f"+ recency {recency} = {score}",
        "terms": terms,
        "lexical": lexical,
        "semantic": semantic,
        "recency": recency,
    }
