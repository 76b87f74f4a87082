"""What the store has, and whether the worker is ready."""

import re
from collections.abc import Callable
from typing import Any, Final

from memsvc import __version__
from memsvc.application.services import Services
from memsvc.core.calendar.spans import DAY_MS
from memsvc.core.dates import local_day, utc_text
from memsvc.core.errors import FulltextBroken, MemsvcError, SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Store
from memsvc.core.query import parse
from memsvc.core.records import SHAPES, Kind, Record, Ref, kind_of

STATS_DAYS = 30

MAX_ASKED: Final = 3
"""Words that readiness asks full text for; any of them finds the record."""

_WORD: Final = re.compile(r"(?<![^\W_])[A-Za-z]{3,}(?![^\W_])")
"""Words that every tokenizer cuts in the same way."""


def list_projects(services: Services, folder: str | None = None) -> dict[str, Any]:
    """All projects, or that of a folder, with their number of records of each kind, most recently
    active first.
    """
    with services.store.snapshot():
        found = services.store.projects(until=services.latest)
        if folder:
            own = project_of_folder(services.store, folder)
            found = [project for project in found if project.name.casefold() == own.casefold()]
    projects = [
        {
            "project": project.name,
            **{f"{kind}s": count for kind, count in project.counts.items()},
            "last_at": utc_text(project.last_at_epoch),
        }
        for project in found
    ]
    return {"count": len(projects), "projects": projects}


def project_of_folder(store: Store, folder: str) -> str:
    """The stored project of a folder, from its name or the first commit of its repository; empty
    if there is none.
    """
    named = Filter((("project", (folder,)),))
    for hit in store.page(tuple(Kind), named, newest_first=True, limit=1, offset=0):
        return store.records([hit.ref])[hit.ref].project
    return store.project_from(Kind.OBSERVATION, "git", folder) or ""


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
    """The state of each component, asked a real question; `ready` is false when searches cannot be
    answered or nothing can be written.
    """
    parts = {
        "store": _asked(lambda: _store_state(services.store)),
        "fulltext": _asked(lambda: _fulltext_state(services.store)),
        "semantic": _semantic_state(services),
    }
    return {"ready": parts["store"]["ok"] and parts["fulltext"]["ok"], "parts": parts}


def _asked(question: Callable[[], str]) -> dict[str, Any]:
    """The answer of a component, or why it gives none."""
    try:
        return {"ok": True, "detail": question()}
    except MemsvcError as error:
        return {"ok": False, "detail": error.detail}


def _store_state(store: Store) -> str:
    store.check()
    return f"it reads and can write; generation {store.generation()}"


def _fulltext_state(store: Store) -> str:
    with store.snapshot():
        asked = [record for kind in Kind if (record := _newest(store, kind))]
        for record in asked:
            _require_found(store, record)
    return f"the newest record of each kind is found by its words ({len(asked)} asked for)"


def _newest(store: Store, kind: Kind) -> Record | None:
    hits = store.page([kind], Filter(), newest_first=True, limit=1, offset=0)
    return next(iter(store.records(hit.ref for hit in hits).values()), None)


def _require_found(store: Store, record: Record) -> None:
    """Raise FulltextBroken unless full text finds a record by the longest words of its title."""
    ref = Ref(kind_of(record), record.id)
    text = str(getattr(record, SHAPES[ref.kind].texts[0]))
    longest = sorted(_WORD.findall(text), key=len, reverse=True)[:MAX_ASKED]
    if longest and not store.rank_among(ref.kind, parse(" ".join(longest)), [ref.id]):
        raise FulltextBroken(
            f"Full text does not find {ref.kind} {ref}, the newest of its kind. It is rebuilt at "
            "the next start: memsvc stop; memsvc start"
        )


def _semantic_state(services: Services) -> dict[str, Any]:
    if services.semantic is None:
        detail = services.no_semantic or "not configured; searches use full text only"
        return {"ok": False, "detail": detail, "waiting": 0, "rebuilds": 0}
    try:
        with services.store.snapshot():
            state = services.semantic.report()
            if state["ok"]:
                services.semantic.check()
            return state
    except SemanticUnavailable as error:
        return {**state, "ok": False, "detail": error.detail}
    except MemsvcError as error:  # of the store
        return {"ok": False, "detail": error.detail, "waiting": 0, "rebuilds": 0}
