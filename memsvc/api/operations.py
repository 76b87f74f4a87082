"""The table of operations: routes, help, OpenAPI, commands, MCP tools, skill pages come from it."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from memsvc.answers.start_page import write_start_page
from memsvc.answers.text import write_matches
from memsvc.api import requests
from memsvc.api.help import build_help, help_text
from memsvc.api.operation import Answer, Operation, Tool
from memsvc.api.requests import Call
from memsvc.application import (
    reading,
    recent_context,
    session_start,
    status,
    timeline,
    writing,
)
from memsvc.application.search import run_search
from memsvc.application.semantic.search import search_memories
from memsvc.core.records import SHAPES, Kind
from memsvc.schemas import parameters
from memsvc.schemas.parameters import Fields
from memsvc.schemas.results import Result

OBSERVATION, SESSION, PROMPT = Kind.OBSERVATION, Kind.SESSION, Kind.PROMPT
ALL: Final = (OBSERVATION, SESSION, PROMPT)

ARTICLES: Final = {OBSERVATION: "an", SESSION: "a", PROMPT: "a"}


def _window_of(kinds: tuple[Kind, ...]) -> Callable[[Call], Any]:
    return partial(requests.search_request, kinds=kinds, windowed=True)


def _around(more: Fields | None = None) -> Fields:
    """The parameters of every timeline besides its anchor."""
    return {
        **parameters.depth(),
        **(more or {}),
        **parameters.filters(*ALL),
        **parameters.kinds(),
        **parameters.answer_format(),
    }


def _batch() -> Fields:
    order = parameters.choice("default: the order of ids", None, "date_desc", "date_asc")
    return {
        **parameters.refs(),
        "orderBy": order,
        **parameters.project(),
        **parameters.budget(),
    }


def _is_ready(answer: Answer) -> int:
    return 200 if isinstance(answer, dict) and answer["ready"] else 503


def _is_stored(answer: Answer) -> int:
    return 201 if isinstance(answer, dict) and answer["stored"] else 200


ONE_RECORD: Final = ("bad_parameter", "no_such_record")
WRITING: Final = ("bad_parameter", "body_too_large", "not_json")

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="observations",
        path="/api/search/observations",
        command="search observations",
        summary="Search observations by text.",
        when="to find what was done, fixed, decided or learned about something",
        read=_window_of((OBSERVATION,)),
        run=run_search,
        kinds=(OBSERVATION,),
        parameters={
            **parameters.query(required=True),
            **parameters.also(),
            **parameters.filters(OBSERVATION),
            **parameters.paging(),
        },
        example={"query": "double charge", "limit": "3"},
        argument="query",
        skill=True,
    ),
    Operation(
        name="sessions",
        path="/api/search/sessions",
        command="search sessions",
        summary="Search session summaries by text.",
        when="to find what a work session was about and its outcome",
        read=_window_of((SESSION,)),
        run=run_search,
        kinds=(SESSION,),
        parameters={
            **parameters.query(required=True),
            **parameters.also(),
            **parameters.filters(SESSION),
            **parameters.paging(),
        },
        example={"query": "checkout", "limit": "3"},
        argument="query",
        skill=True,
    ),
    Operation(
        name="prompts",
        path="/api/search/prompts",
        command="search prompts",
        summary="Search the user's prompts, stored verbatim.",
        when="to find what the user asked for, in their own words",
        read=_window_of((PROMPT,)),
        run=run_search,
        kinds=(PROMPT,),
        parameters={
            **parameters.query(required=True),
            **parameters.also(),
            **parameters.filters(PROMPT),
            **parameters.paging(),
        },
        example={"query": "why", "limit": "3"},
        argument="query",
        skill=True,
    ),
    Operation(
        name="by-type",
        path="/api/search/by-type",
        command="search by-type",
        summary="List observations by type, newest first or ranked by a query.",
        when="for all decisions, bugfixes or features; add a query for those on a topic",
        read=partial(requests.search_request, kinds=(OBSERVATION,), echo="type"),
        run=run_search,
        kinds=(OBSERVATION,),
        parameters={
            **parameters.required_filter("type", "type"),
            **parameters.query(required=False),
            **parameters.filters(OBSERVATION, without="type"),
            **parameters.paging(),
        },
        example={"type": "decision", "limit": "3"},
        argument="type",
        skill=True,
    ),
    Operation(
        name="by-concept",
        path="/api/search/by-concept",
        command="search by-concept",
        summary="List observations by concept, newest first or ranked by a query.",
        when="for gotchas, patterns or trade-offs; add a query for those on a topic",
        read=partial(requests.search_request, kinds=(OBSERVATION,), echo="concept"),
        run=run_search,
        kinds=(OBSERVATION,),
        parameters={
            **parameters.required_filter("concept", "concept"),
            **parameters.query(required=False),
            **parameters.filters(OBSERVATION, without="concept"),
            **parameters.paging(),
        },
        example={"concept": "gotcha", "limit": "3"},
        argument="concept",
        skill=True,
    ),
    Operation(
        name="by-file",
        path="/api/search/by-file",
        command="search by-file",
        summary="List the observations and sessions that touched a file or folder.",
        when="when the question names a file or folder, even one that no longer exists",
        read=partial(
            requests.search_request, kinds=(OBSERVATION, SESSION), echo="filePath", grouped=True
        ),
        run=run_search,
        kinds=(OBSERVATION, SESSION),
        parameters={
            **parameters.required_filter("file", "filePath"),
            **parameters.query(required=False),
            **parameters.filters(OBSERVATION, SESSION, without="file"),
            **parameters.paging(),
        },
        example={"filePath": "src/payments", "limit": "3"},
        argument="filePath",
        skill=True,
    ),
    Operation(
        name="recent-context",
        path="/api/context/recent",
        command="context recent",
        summary="Show the latest work sessions with their records.",
        when="to pick up where work stopped, or to see what was done recently",
        read=requests.recent_request,
        run=recent_context.recent_context,
        kinds=ALL,
        parameters={
            **parameters.filters(*ALL),
            **parameters.limit(
                f"work sessions ({requests.DEFAULT_WORK_SESSIONS}), or with a query observations "
                f"({requests.DEFAULT_MATCHES})",
                None,
                50,
            ),
            **parameters.query(required=False),
            **parameters.answer_format(),
        },
        example={"limit": "1"},
        cost="about 300 tokens per work session as text",
        skill=True,
    ),
    Operation(
        name="timeline",
        path="/api/context/timeline",
        command="context timeline",
        summary="Show what happened just before and after a record or a date.",
        when="for a date, or to see what led to a record and what followed it",
        read=requests.timeline_request,
        run=timeline.show_timeline,
        kinds=ALL,
        parameters={**parameters.anchor(required=True), **_around()},
        example={"anchor": "2026-10-13", "depth_before": "2", "depth_after": "2"},
        errors=ONE_RECORD,
        argument="anchor",
        aliases=("/api/timeline/context",),
        skill=True,
    ),
    Operation(
        name="timeline-by-query",
        path="/api/timeline/by-query",
        command="timeline by-query",
        summary="Show what happened around the best match for a query.",
        when="when you can describe the moment but have no ref or date for it",
        read=requests.timeline_by_query_request,
        run=timeline.show_timeline,
        kinds=ALL,
        parameters={
            **parameters.query(required=True),
            **parameters.also(),
            "mode": parameters.choice(
                "auto: around the best match; interactive: matches to choose from; "
                "observations or sessions: auto, within that kind",
                "auto",
                *requests.MODES,
            ),
            **_around(parameters.limit("matches to choose from in interactive mode", 5, 20)),
        },
        example={"query": "double charge", "depth_before": "2", "depth_after": "2"},
        argument="query",
        skill=True,
    ),
    Operation(
        name="help",
        path="/api/search/help",
        command="help",
        summary="Describe all operations, or one.",
        when="when a parameter is refused, or for an operation without a page",
        read=requests.help_request,
        run=lambda services, request: build_help(OPERATIONS, services, request),
        result=Result.DOCUMENT,
        text=help_text,
        html="help.html",
        parameters={"operation": parameters.text("name of an operation, such as by-file")},
        example={"operation": "timeline"},
        cost="about 4,000 tokens for all operations as text, 300 for one",
        argument="operation",
        aliases=("/api/help",),
        skill=True,
    ),
    Operation(
        name="search",
        path="/api/search",
        command="search",
        summary="Search all kinds of record at once.",
        when="to start with: one index of observations, sessions and prompts",
        read=requests.search_all_request,
        run=run_search,
        kinds=ALL,
        parameters={
            **parameters.query(required=False),
            **parameters.also(),
            **parameters.kinds(),
            **parameters.filters(*ALL),
            **parameters.paging(),
        },
        example={"query": "double charge", "limit": "3"},
        argument="query",
        tool=Tool(
            "search",
            "Start here. Returns an index: ref, date, type, title, cost.",
        ),
    ),
    Operation(
        name="semantic",
        path="/api/search/semantic",
        command="search semantic",
        summary="Find the records most similar to a text, whatever their words.",
        when="when you cannot guess the words that a record uses",
        read=requests.nearest_request,
        run=search_memories,
        kinds=ALL,
        parameters={
            **parameters.query(required=True, description="what to look for, in any words"),
            **parameters.limit("records to return", 5, 100),
            "days_back": parameters.number("only the last N days; default: all", None, 1, 36500),
            **parameters.filters(*ALL),
            **parameters.kinds(),
            **parameters.answer_format(),
        },
        example={"query": "customers billed twice", "limit": "3"},
        errors=("bad_parameter", "semantic_unavailable"),
        argument="query",
        text=write_matches,
        tool=Tool(
            "search_memories",
            "Use it when search finds nothing. Returns an index with match percent.",
        ),
    ),
    Operation(
        name="timeline-of",
        path="/api/timeline",
        command="timeline",
        summary="Show what happened around an anchor, or around the best match for a query.",
        when="to see what happened around a record, a date or something you describe",
        read=requests.timeline_of_request,
        run=timeline.show_timeline,
        kinds=ALL,
        parameters={
            **parameters.anchor(required=False),
            **parameters.query(
                required=False, description="words whose best match becomes the anchor"
            ),
            **_around(),
        },
        example={"anchor": "2026-10-13", "depth_before": "2", "depth_after": "2"},
        errors=ONE_RECORD,
        argument="anchor",
        tool=Tool("timeline", "Returns an index."),
    ),
    Operation(
        name="batch",
        path="/api/observations/batch",
        command="read",
        summary="Read full records, in the order of the ids given.",
        when="to read the few records that matter in an index or timeline",
        read=requests.batch_request,
        run=reading.read_batch,
        kinds=ALL,
        parameters=_batch(),
        example={"ids": "12,S3"},
        refs="ids",
        cost="the read_tokens of each record",
        argument="ids",
        tool=Tool(
            "get_observations",
            "Only for the few refs that matter in an index, all in one call.",
        ),
    ),
    Operation(
        name="batch",
        path="/api/observations/batch",
        summary="Read full records; the ids are sent in a JSON body.",
        when="when a client prefers a JSON body to a query string",
        read=requests.batch_request,
        run=reading.read_batch,
        kinds=ALL,
        parameters=_batch(),
        cost="the read_tokens of each record",
        method="POST",
        errors=WRITING,
        body="parameters",
        sample='{"ids":["1"]}',
    ),
    Operation(
        name="session-start",
        path="/api/context/inject",
        command="context",
        summary="Show recent work as a compact index, for the start of a session.",
        when="to give an agent its recent memory within a token budget",
        read=requests.start_request,
        run=session_start.start_page,
        kinds=ALL,
        parameters={
            **parameters.filters(*ALL),
            **parameters.limit("observations", session_start.DEFAULT_ROWS, 100),
            **parameters.budget(session_start.DEFAULT_TOKENS, ceiling=session_start.MAX_TOKENS),
        },
        example={"max_tokens": "400"},
        cost="at most max_tokens",
        text=write_start_page,
        text_first=True,
        ceiling=session_start.MAX_TOKENS,
    ),
    *(
        Operation(
            name=str(kind),
            path=f"/api/{kind}/<id>",
            command=f"show {kind}",
            summary=f"Read one full {kind}.",
            when=f"when you know the number of the {kind}",
            read=partial(requests.record_request, kind=kind),
            run=reading.read_record,
            kinds=(kind,),
            result=Result.RECORD,
            parameters=parameters.record_id(),
            example={"id": "3"},
            refs="id",
            cost="its read_tokens",
            errors=ONE_RECORD,
            argument="id",
        )
        for kind in ALL
    ),
    Operation(
        name="projects",
        path="/api/projects",
        command="projects",
        summary="List the projects and how many records each has.",
        when="to see which projects exist",
        run=status.list_projects,
        result=Result.DOCUMENT,
        cost="about 20 tokens per project",
    ),
    Operation(
        name="stats",
        path="/api/stats",
        command="stats",
        summary="Count records by kind, project, type, concept and day, and the tokens they save.",
        when="to see what the store holds, what it cost to learn and what it costs to read",
        run=status.count_all,
        result=Result.DOCUMENT,
        cost="about 300 tokens",
    ),
    Operation(
        name="health",
        path="/api/health",
        command="health",
        summary="Report that the worker is running.",
        when="to check whether the worker is running",
        run=status.report_health,
        result=Result.DOCUMENT,
        cost="about 10 tokens",
    ),
    Operation(
        name="readiness",
        path="/api/readiness",
        command="readiness",
        summary="Report which components work: store, full-text search, semantic search.",
        when="to see why answers are degraded",
        run=status.report_readiness,
        result=Result.DOCUMENT,
        status=_is_ready,
        cost="about 60 tokens",
        errors=("bad_parameter", "store_unavailable"),
    ),
    *(
        Operation(
            name=f"add-{kind}s",
            path=f"/api/{kind}s",
            summary=f"Store one {kind} or a list of them; the same one sent twice is stored once.",
            when=f"to save {ARTICLES[kind]} {kind}",
            read=partial(requests.write_request, kind=kind),
            run=writing.write_records,
            kinds=(kind,),
            method="POST",
            body="records",
            result=Result.WRITTEN,
            status=_is_stored,
            sample=f'{{"{SHAPES[kind].title}":"Tried out memsvc"}}',
            cost="about 40 tokens per record",
            errors=WRITING,
        )
        for kind in ALL
    ),
    Operation(
        name="import",
        path="/api/import",
        summary="Store records of any kind: a list, or an object with one list per kind.",
        when="to store many records at once",
        read=requests.write_request,
        run=writing.write_records,
        kinds=ALL,
        method="POST",
        body="records",
        result=Result.WRITTEN,
        status=_is_stored,
        sample='{"observations":[{"title":"Tried out memsvc"}]}',
        cost="about 40 tokens per record",
        errors=WRITING,
    ),
    *(
        Operation(
            name=f"forget-{kind}",
            path=f"/api/{kind}/<id>",
            command=f"forget {kind}",
            summary=f"Forget one {kind} permanently.",
            when=f"only when the user asks for {ARTICLES[kind]} {kind} to be forgotten",
            read=partial(requests.record_request, kind=kind),
            run=writing.forget,
            kinds=(kind,),
            result=Result.DOCUMENT,
            parameters=parameters.record_id(),
            cost="about 10 tokens",
            method="DELETE",
            errors=ONE_RECORD,
            argument="id",
        )
        for kind in ALL
    ),
    Operation(
        name="forget",
        path="/api/forget",
        command="forget",
        summary="Forget all records that match all criteria, permanently; give one or more.",
        when="only when the user asks for these memories to be forgotten; with dry_run=1 first",
        read=requests.forget_request,
        run=writing.forget_many,
        kinds=ALL,
        result=Result.DOCUMENT,
        parameters={
            **parameters.forgetting(),
            **parameters.filters(*ALL),
            **parameters.dry_run(),
        },
        method="POST",
        body="parameters",
        sample='{"project":"no such project","dry_run":"1"}',
        cost="about 100 tokens",
        errors=WRITING,
    ),
)

TEN: Final = tuple(operation for operation in OPERATIONS if operation.skill)
"""The ten GET routes that have a page in the skill."""
