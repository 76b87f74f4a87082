"""The table of operations: routes, help, OpenAPI, commands, tools, skill pages come from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from marshmallow import Schema

from memsvc.answers.page import Page
from memsvc.answers.start_page import write_start
from memsvc.answers.text import write_matches, write_text
from memsvc.application import reading, status, timeline, writing
from memsvc.application import recent_context as context
from memsvc.application import semantic_search as meaning
from memsvc.application import session_start as start_page
from memsvc.application.requests import require_question
from memsvc.application.search import run_search
from memsvc.application.services import Services
from memsvc.core.records import SHAPES, Kind, Ref
from memsvc.schemas import parameters

Given = Mapping[str, Any]
Answer = Page | dict[str, Any]

OBSERVATION, SESSION, PROMPT = Kind.OBSERVATION, Kind.SESSION, Kind.PROMPT
ALL = (OBSERVATION, SESSION, PROMPT)

ROW_COST = "about 30 tokens a row as text, 110 as JSON; full records cost their read_tokens"


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a client can ask for.

    `example` holds parameters of a request that runs as printed; `argument` is the parameter that
    a command takes without a flag; `body` says what a request body holds: nothing, the parameters,
    or records; `sample` is a body that can be sent as it stands;
    `text_first` answers with text unless JSON is asked for; `write` makes the text of a page;
    `ceiling` is the most tokens it answers with whatever max_tokens says; `tool` is its name among
    the tools of MCP.
    """

    name: str
    path: str
    command: str
    summary: str
    when: str
    run: Callable[[Services, dict[str, Any]], Answer]
    members: parameters.Fields = field(default_factory=dict)
    example: Mapping[str, str] = field(default_factory=dict)
    cost: str = ROW_COST
    errors: tuple[str, ...] = ("bad_parameter",)
    method: str = "GET"
    argument: str = ""
    aliases: tuple[str, ...] = ()
    body: str = ""
    sample: str = ""
    text_first: bool = False
    write: Callable[[Page], str] = write_text
    ceiling: int | None = None
    tool: str = ""

    @property
    def schema(self) -> Schema:
        """The schema of this operation's parameters."""
        return _SCHEMAS[self.name, self.method]


def _rendered(members: parameters.Fields) -> parameters.Fields:
    meaning = "text: the leanest text; same as the header Accept: text/markdown"
    return {**members, "render": parameters.choice(meaning, None, "json", "text")}


def _one(kind: Kind) -> Callable[[Services, dict[str, Any]], Answer]:
    return lambda services, given: reading.read_record(services, Ref(kind, given["id"]))


def _forget(kind: Kind) -> Callable[[Services, dict[str, Any]], Answer]:
    return lambda services, given: writing.forget(services, Ref(kind, given["id"]))


def _write(kind: Kind | None) -> Callable[[Services, dict[str, Any]], Answer]:
    return lambda services, given: writing.write_body(services, given["body"], kind)


def _batch() -> parameters.Fields:
    refs = "refs: 123, #123, S12, P9"
    return {
        "ids": parameters.text_list(refs, most=reading.MOST_IDS, required=True),
        "orderBy": parameters.choice("order; none: as asked", None, "date_desc", "date_asc"),
        **parameters.project(),
        **parameters.budget(),
    }


def _search_all(services: Services, given: dict[str, Any]) -> Answer:
    require_question(given)
    kinds = [Kind(kind) for kind in given["kinds"]]
    return run_search(services, given, kinds, windowed=bool(given.get("query")))


def _id() -> parameters.Fields:
    return {"id": parameters.number("the record's number", None, 1, 10**15)}


ONE_RECORD = ("bad_parameter", "no_such_record")
WRITING = ("bad_parameter", "body_too_large", "not_json")

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "observations",
        "/api/search/observations",
        "search observations",
        "Find observations by their text.",
        "to find what was done, fixed, decided or learned about something",
        partial(run_search, kinds=[OBSERVATION], windowed=True),
        {
            **parameters.query(required=True),
            **parameters.types(),
            **parameters.concepts(),
            **parameters.files(),
            **parameters.common(),
        },
        {"query": "double charge", "limit": "3"},
        argument="query",
    ),
    Operation(
        "sessions",
        "/api/search/sessions",
        "search sessions",
        "Find session summaries by their text.",
        "to find what a whole session of work was about and what it came to",
        partial(run_search, kinds=[SESSION], windowed=True),
        {**parameters.query(required=True), **parameters.common()},
        {"query": "checkout", "limit": "3"},
        argument="query",
    ),
    Operation(
        "prompts",
        "/api/search/prompts",
        "search prompts",
        "Find what the user asked for, word by word.",
        "to find the user's own words",
        partial(run_search, kinds=[PROMPT], windowed=True),
        {**parameters.query(required=True), **parameters.common()},
        {"query": "why", "limit": "3"},
        argument="query",
    ),
    Operation(
        "by-type",
        "/api/search/by-type",
        "search by-type",
        "List observations of a type, newest first or ranked by a query.",
        "for all decisions, bugfixes or features; with a query, for those on a subject",
        partial(run_search, kinds=[OBSERVATION], echo="type"),
        {
            **parameters.types(required=True),
            **parameters.query(required=False),
            **parameters.concepts(),
            **parameters.files(),
            **parameters.common(),
        },
        {"type": "decision", "limit": "3"},
        argument="type",
    ),
    Operation(
        "by-concept",
        "/api/search/by-concept",
        "search by-concept",
        "List observations that carry a concept, newest first or ranked by a query.",
        "for gotchas, patterns or trade-offs; with a query, for those on a subject",
        partial(run_search, kinds=[OBSERVATION], echo="concept"),
        {
            **parameters.concepts("concept"),
            **parameters.query(required=False),
            **parameters.types(),
            **parameters.files(),
            **parameters.common(),
        },
        {"concept": "gotcha", "limit": "3"},
        argument="concept",
    ),
    Operation(
        "by-file",
        "/api/search/by-file",
        "search by-file",
        "List the observations and sessions that touched a file or folder.",
        "when the question names a file or folder, also one that is gone by now",
        partial(run_search, kinds=[OBSERVATION, SESSION], echo="filePath", grouped=True),
        {
            **parameters.files("filePath"),
            **parameters.query(required=False),
            **parameters.types(),
            **parameters.concepts(),
            **parameters.common(),
        },
        {"filePath": "src/payments", "limit": "3"},
        argument="filePath",
    ),
    Operation(
        "recent-context",
        "/api/context/recent",
        "context recent",
        "Show the last work sessions and what they left.",
        "to pick up where work stopped, or to tell what was done lately",
        context.recent_context,
        {
            **parameters.project(),
            **parameters.limit(
                f"work sessions ({context.SESSIONS}), or with a query observations "
                f"({context.MATCHES})",
                None,
                50,
            ),
            **parameters.query(required=False),
            **parameters.form(),
        },
        {"limit": "1"},
        cost="about 300 tokens a work session as text",
    ),
    Operation(
        "timeline",
        "/api/context/timeline",
        "context timeline",
        "Show what happened just before and after a record or a date.",
        "for a date, or to see what led to a record and what followed",
        timeline.around_anchor,
        {
            **parameters.anchor(required=True),
            **parameters.depth(),
            **parameters.project(),
            **parameters.kinds(),
            **parameters.form(),
        },
        {"anchor": "2026-10-13", "depth_before": "2", "depth_after": "2"},
        errors=ONE_RECORD,
        argument="anchor",
        aliases=("/api/timeline/context",),
    ),
    Operation(
        "timeline-by-query",
        "/api/timeline/by-query",
        "timeline by-query",
        "Show what happened around the best match of a query.",
        "to see what happened around something you can only describe",
        timeline.around_match,
        {
            **parameters.query(required=True),
            "mode": parameters.choice(
                "auto: around the best match; interactive: matches to choose from; observations, "
                "sessions: auto within that kind",
                "auto",
                *timeline.MODES,
            ),
            **parameters.depth(),
            **parameters.limit("matches to choose from (interactive)", 5, 20),
            **parameters.project(),
            **parameters.kinds(),
            **parameters.form(),
        },
        {"query": "double charge", "depth_before": "2", "depth_after": "2"},
        argument="query",
    ),
    Operation(
        "help",
        "/api/search/help",
        "help",
        "Describe every operation, or one of them.",
        "when a parameter was refused, or for an operation without a page",
        lambda services, given: {},  # made by the catalog, which knows this whole table
        {"operation": parameters.text("name of one operation, such as by-file")},
        {"operation": "timeline"},
        cost="about 4,000 tokens for all operations as text, 300 for one",
        argument="operation",
        aliases=("/api/help",),
    ),
    Operation(
        "search",
        "/api/search",
        "search",
        "Find memories of all kinds at once.",
        "to start: one index over observations, sessions and prompts",
        _search_all,
        {
            **parameters.query(required=False),
            **parameters.kinds(),
            **parameters.types(),
            **parameters.concepts(),
            **parameters.files(),
            **parameters.common(),
        },
        {"query": "double charge", "limit": "3"},
        argument="query",
        tool="search",
    ),
    Operation(
        "semantic",
        "/api/search/semantic",
        "search semantic",
        "Find the memories nearest in meaning, whatever their words.",
        "when you cannot guess the words a record would use",
        meaning.search_memories,
        {
            **parameters.query(required=True, meaning="what you look for, in any words"),
            **parameters.limit("memories", 5, 100),
            "days_back": parameters.number("only the last so many days; none: all", None, 1, 36500),
            **parameters.project(),
            **parameters.kinds(),
            **parameters.form(),
        },
        {"query": "customers billed twice", "limit": "3"},
        errors=("bad_parameter", "semantic_unavailable"),
        argument="query",
        write=write_matches,
        tool="search_memories",
    ),
    Operation(
        "timeline-of",
        "/api/timeline",
        "timeline",
        "Show what happened around an anchor or around the best match of a query.",
        "to see the time around a record, a date or a description",
        timeline.around_either,
        {
            **parameters.anchor(required=False),
            **parameters.query(required=False, meaning="words whose best match to look around"),
            **parameters.depth(),
            **parameters.project(),
            **parameters.kinds(),
            **parameters.form(),
        },
        {"anchor": "2026-10-13", "depth_before": "2", "depth_after": "2"},
        errors=ONE_RECORD,
        argument="anchor",
        tool="timeline",
    ),
    Operation(
        "batch",
        "/api/observations/batch",
        "read",
        "Read records in full, in the order asked for.",
        "to read the few records that an index or timeline pointed to",
        reading.read_batch,
        _batch(),
        {"ids": "12,S3"},
        cost="the read_tokens of each record",
        argument="ids",
        tool="get_observations",
    ),
    Operation(
        "batch",
        "/api/observations/batch",
        "",
        "Read records in full, asked for in a JSON body.",
        "the same, for clients that would rather send a body",
        reading.read_batch,
        _batch(),
        cost="the read_tokens of each record",
        method="POST",
        errors=WRITING,
        body="parameters",
        sample='{"ids":["1"]}',
    ),
    Operation(
        "session-start",
        "/api/context/inject",
        "context",
        "Show recent work as a compact index, for the start of a session.",
        "to put recent memory in front of an agent, within a budget",
        start_page.start_page,
        {
            **parameters.project(),
            **parameters.limit("observations", start_page.ROWS, 100),
            **parameters.budget(start_page.BUDGET, ceiling=start_page.CEILING),
        },
        {"max_tokens": "400"},
        cost="at most max_tokens",
        text_first=True,
        write=write_start,
        ceiling=start_page.CEILING,
    ),
    *(
        Operation(
            str(kind),
            f"/api/{kind}/<id>",
            f"show {kind}",
            f"Read one {kind} in full.",
            f"to read one {kind} whose number you know",
            _one(kind),
            _id(),
            {"id": "3"},
            cost="its read_tokens",
            errors=ONE_RECORD,
            argument="id",
        )
        for kind in ALL
    ),
    Operation(
        "projects",
        "/api/projects",
        "projects",
        "List the projects and how much each holds.",
        "to learn what project names there are",
        status.list_projects,
        cost="about 20 tokens a project",
    ),
    Operation(
        "stats",
        "/api/stats",
        "stats",
        "Count what is in the store by kind, project, type, concept and day, and what it saves.",
        "to see what the store holds, what learning it cost and what reading it costs",
        status.count_all,
        cost="about 300 tokens",
    ),
    Operation(
        "health",
        "/api/health",
        "health",
        "Say that the worker lives.",
        "to see whether the worker runs",
        status.report_health,
        cost="about 10 tokens",
    ),
    Operation(
        "readiness",
        "/api/readiness",
        "readiness",
        "Say which parts work: store, full text, semantic index.",
        "to see why answers are degraded",
        status.report_readiness,
        cost="about 60 tokens",
        errors=("bad_parameter", "store_unavailable"),
    ),
    *(
        Operation(
            f"add-{kind}s",
            f"/api/{kind}s",
            "",
            f"Store {kind}s: one record or a list; the same record twice is stored once.",
            f"to remember a {kind}",
            _write(kind),
            method="POST",
            body="records",
            sample=f'{{"{SHAPES[kind].title}":"Tried out memsvc"}}',
            cost="about 40 tokens a record",
            errors=WRITING,
        )
        for kind in ALL
    ),
    Operation(
        "import",
        "/api/import",
        "",
        "Store records of any kind: a list, or a bundle of lists by kind.",
        "to bring in many records at once",
        _write(None),
        method="POST",
        body="records",
        sample='{"observations":[{"title":"Tried out memsvc"}]}',
        cost="about 40 tokens a record",
        errors=WRITING,
    ),
    *(
        Operation(
            f"forget-{kind}",
            f"/api/{kind}/<id>",
            f"forget {kind}",
            f"Forget one {kind}, everywhere and for good.",
            f"only when the user asks for a {kind} to be forgotten",
            _forget(kind),
            _id(),
            cost="about 10 tokens",
            method="DELETE",
            errors=ONE_RECORD,
            argument="id",
        )
        for kind in ALL
    ),
)

_SCHEMAS = {
    (operation.name, operation.method): parameters.make_schema(
        f"{operation.name}-{operation.method}",
        _rendered(operation.members) if operation.method == "GET" else operation.members,
    )
    for operation in OPERATIONS
}

TEN = tuple(operation for operation in OPERATIONS[:10])
"""The ten GET routes that the service is known for."""


def find_operation(name: str) -> Operation | None:
    """The operation with this name, or whose path ends in it."""
    wanted = name.strip().lower().strip("/")
    for operation in OPERATIONS:
        if wanted in (operation.name, operation.command, operation.path.strip("/")):
            return operation
    return next((o for o in OPERATIONS if o.path.endswith(f"/{wanted}")), None)
