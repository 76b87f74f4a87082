"""Reads full records."""

from collections.abc import Mapping
from typing import Any, Final

from memsvc.answers.page import Page
from memsvc.answers.rows import dump_record, make_rows, title_of
from memsvc.application.requests import BatchRequest
from memsvc.application.services import Services
from memsvc.core.errors import BadRequest, NotFound
from memsvc.core.filters import EVERYTHING, Filter, selects
from memsvc.core.naming.commits import FULL, Commit, parse_commit
from memsvc.core.ports.store import Hit, Store
from memsvc.core.records import Record, Ref

MAX_TOLD: Final = 5
"""Commits that a sentence on an ambiguous hash lists."""

SHOWN_DIGITS: Final = 12
"""Digits of a hash that such a sentence shows."""

Found = Mapping[Ref, Record]
"""What one name stands for: one record, none, or several that a hash is too short for."""


def read_record(services: Services, name: Ref | Commit) -> dict[str, Any]:
    """One full record. Raises NotFound; BadRequest for a hash that several commits begin with."""
    with services.store.snapshot():
        found = _find(services.store, name)
    if not found:
        raise NotFound(_absence(name))
    if len(found) > 1:
        raise BadRequest.of("id", _candidates(name, found))
    [(ref, record)] = found.items()
    return dump_record(record, ref.kind)


def read_batch(services: Services, request: BatchRequest) -> Page:
    """Full records, in the order of the ids unless `orderBy` is given; `missing` lists the names
    that stand for none or for several.
    """
    with services.store.snapshot():
        named = _find_all(services.store, request)
    records = {
        ref: record for found in named.values() if len(found) == 1 for ref, record in found.items()
    }
    hits = [Hit(ref, record.created_at_epoch) for ref, record in records.items()]
    if request.order:
        newest_first = request.order == "date_desc"
        hits.sort(key=lambda hit: (hit.created_at_epoch, hit.ref.id), reverse=newest_first)
    told = [
        _candidates(name, found) if found else _absence(name)
        for name, found in named.items()
        if len(found) > 1 or (isinstance(name, Commit) and not found)
    ]
    return Page(
        rows=make_rows(hits, records, "full"),
        total=len(hits),
        limit=len(request.refs),
        format="full",
        strategy="filter",
        requested=tuple(str(hit.ref) for hit in hits),
        notes={"missing": [str(name) for name, found in named.items() if len(found) != 1]}
        | ({"notice": " ".join(told)} if told else {}),
    )


def _find_all(store: Store, request: BatchRequest) -> dict[Ref | Commit, Found]:
    """What each name stands for; refs are looked up together."""
    there = store.records(name for name in request.refs if isinstance(name, Ref))
    return {
        name: {name: record}
        if isinstance(name, Ref)
        and (record := there.get(name))
        and selects(request.selection, record)
        else _commits(store, name, request.selection)
        for name in request.refs
    }


def _find(store: Store, name: Ref | Commit) -> Found:
    found = store.records([name]) if isinstance(name, Ref) else {}
    return found or _commits(store, name, EVERYTHING)


def _commits(store: Store, name: Ref | Commit, selection: Filter) -> Found:
    """The observations of a commit, one for each; a number that is no ref may be a hash too."""
    commit = parse_commit(str(name))
    refs = store.commits(commit) if commit else []
    records = store.records(refs)
    found: dict[str, Ref] = {}
    for ref in refs:
        if ref in records and selects(selection, records[ref]):
            found.setdefault(records[ref].source_id, ref)
    if commit and len(commit.hash) in FULL:  # whatever abbreviates a full hash is the same commit
        found = dict(list(found.items())[:1])
    return {ref: records[ref] for ref in found.values()}


def _absence(name: Ref | Commit) -> str:
    if isinstance(name, Ref):
        return f"There is no {name.kind} {name}; it was deleted, or never existed."
    return (
        f"No record has the commit {name}; import its repository with memsvc import git, or "
        "search for the hash, which other records may mention."
    )


def _candidates(name: Ref | Commit, found: Found) -> str:
    """What an ambiguous hash may mean, for one to be chosen."""
    shown = ", ".join(
        f"{record.source_id[:SHOWN_DIGITS]} (#{ref}, {title_of(record, ref)})"
        for ref, record in list(found.items())[:MAX_TOLD]
    )
    more = f" and {len(found) - MAX_TOLD} more" if len(found) > MAX_TOLD else ""
    return f"{name} names {len(found)} commits: {shown}{more}; give more digits, or the ref."
