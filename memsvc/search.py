"""Finding memories: by their text, by what they are, or both."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memsvc.dates import DAY_MS, HOUR_MS, parse_date
from memsvc.errors import BadRequest
from memsvc.model import Filter, Hit, Kind
from memsvc.page import Page, Row
from memsvc.parameters import DEFAULT_DAYS
from memsvc.paths import normal_path
from memsvc.query import MAX_TERMS, Query, parse
from memsvc.rows import full_row, index_row
from memsvc.services import Services
from memsvc.snippets import stems_of
from memsvc.window import weigh

DEPTH = 100
"""Candidates ranked for a kind, whatever page is asked for: pages never repeat a record."""

FIELDS = {
    "type": "type",
    "concept": "concept",
    "concepts": "concept",
    "files": "file",
    "filePath": "file",
    "project": "project",
}
"""Which field of a filter each parameter selects by."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search, read from its parameters. `bound` is where the default window starts (ms)."""

    kinds: tuple[Kind, ...]
    query: Query
    text: str
    selection: Filter
    order: str
    bound: int | None
    days: int | str | None


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
        notes = _notes(services, search, found.total)
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


def read_search(
    services: Services, given: Mapping[str, Any], kinds: Sequence[Kind], *, windowed: bool = False
) -> Search:
    """The search that parameters describe. Raises BadRequest when dates contradict each other."""
    text = given.get("query") or ""
    query = parse(text)
    days = given.get("days")
    since, until = _date_range(services, given)
    has_range = since is not None or until is not None
    now = _full_hour(services.clock())
    if isinstance(days, int):
        since = max(since or 0, now - days * DAY_MS)
    soft = windowed and days is None and not has_range
    default = "relevance" if text else "date_desc"
    return Search(
        kinds=tuple(kinds),
        query=query,
        text=text,
        selection=Filter(_groups(given, query), since, until),
        order=given.get("orderBy") or default,
        bound=now - DEFAULT_DAYS * DAY_MS if soft else None,
        days=days if days is not None or has_range or not windowed else DEFAULT_DAYS,
    )


def _full_hour(now: int) -> int:
    """Bounds in days fall on full hours: within one, the same question has the same answer."""
    return now // HOUR_MS * HOUR_MS


def _date_range(services: Services, given: Mapping[str, Any]) -> tuple[int | None, int | None]:
    now = services.clock()
    start, end = given.get("dateStart"), given.get("dateEnd")
    since = parse_date(start, now) if start else None
    until = parse_date(end, now, end=True) if end else None
    if since is not None and until is not None and since > until:
        message = f"given {start!r}, which is after dateEnd {end!r}; give the earlier date first"
        raise BadRequest(f"dateStart {message}", {"dateStart": [message]})
    return since, until


def _groups(given: Mapping[str, Any], query: Query) -> tuple[tuple[str, tuple[str, ...]], ...]:
    asked = [(field, tuple(given[name])) for name, field in FIELDS.items() if given.get(name)]
    typed = [
        ("type", query.types),
        ("concept", query.concepts),
        ("file", query.files),
        ("project", query.projects),
    ]
    return tuple(dict.fromkeys(asked + [group for group in typed if group[1]]))


@dataclass(frozen=True, slots=True)
class Found:
    """One page of hits, how many there are in all, and how they were found."""

    hits: list[Hit]
    total: int
    strategy: str
    window: dict[str, Any] | None = None


def _found(services: Services, search: Search, offset: int, limit: int) -> Found:
    if not search.query.searchable and not search.query.only_excludes and not _wordless(search):
        return _listed(services, search, offset, limit)
    total = _matches(services, search, search.selection)
    if search.order == "relevance":
        hits = _ranked(services, search, offset, limit)
        strategy = "fulltext"
    else:
        hits = _by_time(services, search, offset, limit)
        strategy = "temporal"
    return Found(hits, total, strategy, _window(services, search, total))


def _wordless(search: Search) -> bool:
    """Whether a text was given that holds neither a word to look for nor a filter."""
    query = search.query
    filters = query.types or query.concepts or query.files or query.projects
    return bool(search.text) and not filters


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


def _ranked(services: Services, search: Search, offset: int, limit: int) -> list[Hit]:
    """One page in the order of relevance: the ranked candidates, then all other matches."""
    candidates = rank_candidates(services, search)
    page = candidates[offset : offset + limit]
    missing = limit - len(page)
    if not missing:
        return page
    lowest = candidates[-1] if candidates else None
    rest = _rest(services, search, candidates, missing, max(0, offset - len(candidates)))
    return page + [_below(hit, lowest, search.bound) for hit in rest]


def rank_candidates(services: Services, search: Search) -> list[Hit]:
    """The candidates of every kind, best first: a fixed number, whatever page is asked for."""
    hits = {
        hit.ref: hit for kind in search.kinds for hit in _kind_candidates(services, search, kind)
    }
    best_first = sorted(
        hits.values(), key=lambda hit: (-hit.relevance, -hit.created_at_epoch, hit.ref)
    )
    return best_first if search.bound is None else weigh(best_first, search.bound)


def _kind_candidates(services: Services, search: Search, kind: Kind) -> list[Hit]:
    """The best of all, and the best inside the window: an old match must not hide a recent one."""
    store, query = services.store, search.query
    best = store.rank(kind, query, search.selection, DEPTH)
    if search.bound is None or len(best) < DEPTH:
        return best
    inside = replace(search.selection, since=search.bound)
    if not store.count_matches(kind, query, inside):
        return best
    return best + store.rank(kind, query, inside, DEPTH)


def _rest(
    services: Services, search: Search, candidates: Sequence[Hit], limit: int, offset: int
) -> list[Hit]:
    found: list[Hit] = []
    for kind in search.kinds:
        without = [hit.ref.id for hit in candidates if hit.ref.kind is kind]
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
    """Which bound applied, and how many matches lie before it."""
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
    lexical = round(score - recency, 4)
    terms = services.store.matched_terms(hit.ref, query)
    where = "; ".join(f"{term} in {', '.join(fields)}" for term, fields in terms.items())
    return {
        "line": f"{where or 'no words'} | full text {lexical} + recency {recency} = {score}",
        "terms": terms,
        "lexical": lexical,
        "semantic": 0.0,
        "recency": recency,
    }


def _notes(services: Services, search: Search, total: int) -> dict[str, Any]:
    notes: dict[str, Any] = {}
    if search.query.ignored:
        notes["notice"] = (
            f"The first {MAX_TERMS} different terms were searched, {search.query.ignored} ignored."
        )
    if total:
        return notes
    if nearest := _nearest_values(services, search):
        notes["nearest"] = nearest
    elif search.query.searchable:
        notes["did_you_mean"] = list(
            dict.fromkeys(
                word for kind in search.kinds for word in services.store.suggest(kind, search.query)
            )
        )
    elif search.text and _wordless(search):
        notes["notice"] = "The query holds no letter or digit to search for."
    return notes


def _nearest_values(services: Services, search: Search) -> dict[str, list[str]]:
    """For each filter value that no record carries, the nearest values in use."""
    nearest: dict[str, list[str]] = {}
    for field, values in search.selection.groups:
        in_use = [
            name for kind in search.kinds for name in services.store.count_values(kind, field)
        ]
        for value in values:
            if "*" not in value and (near := nearest_names(field, value, in_use)):
                nearest.setdefault(field, []).extend(near)
    return nearest


def nearest_names(field: str, value: str, in_use: Iterable[str]) -> list[str]:
    """The names most like one that is not in use; empty if it is."""
    if field == "file":
        return _nearest_paths(normal_path(value), in_use)
    known = {name.casefold(): name for name in in_use}
    if value.casefold() in known:
        return []
    near = difflib.get_close_matches(value.casefold(), known, n=3, cutoff=0.5)
    return [known[name] for name in near] or list(known.values())[:5]


def _nearest_paths(path: str, in_use: Iterable[str]) -> list[str]:
    """Paths whose last part is like that of a path no record names."""
    wanted = path.casefold().rsplit("/", 1)[-1]
    by_name: dict[str, str] = {}
    for known in in_use:
        name = known.casefold().rsplit("/", 1)[-1]
        if abs(len(name) - len(wanted)) <= 3 and name[:1] == wanted[:1]:
            by_name.setdefault(name, known)
    near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.7)
    return [by_name[name] for name in near if by_name[name] != path]
