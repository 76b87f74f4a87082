"""Forgets all records that match."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from memsvc.answers.rows import make_rows
from memsvc.application.requests import ForgetRequest
from memsvc.core.dates import local_day
from memsvc.core.ports.store import Hit, Store
from memsvc.core.query import Query
from memsvc.core.records import Kind, Ref

BATCH: Final = 1000
"""Records forgotten in one transaction: other writers come in between."""

MAX_SHOWN: Final = 5
"""Records that the answer names."""

Progress = Callable[[int, int], None]
"""Called with the number of records done, and of all."""


def forget_matching(
    store: Store, request: ForgetRequest, progress: Progress | None = None
) -> dict[str, Any]:
    """Forget what a request selects; with `dry_run` only tell what that is."""
    with store.snapshot():
        hits = [hit for kind in Kind for hit in _selected(store, kind, request)]
        first = _first(store, hits)
    forgotten = 0 if request.dry_run else _forget(store, [hit.ref for hit in hits], progress)
    return {
        "dry_run": request.dry_run,
        "found": len(hits),
        "forgotten": forgotten,
        **{f"{kind}s": sum(hit.ref.kind is kind for hit in hits) for kind in Kind},
        "newest": first,
    }


def _forget(store: Store, refs: list[Ref], progress: Progress | None) -> int:
    forgotten = 0
    try:
        for start in range(0, len(refs), BATCH):
            forgotten += store.forget_all(refs[start : start + BATCH])
            if progress:
                progress(min(start + BATCH, len(refs)), len(refs))
    finally:
        if forgotten:
            store.sweep()
    return forgotten


def _selected(store: Store, kind: Kind, request: ForgetRequest) -> Iterator[Hit]:
    """The records of a kind that a request selects."""
    total = store.count(kind, request.selection)
    hits = _matching(store, kind, request, total)
    if not request.sources:
        return iter(hits)
    ids = store.from_sources(kind, request.sources)
    return (hit for hit in hits if hit.ref.id in ids)


def _matching(store: Store, kind: Kind, request: ForgetRequest, total: int) -> list[Hit]:
    query, selection = whole(request.query), request.selection
    if query.searchable or query.excludes:
        return store.matches_by_time(kind, query, selection, newest_first=True, limit=total)
    return store.page([kind], selection, newest_first=True, limit=total, offset=0)


def whole(query: Query) -> Query:
    """The query for records that hold all of its words, not just one of them."""
    return replace(query, words=(), required=(*query.words, *query.required))


def _first(store: Store, hits: list[Hit]) -> list[dict[str, str]]:
    newest = sorted(hits, key=lambda hit: hit.created_at_epoch, reverse=True)[:MAX_SHOWN]
    rows = make_rows(newest, store.records(hit.ref for hit in newest), "index")
    return [
        {
            "ref": str(row["ref"]),
            "kind": str(row["kind"]),
            "day": local_day(row["created_at_epoch"]),
            "title": str(row["title"]),
        }
        for row in rows
    ]
