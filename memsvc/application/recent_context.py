"""What was worked on lately."""

from collections.abc import Mapping
from typing import Any

from memsvc.answers.page import Page, Row
from memsvc.application.ranking import rank_few
from memsvc.application.requests import in_projects, read_search
from memsvc.application.search import make_rows
from memsvc.application.services import Services
from memsvc.core.dates import utc_text
from memsvc.core.ports.store import WorkEntry
from memsvc.core.records import Kind

LAST = 50
"""Observations that count as recent where recent context is ranked by a query."""

SESSIONS = 3
"""Work sessions that recent context shows unless told otherwise."""

MATCHES = 20
"""Observations that recent context shows for a query unless told otherwise."""

MOST = 20
"""Records of one kind that recent context lists for one work session."""


def recent_context(services: Services, given: Mapping[str, Any]) -> Page:
    """The last work sessions with what they left; with a query, the last observations ranked."""
    if given.get("query"):
        return _ranked(services, given)
    projects = tuple(given.get("project") or ())
    limit = given["limit"] or SESSIONS
    with services.store.snapshot():
        entries = services.store.recent_work(projects, limit=limit, most=MOST)
        rows = tuple(_work_row(services, entry, given["format"]) for entry in entries)
        total = services.store.count_work_sessions(projects)
    return Page(
        echo={"project": ",".join(projects)},
        rows=rows,
        total=total,
        limit=limit,
        format=given["format"],
        strategy="temporal",
        paged=False,
    )


def _work_row(services: Services, entry: WorkEntry, form: str) -> Row:
    session = entry.session
    return {
        "kind": "work_session",
        "session_id": session.session_id,
        "project": session.project,
        "status": session.status,
        "started_at": utc_text(session.started_at_epoch),
        "last_at": utc_text(entry.last_at_epoch),
        "last_at_epoch": entry.last_at_epoch,
        "counts": {f"{kind}s": count for kind, count in entry.counts.items()},
        **{
            f"{kind}s": list(make_rows(services, entry.hits[kind], form))
            for kind in (Kind.SESSION, Kind.OBSERVATION, Kind.PROMPT)
        },
    }


def _ranked(services: Services, given: Mapping[str, Any]) -> Page:
    """The last observations of the project that match, ranked; never anything older."""
    projects = tuple(given.get("project") or ())
    recent = in_projects(given)
    search = read_search(services, given, [Kind.OBSERVATION])
    limit = given["limit"] or MATCHES
    with services.store.snapshot():
        last = services.store.page(
            [Kind.OBSERVATION], recent, newest_first=True, limit=LAST, offset=0
        )
        ids = [hit.ref.id for hit in last]
        ranking = rank_few(services, search, Kind.OBSERVATION, ids)
        rows = make_rows(services, ranking.hits[:limit], given["format"], search.query)
    return Page(
        echo={"query": given["query"], "project": ",".join(projects)},
        rows=rows,
        total=len(ranking.hits),
        limit=limit,
        format=given["format"],
        strategy="temporal",
        paged=False,
        notes={"among_last": len(last), **ranking.notes},
    )
