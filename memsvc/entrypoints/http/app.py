"""The Flask application: routes requests to operations and renders their answers."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from flask import Flask, Response, current_app, render_template, request
from werkzeug.exceptions import HTTPException

from memsvc.answers.budget import fit
from memsvc.answers.page import Page, name_projects, to_json, write_json
from memsvc.answers.quoting import visible
from memsvc.api.help import error_codes, find_operation
from memsvc.api.openapi import build_openapi
from memsvc.api.operation import Answer, Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.parameter_facts import facts_of
from memsvc.api.requests import Call
from memsvc.api.scope import scoped
from memsvc.application.services import Services
from memsvc.core.errors import BadRequest, BodyTooLarge, MemsvcError, NotJson
from memsvc.core.limits import deadline
from memsvc.core.ports.masking import Mask
from memsvc.entrypoints.http.channel import ARRIVED
from memsvc.entrypoints.http.guard import LOCAL, Door, check_source, check_token
from memsvc.entrypoints.http.headers import security_headers
from memsvc.entrypoints.http.hiding import Hide, hidden
from memsvc.entrypoints.http.problems import masked_problem, problem_of
from memsvc.schemas.parameters import load_parameters

MAX_BODY = 5 * 1024 * 1024
MAX_OPENED = 50_000
"""Opening brackets in a body; text of this length has fewer."""

MAX_COMMAS = 150_000
"""Commas in a body."""


TEXT_TYPES = ("text/markdown", "text/plain")
OFFERED = ("application/json", *TEXT_TYPES, "text/html")
TEXT_FIRST = (*TEXT_TYPES, "application/json")


NARROW = (
    "narrow the question: name a project or dates (days=30), use fewer and longer words, "
    "fewer prefixes* and * globs, a smaller limit, and no explain"
)
SPLIT = "nothing was changed; send fewer records in one request, or try again in a moment"


def create_app(
    services: Services, door: Door = LOCAL, hide: Hide = str, seconds: float = math.inf
) -> Flask:
    """The Flask application for these services, for those whom the door lets in.

    `hide` rewrites texts about failures, so that they do not show paths of this machine; `seconds`
    is what any request may take.
    """
    app = Flask(__package__, static_folder=None)
    app.config["SECONDS"] = seconds
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    # a trailing or double slash never redirects
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.add_template_global(error_codes)
    app.add_template_filter(facts_of)
    app.before_request(partial(_refuse_foreign, door))
    app.after_request(_add_headers)
    for operation in OPERATIONS:
        for path in (operation.path, *operation.aliases):
            _add_route(app, services, operation, path, hide)
    if home := find_operation(OPERATIONS, "help"):
        _add_route(app, services, home, "/", hide)
    app.add_url_rule("/openapi.json", "openapi", partial(_openapi, door.needs_token))
    for error in (MemsvcError, HTTPException, Exception):
        app.register_error_handler(error, partial(_problem, hide, services.mask))
    return app


def _add_route(app: Flask, services: Services, operation: Operation, path: str, hide: Hide) -> None:
    view = _view(services, operation, hide)
    endpoint = f"{operation.name} {operation.method} {path}"
    app.add_url_rule(path, endpoint, view, methods=[operation.method])


def _view(services: Services, operation: Operation, hide: Hide) -> Callable[..., Response]:
    advice = NARROW if operation.method == "GET" or operation.body == "parameters" else SPLIT

    def view(**path_parameters: str) -> Response:
        arrived = request.environ.get(ARRIVED, time.monotonic())
        with deadline.within(current_app.config["SECONDS"], advice, began=arrived):
            call, scope = scoped(operation, services, _call(services, operation, path_parameters))
            answer = _placed(operation.run(services, operation.read(call)), scope)
            return _answer(operation, _without_paths(operation, answer, hide), call)

    return view


def _refuse_foreign(door: Door) -> None:
    """Refuse requests from other sites, and those without the token where it is needed."""
    target = request.environ.get("REQUEST_URI", "/")
    check_source(door, request.method, target, dict(request.headers))
    check_token(door, request.path, request.headers.get("Authorization"))


# -- what comes in --------------------------------------------------------------------------------


def _call(services: Services, operation: Operation, path_parameters: dict[str, str]) -> Call:
    body = _json_body() if operation.body == "parameters" else None
    pairs: Iterable[tuple[str, Any]] = [
        *path_parameters.items(),
        *request.args.items(multi=True),
        *(_json_pairs(body) if operation.body == "parameters" else ()),
    ]
    values = load_parameters(operation.schema, pairs)
    if operation.body == "records":
        body = _json_body()
    return Call(values=values, now=services.clock(), base=_base(), body=body)


def _json_pairs(body: Any) -> Iterator[tuple[str, Any]]:
    """The parameters in a JSON object; a list repeats a parameter, null omits it."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.", {"body": ["expected a JSON object"]})
    for name, value in body.items():
        values = value if isinstance(value, list) else [value]
        yield from ((name, item) for item in values if item is not None)


def _json_body() -> Any:
    if not request.is_json:
        given = request.mimetype[:80] or "no content type"
        raise NotJson(
            f"The content type of the body is {given!r}; send JSON with "
            "Content-Type: application/json."
        )
    data = request.get_data()
    _require_few_values(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"The body is not valid JSON: {error}", {"body": [str(error)]}) from None


def _require_few_values(data: bytes) -> None:
    """Refuse a body whose parsing would silence all other threads: it holds Python's lock."""
    if data.count(b"[") + data.count(b"{") > MAX_OPENED or data.count(b",") > MAX_COMMAS:
        raise BodyTooLarge(
            f"The body has more than {MAX_OPENED:,} brackets or {MAX_COMMAS:,} commas; split it "
            "into several requests."
        )


# -- what goes out --------------------------------------------------------------------------------


def _answer(operation: Operation, answer: Answer, call: Call) -> Response:
    """An answer in the requested format: JSON, text, or a page for a browser."""
    form = _form(operation, call)
    if form == "text/html":
        return _respond(visible(render_template(operation.html, **answer)), form)  # type: ignore[arg-type]
    write = operation.write if form == "text/markdown" else to_json
    if isinstance(answer, Page):
        return _respond(_fitted(operation, answer, call, form), form)
    return _respond(write(answer), form, operation.status(answer))


def _fitted(operation: Operation, page: Page, call: Call, form: str) -> str:
    write = operation.write if form == "text/markdown" else write_json
    bounds = [bound for bound in (call.values.get("max_tokens"), operation.ceiling) if bound]
    return fit(page, min(bounds), write) if bounds else write(page)


def _form(operation: Operation, call: Call) -> str:
    if rendered := call.values.get("render"):
        return "text/markdown" if rendered == "text" else "application/json"
    offered = TEXT_FIRST if operation.text_first else OFFERED
    accepted = request.accept_mimetypes.best_match(offered) or offered[0]
    if accepted == "text/html":
        return accepted if operation.html else "application/json"
    return "text/markdown" if accepted in TEXT_TYPES else accepted


def _placed(answer: Answer, scope: str) -> Answer:
    """An answer that says where its records belong, and what was searched if nobody said that."""
    if not isinstance(answer, Page):
        return answer
    notes = {"scope": scope} if scope else {}
    return name_projects(replace(answer, notes=notes | answer.notes))


def _without_paths(operation: Operation, answer: Answer, hide: Hide) -> Answer:
    """An answer whose reasons for failures are rewritten; memories stay as they are."""
    if isinstance(answer, Page) and "degraded" in answer.notes:
        reason = hide(answer.notes["degraded"])
        return replace(answer, notes={**answer.notes, "degraded": reason})
    return hidden(answer, hide) if operation.name == "readiness" else answer


def _openapi(needs_token: bool) -> Response:
    return _respond(to_json(build_openapi(_base(), needs_token)), "application/json")


def _problem(hide: Hide, mask: Mask, error: Exception) -> Response:
    status, problem, headers = problem_of(error, _base())
    if status >= 500:  # below, a problem repeats what the client sent
        problem = hidden(problem, hide)
    if request.method == "POST":  # a refusal quotes what was to be stored
        problem = masked_problem(problem, mask)
    response = _respond(to_json(problem), "application/problem+json", status)
    response.headers.extend(headers)
    return response


def _base() -> str:
    """The worker's address, as the client wrote it."""
    return request.host_url.rstrip("/")


def _add_headers(response: Response) -> Response:
    response.headers.update(security_headers())
    return response


def _respond(body: str, mimetype: str, status: int = 200) -> Response:
    data = body.encode("utf-8", "replace")
    response = Response(data, status, content_type=f"{mimetype}; charset=utf-8")
    response.headers["Vary"] = "Accept"
    response.headers["Cache-Control"] = "no-cache"
    if request.method in ("GET", "HEAD") and status == 200:
        response.set_etag(hashlib.blake2b(mimetype.encode() + data, digest_size=12).hexdigest())
        response.make_conditional(request)
    return response
