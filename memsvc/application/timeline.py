"""What happened around a record or a date."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memsvc.answers.page import Page
from memsvc.answers.rows import make_rows, title_of
from memsvc.application.requests import SearchRequest, TimelineRequest
from memsvc.application.search import run_search
from memsvc.application.services import Services
from memsvc.core.dates import utc_text
from memsvc.core.errors import BadRequest, NotFound
from memsvc.core.ports.store import Hit, Point
from memsvc.core.records import Record, Ref, parse_ref


def show_timeline(services: Services, request: TimelineRequest) -> Page:
    """The records before and after an anchor. Raises NotFound if no record has that ref."""
    with services.store.snapshot():
        if isinstance(request.anchor, SearchRequest):
            return _around_match(services, request, request.anchor)
        if isinstance(request.anchor, Ref):
            return _around_record(services, request, request.anchor)
        return _around(services, request, Point(request.anchor))


def _around_match(services: Services, request: TimelineRequest, search: SearchRequest) -> Page:
    """Around the best match, or the matches to choose an anchor from."""
    page = run_search(services, search)
    for row in page.rows:
        row["timeline"] = (
            f"/api/context/timeline?anchor={row['ref']}"
            f"&depth_before={request.before}&depth_after={request.after}"
        )
    best = parse_ref(page.rows[0]["ref"]) if page.rows and not request.interactive else None
    return _around_record(services, request, best) if best else replace(page, paged=False)


def _around_record(services: Services, request: TimelineRequest, ref: Ref) -> Page:
    record = services.store.records([ref]).get(ref)
    if record is None and request.otherwise:
        return show_timeline(services, request.otherwise)
    if record is None:
        raise NotFound(f"There is no {ref.kind} {ref}; take a ref from a search.")
    if request.until is not None and request.until < record.created_at_epoch:
        when = utc_text(record.created_at_epoch)
        raise BadRequest(f"The end is before {ref}, which was made at {when}; give a later date.")
    return _around(services, request, Point(record.created_at_epoch, ref.id, ref.kind), record)


def _around(
    services: Services, request: TimelineRequest, point: Point, record: Record | None = None
) -> Page:
    ref = Ref(point.kind, point.id) if record else None
    ahead = replace(request.selection, until=request.until)
    before, after = (
        services.store.neighbours(request.kinds, selection, point, before=is_before, limit=limit)
        for is_before, selection, limit in (
            (True, request.selection, request.before),
            (False, ahead, request.after),
        )
    )
    more = 0 if request.until is None else _count_after(services, request, point) - len(after)
    hits = [*before, *([Hit(ref, point.created_at_epoch)] if ref else []), *after]
    rows = make_rows(hits, services.store.records(hit.ref for hit in hits), request.format)
    if ref:
        rows[len(before)]["anchor"] = True
    return Page(
        echo={**request.echo, "anchor": _anchor(point, ref, record), **_end(request)},
        rows=rows,
        total=len(rows) + more,
        paged=False,
        limit=request.before + request.after + bool(ref),
        format=request.format,
        strategy="temporal",
        notes={"before": len(before), "after": len(after), **_more(more, hits)},
    )


def _count_after(services: Services, request: TimelineRequest, point: Point) -> int:
    """How many records lie between a point and the end, in the store's order of time."""
    store, kinds, moment = services.store, request.kinds, point.created_at_epoch
    same = replace(request.selection, since=moment, until=moment)
    later = replace(request.selection, since=moment + 1, until=request.until)
    ties = sum(store.count(kind, same) for kind in kinds)
    after = store.neighbours(kinds, same, point, before=False, limit=ties) if ties else []
    return len(after) + sum(store.count(kind, later) for kind in kinds)


def _end(request: TimelineRequest) -> dict[str, str]:
    return {} if request.until is None else {"end": utc_text(request.until)}


def _more(more: int, hits: Sequence[Hit]) -> dict[str, str]:
    """How many records are left out, and how to go on."""
    if not more:
        return {}
    onward = f"; go on with anchor={hits[-1].ref} and the same end" if hits else ""
    return {"more": f"{more} until the end{onward}"}


def _anchor(point: Point, ref: Ref | None, record: Record | None) -> Mapping[str, Any]:
    """The anchor, as the answer shows it."""
    when = {"created_at": utc_text(point.created_at_epoch)}
    return {"ref": str(ref), "title": title_of(record, ref), **when} if record and ref else when
