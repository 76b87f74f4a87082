"""What the store has, and whether the worker is ready."""

from typing import Any

from memsvc import __version__
from memsvc.application.services import Services
from memsvc.core.dates import DAY_MS, local_day, utc_text
from memsvc.core.errors import MemsvcError
from memsvc.core.filters import Filter
from memsvc.core.records import Kind

STATS_DAYS = 30


def list_projects(services: Services, request: None = None) -> dict[str, Any]:
    """All projects with their number of records of each kind, most recently active first."""
    with services.store.snapshot():
        found = services.store.projects(until=services.latest)
    projects = [
        {
            "project": project.name,
            **{f"{kind}s": count for kind, count in project.counts.items()},
            "last_at": utc_text(project.last_at_epoch),
        }
        for project in found
    ]
    return {"count": len(projects), "projects": projects}


def count_all(services: Services, request: None = None) -> dict[str, Any]:
    """Counts by kind, project, type, concept and day, and the tokens saved."""
    store = services.store
    since = services.clock() // DAY_MS * DAY_MS - STATS_DAYS * DAY_MS
    with store.snapshot():
        projects = list_projects(services)["projects"]
        return {
            "kinds": {f"{k}s": sum(project[f"{k}s"] for project in projects) for k in Kind},
            "work_sessions": store.count_work_sessions(Filter()),
            "projects": {p["project"]: sum(p[f"{kind}s"] for kind in Kind) for p in projects},
            "types": store.count_values(Kind.OBSERVATION, "type"),
            "concepts": store.count_values(Kind.OBSERVATION, "concept"),
            "days": _days_until_now(services, since),
            "economics": store.economics().as_json(),
        }


def _days_until_now(services: Services, since: int) -> dict[str, int]:
    """The records per day; those dated in the future are counted as one."""
    latest = local_day(services.latest)
    days = services.store.days(since)
    future = sum(count for day, count in days.items() if day > latest)
    known = {day: count for day, count in days.items() if day <= latest}
    return known | ({"future": future} if future else {})


def report_health(services: Services, request: None = None) -> dict[str, Any]:
    """The answer of a running worker."""
    return {"status": "ok", "version": __version__}


def report_readiness(services: Services, request: None = None) -> dict[str, Any]:
    """The state of each component; `ready` is false when searches cannot be answered."""
    try:
        services.store.check()
        state = {"ok": True, "detail": f"generation {services.store.generation()}"}
    except MemsvcError as error:
        state = {"ok": False, "detail": error.detail}
    components = {"store": state, "fulltext": state, "semantic": _semantic_state(services)}
    return {"ready": bool(state["ok"]), "parts": components}


def _semantic_state(services: Services) -> dict[str, Any]:
    if services.semantic is None:
        detail = services.no_semantic or "not configured; searches use full text only"
        return {"ok": False, "detail": detail, "waiting": 0, "rebuilds": 0}
    return services.semantic.report()
