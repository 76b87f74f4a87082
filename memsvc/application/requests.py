"""A search as its parameters describe it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsvc.application.services import Services
from memsvc.core.dates import DAY_MS, HOUR_MS, parse_date
from memsvc.core.errors import BadRequest
from memsvc.core.filters import Filter
from memsvc.core.query import Query, parse
from memsvc.core.records import Kind
from memsvc.schemas import parameters

FIELDS = {
    "type": "type",
    "concept": "concept",
    "concepts": "concept",
    "files": "file",
    "filePath": "file",
    "project": "project",
}
"""Which field of a filter each parameter selects by."""


FILTERS = (
    *parameters.types(),
    *parameters.concepts(),
    *parameters.files(),
    *parameters.project(),
    *parameters.dates(),
)
"""The parameters that select: without a query, one of them says what is asked for."""


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

    @property
    def wordless(self) -> bool:
        """Whether a text was given that holds neither a word to look for nor a filter."""
        query = self.query
        filters = query.types or query.concepts or query.files or query.projects
        said = query.searchable or query.only_excludes or filters
        return bool(self.text) and not said


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
        bound=now - parameters.DEFAULT_DAYS * DAY_MS if soft else None,
        days=days if days is not None or has_range or not windowed else parameters.DEFAULT_DAYS,
    )


def require_question(given: Mapping[str, Any]) -> None:
    """Raise BadRequest unless there is a query, a filter, or not every kind is asked for."""
    if given.get("query") or set(given["kinds"]) != set(Kind):
        return
    if not any(given.get(name) for name in FILTERS):
        message = f"missing; without it give a filter: kinds, {', '.join(FILTERS)}"
        raise BadRequest("Missing required parameter: query", {"query": [message]})


def in_projects(given: Mapping[str, Any]) -> Filter:
    """The filter of those operations that are asked for projects and nothing else."""
    projects = tuple(given.get("project") or ())
    return Filter((("project", projects),) if projects else ())


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
