"""Reading memories in full, and what there is in the store."""

from collections.abc import Mapping
from typing import Any

from memsvc.answers.dump import dump_record
from memsvc.answers.page import Page
from memsvc.answers.rows import full_row
from memsvc.application.services import Services
from memsvc.core.errors import BadRequest, NotFound
from memsvc.core.ports.store import Hit
from memsvc.core.records import Ref, parse_ref

MOST_IDS = 1000


def read_record(services: Services, ref: Ref) -> dict[str, Any]:
    """One record in full. Raises NotFound if there is none."""
    with services.store.snapshot():
        record = services.store.records([ref]).get(ref)
    if record is None:
        raise NotFound(f"There is no {ref.kind} {ref}; it may have been forgotten, or never was.")
    return dump_record(record, ref.kind)


def read_batch(services: Services, given: Mapping[str, Any]) -> Page:
    """Records in full, in the order asked for unless another is given; `missing` lists the rest."""
    refs = _refs(given["ids"])
    with services.store.snapshot():
        records = services.store.records(refs)
    projects = {name.casefold() for name in given.get("project") or ()}
    found = [
        ref
        for ref in refs
        if ref in records and (not projects or records[ref].project.casefold() in projects)
    ]
    if given.get("orderBy") in ("date_desc", "date_asc"):
        found.sort(
            key=lambda ref: (records[ref].created_at_epoch, ref.id),
            reverse=given["orderBy"] == "date_desc",
        )
    hits = [Hit(ref, records[ref].created_at_epoch) for ref in found]
    return Page(
        rows=tuple(full_row(hit, records[hit.ref]) for hit in hits),
        total=len(found),
        limit=len(refs),
        format="full",
        strategy="filter",
        asked=tuple(map(str, found)),
        notes={"missing": [str(ref) for ref in refs if ref not in set(found)]},
    )


def _refs(ids: list[str]) -> list[Ref]:
    refs = [parse_ref(text) for text in ids]
    for text, ref in zip(ids, refs, strict=True):
        if ref is None:
            message = f"given {text[:80]!r}; allowed: 123, #123, S12, P9"
            raise BadRequest(f"ids {message}", {"ids": [message]})
    return list(dict.fromkeys(ref for ref in refs if ref))
