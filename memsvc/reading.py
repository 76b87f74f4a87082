"""Reading memories in full, and what there is in the store."""

from collections.abc import Mapping
from typing import Any

from memsvc import __version__
from memsvc.dates import DAY_MS, utc_text
from memsvc.errors import BadRequest, MemsvcError, NotFound
from memsvc.model import Hit, Kind, Ref, parse_ref
from memsvc.page import Page
from memsvc.record_schemas import dump_record
from memsvc.rows import full_row
from memsvc.services import Services

MOST_IDS = 1000
STATS_DAYS = 30


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


def list_projects(services: Services, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every project with how much of each kind it holds, last worked on first."""
    with services.store.snapshot():
        found = services.store.projects()
    projects = [
        {
            "project": project.name,
            **{f"{kind}s": count for kind, count in project.counts.items()},
            "last_at": utc_text(project.last_at_epoch),
        }
        for project in found
    ]
    return {"count": len(projects), "projects": projects}


def count_all(services: Services, given: Mapping[str, Any]) -> dict[str, Any]:
    """Counts by kind, project, type, concept and day, and what memory saves."""
    store = services.store
    since = services.clock() // DAY_MS * DAY_MS - STATS_DAYS * DAY_MS
    with store.snapshot():
        projects = list_projects(services, given)["projects"]
        return {
            "kinds": {f"{k}s": sum(project[f"{k}s"] for project in projects) for k in Kind},
            "work_sessions": store.count_work_sessions(()),
            "projects": {p["project"]: sum(p[f"{kind}s"] for kind in Kind) for p in projects},
            "types": store.count_values(Kind.OBSERVATION, "type"),
            "concepts": store.count_values(Kind.OBSERVATION, "concept"),
            "days": store.days(since),
            "economics": store.economics().as_json(),
        }


def report_health(services: Services, given: Mapping[str, Any]) -> dict[str, Any]:
    """The worker lives."""
    return {"status": "ok", "version": __version__}


def report_readiness(services: Services, given: Mapping[str, Any]) -> dict[str, Any]:
    """Each part by name; `ready` is false when searches cannot be answered."""
    try:
        services.store.check()
        state = {"ok": True, "detail": f"generation {services.store.generation()}"}
    except MemsvcError as error:
        state = {"ok": False, "detail": error.detail}
    parts = {
        "store": state,
        "fulltext": state,
        "semantic": _semantic_state(services),
    }
    return {"ready": bool(state["ok"]), "parts": parts}


def _semantic_state(services: Services) -> dict[str, Any]:
    if services.semantic is None:
        return {"ok": False, "detail": "not configured; full text answers"}
    return services.semantic.report()
