"""The most recent work."""

from dataclasses import replace

from memsvc.answers.page import Page, Row
from memsvc.answers.rows import make_rows
from memsvc.application.ranking import Ranking, rank_records
from memsvc.application.requests import RecentRequest, SearchRequest
from memsvc.application.search import found_rows
from memsvc.application.services import Services
from memsvc.application.suggestions import future_note
from memsvc.core.dates import utc_text
from memsvc.core.ports.store import WorkEntry
from memsvc.core.records import Kind

MAX_RANKED = 50
"""How many of the newest observations a query ranks."""

MAX_LISTED = 20
"""Maximum records per kind and work session."""


def recent_context(services: Services, request: RecentRequest) -> Page:
    """The latest work sessions with their records, or the latest observations ranked by a query."""
    if request.search:
        return _ranked(services, request, request.search)
    selection = replace(request.selection, until=services.latest)
    with services.store.snapshot():
        entries = services.store.recent_work(selection, limit=request.limit, most=MAX_LISTED)
        rows = tuple(_work_row(services, entry, request.format) for entry in entries)
        total = services.store.count_work_sessions(selection)
        notes = future_note(services, Kind, selection)
    return Page(
        echo=dict(request.echo),
        rows=rows,
        total=total,
        limit=request.limit,
        format=request.format,
        strategy="temporal",
        paged=False,
        notes=notes,
    )


def _work_row(services: Services, entry: WorkEntry, form: str) -> Row:
    session = entry.session
    records = services.store.records(hit.ref for hits in entry.hits.values() for hit in hits)
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
            f"{kind}s": list(make_rows(entry.hits[kind], records, form))
            for kind in (Kind.SESSION, Kind.OBSERVATION, Kind.PROMPT)
        },
    }


def _ranked(services: Services, request: RecentRequest, search: SearchRequest) -> Page:
    """The matches among the latest selected observations, ranked; never anything older.

    A query of filters alone matches all of them.
    """
    query = search.query
    only_filters = query.filters and not (query.searchable or query.only_excludes)
    selection = replace(request.selection, until=services.latest)
    with services.store.snapshot():
        last = services.store.page(
            [Kind.OBSERVATION], selection, newest_first=True, limit=MAX_RANKED, offset=0
        )
        ids = [hit.ref.id for hit in last]
        ranking = (
            Ranking(last) if only_filters else rank_records(services, search, Kind.OBSERVATION, ids)
        )
        rows = found_rows(services, search, ranking.hits[: request.limit])
        future = future_note(services, [Kind.OBSERVATION], selection)
    return Page(
        echo=dict(request.echo),
        rows=rows,
        total=len(ranking.hits),
        limit=request.limit,
        format=request.format,
        strategy="temporal",
        paged=False,
        notes={"among_last": len(last), **ranking.notes, **future},
    )
