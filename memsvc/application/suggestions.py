"""Notes on a query that was truncated or found nothing, and on records left out as future."""

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from memsvc.application.requests import MAX_EXPLAINED, SearchRequest
from memsvc.application.services import Services
from memsvc.core.dates import utc_text
from memsvc.core.filters import FIELDS, Filter
from memsvc.core.limits import deadline
from memsvc.core.paths import normal_path
from memsvc.core.query import MAX_PREFIXES, MAX_TERMS, MIN_PREFIX, Query
from memsvc.core.records import Kind

MAX_COMPARED: Final = 5
"""Values per filter that are compared with all values in use."""

MAX_TOLD: Final = 80
"""Characters of a query that a notice repeats."""


def suggest(services: Services, request: SearchRequest, total: int) -> dict[str, Any]:
    """Notes for the answer: ignored terms, similar values in use, similar words."""
    notes: dict[str, Any] = {}
    if told := _limits_met(request, total):
        notes["notice"] = " ".join(told)
    if total:
        return notes
    if nearest := _nearest_values(services, request):
        notes["nearest"] = nearest
    elif request.query.searchable:
        notes["did_you_mean"] = list(
            dict.fromkeys(
                word
                for kind in request.kinds
                for word in services.store.suggest(kind, request.query)
            )
        )
    elif request.text and not (request.query.only_excludes or request.query.filters):
        notes["notice"] = (
            "The query has no letter or digit to search for; use words, or leave it out and give "
            "a filter."
        )
    return notes


def _limits_met(request: SearchRequest, total: int) -> list[str]:
    """What of a request was not done as it was asked."""
    query, told = request.query, []
    if request.explain and min(total, request.limit) > MAX_EXPLAINED:
        told.append(f"Only the first {MAX_EXPLAINED} rows of a page are explained.")
    ignored, whole = _left_out(query.wordings)
    if ignored:
        told.append(
            f"Only the first {MAX_TERMS} distinct terms were searched; {ignored} were ignored."
        )
    if whole:
        told.append(
            f"Searched as whole words: {', '.join(whole)[:MAX_TOLD]} (a prefix needs "
            f"{MIN_PREFIX} letters or digits, and a query may have {MAX_PREFIXES} of them)."
        )
    return told


def _left_out(wordings: Iterable[Query]) -> tuple[int, list[str]]:
    """How many terms were ignored, and which prefixes were searched as whole words."""
    each = list(wordings)
    return sum(query.ignored for query in each), [word for query in each for word in query.whole]


def _nearest_values(services: Services, request: SearchRequest) -> dict[str, list[str]]:
    """Similar values in use, for the first filter values that no record has."""
    nearest: dict[str, list[str]] = {}
    for field, values in request.selection.groups:
        in_use = [
            name for kind in request.kinds for name in services.store.count_values(kind, field)
        ]
        for value in values[:MAX_COMPARED]:
            deadline.check()
            if "*" not in value and (near := nearest_names(field, value, in_use)):
                nearest.setdefault(field, []).extend(near)
    return nearest


def nearest_names(field: str, value: str, in_use: Iterable[str]) -> list[str]:
    """The names most similar to one that is not in use; empty if it is in use."""
    if FIELDS[field].is_path:
        return _nearest_paths(normal_path(value), in_use)
    known = {name.casefold(): name for name in in_use}
    if value.casefold() in known:
        return []
    near = difflib.get_close_matches(value.casefold(), known, n=3, cutoff=0.5)
    return [known[name] for name in near] or list(known.values())[:5]


def _nearest_paths(path: str, in_use: Iterable[str]) -> list[str]:
    """Paths whose file name is similar to that of a path that no record names."""
    wanted = path.casefold().rsplit("/", 1)[-1]
    by_name: dict[str, str] = {}
    for known in in_use:
        name = known.casefold().rsplit("/", 1)[-1]
        if abs(len(name) - len(wanted)) <= 3 and name[:1] == wanted[:1]:
            by_name.setdefault(name, known)
    near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.7)
    return [by_name[name] for name in near if by_name[name] != path]


def future_note(services: Services, kinds: Iterable[Kind], selection: Filter) -> dict[str, str]:
    """A note on the records that a filter up to now leaves out as future; none for another."""
    later = from_future(services, selection) if selection.until == services.latest else None
    count = sum(services.store.count(kind, later) for kind in kinds) if later else 0
    if not count:
        return {}
    when = utc_text(services.latest)
    records = "1 record is" if count == 1 else f"{count} records are"
    return {"future": f"{records} dated after {when} and left out; dateStart={when} finds them."}


def from_future(services: Services, selection: Filter) -> Filter | None:
    """The same filter for the future alone; None if the store has nothing from there."""
    since = services.latest + 1
    if not any(services.store.count(kind, Filter(since=since)) for kind in Kind):
        return None
    return replace(selection, since=since, until=None)
