"""Reads full records."""

from typing import Any

from memsvc.answers.page import Page
from memsvc.answers.rows import dump_record, make_rows
from memsvc.application.requests import BatchRequest
from memsvc.application.services import Services
from memsvc.core.errors import NotFound
from memsvc.core.filters import selects
from memsvc.core.ports.store import Hit
from memsvc.core.records import Ref


def read_record(services: Services, ref: Ref) -> dict[str, Any]:
    """One full record. Raises NotFound."""
    with services.store.snapshot():
        record = services.store.records([ref]).get(ref)
    if record is None:
        raise NotFound(f"There is no {ref.kind} {ref}; it was deleted, or never existed.")
    return dump_record(record, ref.kind)


def read_batch(services: Services, request: BatchRequest) -> Page:
    """Full records, in the order of the ids unless `orderBy` is given; `missing` lists the refs not
    found.
    """
    with services.store.snapshot():
        records = services.store.records(request.refs)
    found = [
        Hit(ref, records[ref].created_at_epoch)
        for ref in request.refs
        if ref in records and selects(request.selection, records[ref])
    ]
    if request.order:
        newest_first = request.order == "date_desc"
        found.sort(key=lambda hit: (hit.created_at_epoch, hit.ref.id), reverse=newest_first)
    there = {hit.ref for hit in found}
    return Page(
        rows=make_rows(found, records, "full"),
        total=len(found),
        limit=len(request.refs),
        format="full",
        strategy="filter",
        requested=tuple(str(hit.ref) for hit in found),
        notes={"missing": [str(ref) for ref in request.refs if ref not in there]},
    )
