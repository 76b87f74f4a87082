"""The session-start page: recent work as a compact index within a token budget."""

from dataclasses import replace
from typing import Any, Final

from memsvc.answers.page import Page, Row
from memsvc.answers.rows import read_tokens, title_of
from memsvc.answers.start_page import economics_of
from memsvc.application.requests import SearchRequest
from memsvc.application.services import Services
from memsvc.application.suggestions import future_note, suggest
from memsvc.core.dates import utc_text
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Hit
from memsvc.core.records import Kind, Observation, Record, Summary

DEFAULT_TOKENS: Final = 1500
"""Default token budget of the page."""

MAX_TOKENS: Final = 2249
"""Hard limit in tokens: at four bytes per token the page stays below 9,000 characters. Agents cut
the output of a hook at about 10,000.
"""

DEFAULT_ROWS: Final = 50
"""Default number of observations."""


def start_page(services: Services, request: SearchRequest) -> Page:
    """The newest observations and the last summary, by time alone."""
    selection = replace(request.selection, until=services.latest)
    with services.store.snapshot():
        hits = _newest(services, Kind.OBSERVATION, selection, request.limit)
        records = services.store.records(hit.ref for hit in hits)
        total = services.store.count(Kind.OBSERVATION, selection)
        future = future_note(services, Kind, selection)
        notes = _last_summary(services, selection) or suggest(
            services, request, total or len(future)
        )
    return Page(
        echo=dict(request.echo),
        rows=tuple(_row(hit, records[hit.ref]) for hit in hits),
        total=total,
        limit=request.limit,
        strategy="temporal",
        notes=notes | future,
        paged=False,
        tally=lambda rows: {"economics": economics_of(rows).as_json()},
    )


def _newest(services: Services, kind: Kind, selection: Filter, limit: int) -> list[Hit]:
    return services.store.page([kind], selection, newest_first=True, limit=limit, offset=0)


def _row(hit: Hit, record: Record) -> Row:
    """The fields that the index shows, and those that identify the discovery."""
    assert isinstance(record, Observation)
    return {
        "id": record.id,
        "ref": str(hit.ref),
        "kind": hit.ref.kind.value,
        "type": record.type,
        "title": title_of(record, hit.ref),
        "created_at": utc_text(record.created_at_epoch),
        "created_at_epoch": record.created_at_epoch,
        "project": record.project,
        "session_id": record.session_id,
        "prompt_number": record.prompt_number,
        "discovery_tokens": record.discovery_tokens,
        "read_tokens": read_tokens(record, hit.ref),
    }


def _last_summary(services: Services, selection: Filter) -> dict[str, Any]:
    """The last session summary, for whoever continues the work."""
    hits = _newest(services, Kind.SESSION, selection, 1)
    if not hits:
        return {}
    record = services.store.records([hits[0].ref])[hits[0].ref]
    assert isinstance(record, Summary)
    texts = {"learned": record.learned, "next_steps": record.next_steps}
    summary = {
        "ref": str(hits[0].ref),
        "title": title_of(record, hits[0].ref),
        "created_at_epoch": record.created_at_epoch,
        **{name: text for name, text in texts.items() if text.strip()},
    }
    return {"summary": summary}
