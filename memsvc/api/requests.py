"""Turns parameters into requests: the only module that knows the names of parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from memsvc.application.requests import (
    BatchRequest,
    ForgetRequest,
    HelpRequest,
    NearestRequest,
    RecentRequest,
    SearchRequest,
    TimelineRequest,
    Wording,
    WriteRequest,
)
from memsvc.core.calendar.spans import DAY_MS, HOUR_MS, Span
from memsvc.core.dates import Date, local_day, read_date
from memsvc.core.errors import BadRequest
from memsvc.core.filters import EVERYTHING, FIELDS, Filter, Groups
from memsvc.core.naming.commits import Commit
from memsvc.core.query import Query, parse
from memsvc.core.ranking.wordings import narrowed, united
from memsvc.core.recency import latest_moment
from memsvc.core.records import Kind, Ref
from memsvc.schemas import parameters
from memsvc.schemas.bodies import read_body

MODES: Final = ("auto", "interactive", "observations", "sessions")
"""How a timeline by query finds its anchor."""

DEFAULT_WORK_SESSIONS: Final = 3
"""Work sessions that recent context shows."""

MAX_ECHOED: Final = 40
"""Characters of another wording that the answer repeats."""

DEFAULT_MATCHES: Final = 20
"""Observations that recent context shows for a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operation: its parameters by name, loaded by the operation's schema; the time
    (ms), the worker's address, and the body, if any.
    """

    values: Mapping[str, Any]
    now: int
    base: str = ""
    body: Any = None


def search_request(
    call: Call,
    kinds: tuple[Kind, ...] = (),
    *,
    echo: str = "query",
    windowed: bool = False,
    grouped: bool = False,
) -> SearchRequest:
    """A search. `windowed` ranks recent matches before older ones if no date is given.

    Raises BadRequest if dateStart is after dateEnd.
    """
    given = call.values
    text = given.get("query") or ""
    wordings = _wordings(text, given.get("also") or [])
    query = united([each.query for each in wordings]) if wordings else parse(text)
    since, until, days = _dates(call)
    default_window = windowed and (since, until, days) == (None, None, None)
    return SearchRequest(
        kinds=kinds or _kinds(given),
        text=text,
        query=query,
        wordings=wordings,
        selection=Filter(_groups(given, query), since, until),
        order=given.get("orderBy") or ("relevance" if text else "date_desc"),
        window_start=_days_ago(call, parameters.DEFAULT_DAYS) if default_window else None,
        days=parameters.DEFAULT_DAYS if default_window else days,
        offset=given.get("offset", 0),
        limit=given.get("limit") or 1,
        format=given.get("format", "index"),
        explain=given.get("explain") == "1",
        grouped=grouped,
        echo=_echo(given, echo, "query") | _echo_span(call) | _echo_wordings(given),
    )


def search_kinds_request(call: Call, kinds: tuple[Kind, ...] = ()) -> SearchRequest:
    """A search over these kinds, or over the requested ones. Raises BadRequest without a query and
    without a filter.
    """
    given = call.values
    if given.get("also") and not given.get("query"):
        raise BadRequest.of("also", "adds wordings to a query; give the first of them as query")
    names = [*parameters.filters(*(kinds or Kind)), *parameters.dates()]
    some_kinds = set(given.get("kinds", Kind)) != set(Kind)
    if not (given.get("query") or some_kinds or any(given.get(name) for name in names)):
        allowed = ", ".join([*(() if kinds else ("kinds",)), *names])
        message = f"missing; give a query or one of these filters: {allowed}"
        raise BadRequest("Missing required parameter: query", {"query": [message]})
    return search_request(call, kinds, windowed=bool(given.get("query")))


def recent_request(call: Call) -> RecentRequest:
    """The latest work sessions; with a query, the latest observations, ranked by it."""
    given = call.values
    search = search_request(call, (Kind.OBSERVATION,)) if given.get("query") else None
    default = DEFAULT_MATCHES if search else DEFAULT_WORK_SESSIONS
    return RecentRequest(
        limit=given["limit"] or default,
        selection=search.selection if search else Filter(_groups(given)),
        search=search,
        format=given["format"],
        echo=_echo(given, "query") | _echo_filters(given),
    )


def timeline_request(call: Call) -> TimelineRequest:
    """What happened around a record or a date, or from there to an end. A number that is no record
    may be a year. Raises BadRequest if the end is before the anchor.
    """
    anchor = call.values["anchor"]
    if isinstance(anchor, Date):
        return _timeline_of_date(call, anchor)
    return replace(_timeline(call, anchor), otherwise=_timeline_of_year(call, anchor))


def _timeline_of_date(call: Call, anchor: Date) -> TimelineRequest:
    """A date that is longer than a day has its own end."""
    end: Date | None = call.values.get("end")
    first, last = anchor.span(call.now)
    if end and end.last(call.now) < first:
        raise BadRequest.of(
            "end",
            f"given {end.text!r}, which is before the anchor {anchor.text!r}; give a later date",
        )
    return _timeline(call, first, own_end=last if last - first > 2 * DAY_MS else None)


def _timeline_of_year(call: Call, anchor: Ref) -> TimelineRequest | None:
    try:
        year = read_date(str(anchor)) if anchor.kind is Kind.OBSERVATION else None
        return _timeline_of_date(call, year) if year else None
    except (ValueError, BadRequest):
        return None


def timeline_by_query_request(call: Call) -> TimelineRequest:
    """What happened around the best match for a query."""
    mode = call.values.get("mode", "auto")
    interactive = mode == "interactive"
    kinds = {"observations": (Kind.OBSERVATION,), "sessions": (Kind.SESSION,)}.get(mode, ())
    search = search_request(call, kinds, windowed=True)
    first = replace(search, limit=search.limit if interactive else 1, format="index")
    return _timeline(call, first, interactive=interactive, mode=mode)


def timeline_of_request(call: Call) -> TimelineRequest:
    """A timeline around an anchor or a query. Raises BadRequest for both and for neither."""
    anchor, text = call.values.get("anchor"), call.values.get("query")
    if bool(anchor) == bool(text):
        given = "both were given" if anchor else "neither was given"
        message = f"give either anchor or query; {given}"
        raise BadRequest(f"anchor, query: {message}", {"anchor": [message], "query": [message]})
    return timeline_request(call) if anchor else timeline_by_query_request(call)


def nearest_request(call: Call) -> NearestRequest:
    """The records most similar to a text."""
    given, days = call.values, call.values.get("days_back")
    dates = (call.now - days * DAY_MS, latest_moment(call.now)) if days else (None, None)
    return NearestRequest(
        text=given["query"],
        kinds=_kinds(given),
        limit=given["limit"],
        selection=Filter(_groups(given), *dates),
        format=given["format"],
    )


def start_request(call: Call) -> SearchRequest:
    """The session-start page: the newest records that the filters select."""
    search = search_request(call, tuple(Kind))
    return replace(search, echo=_echo_filters(call.values))


def batch_request(call: Call) -> BatchRequest:
    """Records to read in full."""
    given = call.values
    return BatchRequest(
        refs=tuple(dict.fromkeys(given["ids"])),
        selection=Filter(_groups(given)),
        order=given.get("orderBy"),
    )


def record_request(call: Call, kind: Kind) -> Ref | Commit:
    """One record, by its number or by the hash of its commit."""
    given = call.values["id"]
    return Ref(kind, given) if isinstance(given, int) else given


def write_request(call: Call, kind: Kind | None = None) -> WriteRequest:
    """Records to store; with a kind, only of that kind. Raises BadRequest if all are refused."""
    body = read_body(call.body, kind)
    return WriteRequest(
        records=body.records, work_sessions=body.work_sessions, refused=body.refused
    )


def forget_request(call: Call) -> ForgetRequest:
    """What to forget. Raises BadRequest if nothing limits it, or less than was meant would."""
    given, query = call.values, parse(call.values.get("query") or "")
    _require_whole(given.get("query"), query)
    request = ForgetRequest(
        selection=Filter(_groups(given, query), *_span(call)),
        query=query,
        sources=tuple(given.get("source") or ()),
        dry_run=given["dry_run"] == "1",
    )
    if request.selection == EVERYTHING and not (request.sources or query.searchable):
        names = ", ".join([*parameters.filters(*Kind), *parameters.forgetting()])
        message = f"nothing says what to forget; give one or more of these: {names}"
        raise BadRequest(f"Nothing was forgotten: {message}", {"query": [message]})
    return request


def _span(call: Call) -> tuple[int | None, int | None]:
    """The first and last time (ms) of what is to be forgotten."""
    since, until = call.values.get("since"), call.values.get("until")
    if since and until and since.first(call.now) > until.last(call.now):
        raise BadRequest.of(
            "since", f"given {since.text!r}, which is after until; give the earlier first"
        )
    return since and since.first(call.now), until and until.last(call.now)


def _require_whole(text: str | None, query: Query) -> None:
    """Raise BadRequest for a query of which a part would be ignored: more would be forgotten."""
    if query.ignored:
        raise BadRequest.of("query", f"has {query.ignored} terms too many; give fewer")
    if text and not (query.searchable or query.filters or query.excludes):
        raise BadRequest.of("query", "has no letter or digit to search for; use words")


def help_request(call: Call) -> HelpRequest:
    """Help for all operations, or for one."""
    return HelpRequest(base=call.base, operation=call.values.get("operation"))


def _timeline(
    call: Call,
    anchor: Ref | int | SearchRequest,
    *,
    own_end: int | None = None,
    interactive: bool = False,
    mode: str = "",
) -> TimelineRequest:
    given, depth = call.values, parameters.DEFAULT_DEPTH
    until = given["end"].last(call.now) if given.get("end") else own_end
    before, after = (depth, depth) if until is None else (0, parameters.MAX_DEPTH)
    return TimelineRequest(
        kinds=_kinds(given),
        anchor=anchor,
        before=before if given["depth_before"] is None else given["depth_before"],
        after=after if given["depth_after"] is None else given["depth_after"],
        until=until,
        selection=Filter(_groups(given)),
        format=given["format"],
        interactive=interactive,
        echo={**anchor.echo, "mode": mode} if isinstance(anchor, SearchRequest) else {},
    )


def _wordings(text: str, also: Sequence[str]) -> tuple[Wording, ...]:
    """The wordings of a query with others, each that differs once; none without others."""
    query = parse(text)
    own = [Wording("query", text, query)] if query.searchable else []
    others = [
        Wording(f"also {number}", other, narrowed(_other_wording(other), query))
        for number, other in enumerate(also, 1)
    ]
    distinct: dict[Query, Wording] = {}
    for each in [*own, *others] if also else []:
        distinct.setdefault(each.query, each)
    return tuple(distinct.values())


def _other_wording(text: str) -> Query:
    """Another wording, parsed. Raises BadRequest if it filters, or has nothing to search for."""
    query = parse(text)
    if query.filters or query.excluded_filters:
        raise BadRequest.of(
            "also", f"given {text[:80]!r}; filters belong in query: they hold for every wording"
        )
    if not query.searchable:
        raise BadRequest.of("also", f"given {text[:80]!r}; a wording needs a word to search for")
    return query


def _kinds(given: Mapping[str, Any]) -> tuple[Kind, ...]:
    return tuple(map(Kind, given["kinds"]))


def _dates(call: Call) -> tuple[int | None, int | None, int | str | None]:
    """The first and last time (ms) that dates and days allow, and the days as given."""
    if span := _during(call):
        return span.first, span.last, None
    start, end = call.values.get("dateStart"), call.values.get("dateEnd")
    days = call.values.get("days")
    since = start.first(call.now) if start else None
    until = end.last(call.now) if end else None
    if start and end and start.first(call.now) > end.last(call.now):
        raise BadRequest.of(
            "dateStart",
            f"given {start.text!r}, which is after dateEnd {end.text!r}; give the earlier first",
        )
    if isinstance(days, int):
        since = max(since or 0, _days_ago(call, days))
        until = until if start or end else latest_moment(call.now)
    return since, until, days


def _during(call: Call) -> Span | None:
    """All of the span that is asked for by itself, if any."""
    during: Date | None = call.values.get("during")
    if during is None:
        return None
    if others := [name for name in ("dateStart", "dateEnd", "days") if call.values.get(name)]:
        raise BadRequest.of(
            "during", f"is given beside {others[0]}; give during alone, or dateStart and dateEnd"
        )
    span = during.whole(call.now)
    if span.first == span.last:
        raise BadRequest.of(
            "during",
            f"given {during.text!r}, which is a moment; give a day, week, month or year, or "
            "dateStart and dateEnd",
        )
    return span


def _echo_span(call: Call) -> dict[str, str]:
    """The days that `during` stands for, for the answer to repeat."""
    span = _during(call)
    return {"during": f"{local_day(span.first)} to {local_day(span.last)}"} if span else {}


def _days_ago(call: Call, days: int) -> int:
    """Some days ago, on a full hour: within one, the same question gets the same answer."""
    return call.now // HOUR_MS * HOUR_MS - days * DAY_MS


def _groups(given: Mapping[str, Any], query: Query | None = None) -> Groups:
    asked = (
        (field.name, tuple(given[name]))
        for field in FIELDS.values()
        for name in (field.parameter, *field.spellings)
        if given.get(name) and not _asks_for_all(field.name, given[name])
    )
    groups = dict.fromkeys([*asked, *(query.filters if query else ())])
    return tuple((name, tuple(map(_comparable, values))) for name, values in groups)


def _asks_for_all(field: str, values: Sequence[str]) -> bool:
    return field == "project" and parameters.ALL_PROJECTS in values


def _comparable(value: str) -> str:
    """A value without NUL, where SQLite would end it; nothing that is stored has one."""
    return value.replace("\x00", "\ufffd")


def _echo_filters(given: Mapping[str, Any]) -> dict[str, str]:
    """The filters for the answer to repeat; the project even if none was given."""
    return {"project": ""} | _echo(given, *parameters.filters(*Kind))


def _echo_wordings(given: Mapping[str, Any]) -> dict[str, list[str]]:
    """The beginnings of the other wordings, for the answer to repeat."""
    if not given.get("also"):
        return {}
    shown = [each if len(each) <= MAX_ECHOED else f"{each[:MAX_ECHOED]}…" for each in given["also"]]
    return {"also": shown}


def _echo(given: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The parameters that the answer repeats."""
    asked = {name: given[name] for name in names if given.get(name)}
    return {name: ",".join(v) if isinstance(v, list) else v for name, v in asked.items()}
