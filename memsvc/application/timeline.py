"""What happened around a record or a date."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memsvc.answers.page import Page
from memsvc.answers.rows import title_of
from memsvc.application.requests import in_projects
from memsvc.application.search import make_rows, run_search
from memsvc.application.services import Services
from memsvc.core.dates import FORMS, parse_date, utc_text
from memsvc.core.errors import BadRequest, NotFound
from memsvc.core.ports.store import Hit, Point
from memsvc.core.records import Kind, Ref, parse_ref

MODES = ("auto", "interactive", "observations", "sessions")
_MODE_KINDS = {"observations": Kind.OBSERVATION, "sessions": Kind.SESSION}


def around_anchor(services: Services, given: Mapping[str, Any]) -> Page:
    """The records before and after an anchor. Raises NotFound when no record has that ref."""
    text = given["anchor"]
    with services.store.snapshot():
        if ref := _ref(text):
            return _around(services, given, _point(services, ref), ref)
        return _around(services, given, Point(_moment(services, text)), None)


def _ref(text: str) -> Ref | None:
    ref = parse_ref(text)
    # nine digits and more are an epoch; ids never come near
    return None if ref and text.strip().isdigit() and ref.id >= 10**8 else ref


def _moment(services: Services, text: str) -> int:
    try:
        return parse_date(text, services.clock())
    except ValueError:
        message = f"given {text[:80]!r}; allowed: 123, #123, S12, P9, or a date ({FORMS})"
        raise BadRequest(f"anchor {message}", {"anchor": [message]}) from None


def _point(services: Services, ref: Ref) -> Point:
    record = services.store.records([ref]).get(ref)
    if record is None:
        raise NotFound(f"There is no {ref.kind} {ref}; take a ref from the results of a search.")
    return Point(record.created_at_epoch, ref.id, ref.kind)


def _around(
    services: Services,
    given: Mapping[str, Any],
    point: Point,
    ref: Ref | None,
    echo: Mapping[str, Any] | None = None,
) -> Page:
    kinds = [Kind(kind) for kind in given["kinds"]]
    selection = in_projects(given)
    before, after = (
        services.store.neighbours(kinds, selection, point, before=side, limit=given[depth])
        for side, depth in ((True, "depth_before"), (False, "depth_after"))
    )
    anchor = [Hit(ref, point.created_at_epoch)] if ref else []
    rows = make_rows(services, [*before, *anchor, *after], given["format"])
    for row in rows:
        if ref and row["ref"] == str(ref):
            row["anchor"] = True
    return Page(
        echo={**(echo or {}), "anchor": _name(services, point, ref)},
        rows=rows,
        total=len(rows),
        limit=given["depth_before"] + given["depth_after"] + len(anchor),
        format=given["format"],
        strategy="temporal",
        notes={"before": len(before), "after": len(after)},
    )


def _name(services: Services, point: Point, ref: Ref | None) -> dict[str, Any]:
    """What the timeline turns around, in words."""
    when = utc_text(point.created_at_epoch)
    if ref is None:
        return {"created_at": when}
    title = title_of(services.store.records([ref])[ref], ref)
    return {"ref": str(ref), "title": title, "created_at": when}


def around_match(services: Services, given: Mapping[str, Any]) -> Page:
    """The timeline around the best match of a query, or the matches to choose an anchor from."""
    kind = _MODE_KINDS.get(given["mode"])
    kinds = [kind] if kind else [Kind(name) for name in given["kinds"]]
    if given["mode"] == "interactive":
        return _choices(services, given, kinds)
    with services.store.snapshot():
        best = _choices(services, {**given, "limit": 1}, kinds)
        ref = parse_ref(best.rows[0]["ref"]) if best.rows else None
        if ref is None:
            return best
        echo = {"query": given["query"], "mode": given["mode"]}
        return _around(services, given, _point(services, ref), ref, echo)


def _choices(services: Services, given: Mapping[str, Any], kinds: list[Kind]) -> Page:
    page = run_search(
        services,
        {**given, "offset": 0, "explain": "0", "format": "index"},
        kinds,
        windowed=True,
    )
    for row in page.rows:
        row["timeline"] = (
            f"/api/context/timeline?anchor={row['ref']}"
            f"&depth_before={given['depth_before']}&depth_after={given['depth_after']}"
        )
    return replace(page, paged=False)


def around_either(services: Services, given: Mapping[str, Any]) -> Page:
    """The timeline around an anchor or around the best match of a query: one of the two."""
    if bool(given.get("anchor")) == bool(given.get("query")):
        said = "both were given" if given.get("anchor") else "neither was given"
        message = f"give either anchor or query; {said}"
        raise BadRequest(f"anchor, query: {message}", {"anchor": [message], "query": [message]})
    if given.get("anchor"):
        return around_anchor(services, given)
    return around_match(services, {**given, "mode": "auto"})
