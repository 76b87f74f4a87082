"""The Flask application: routes requests to operations and renders their answers."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, render_template, request
from werkzeug.exceptions import HTTPException

from memsvc.answers.budget import fit
from memsvc.answers.page import Page, to_json, write_json
from memsvc.api.help import error_codes, find_operation
from memsvc.api.openapi import build_openapi
from memsvc.api.operation import Answer, Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.parameter_facts import facts_of
from memsvc.api.requests import Call
from memsvc.application.services import Services
from memsvc.core.errors import BadRequest, Forbidden, MemsvcError, NotJson
from memsvc.core.ports.masking import Mask
from memsvc.entrypoints.http.problems import masked_problem, problem_of
from memsvc.schemas.parameters import load_parameters

MAX_BODY = 5 * 1024 * 1024
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})

TEXT_TYPES = ("text/markdown", "text/plain")
OFFERED = ("application/json", *TEXT_TYPES, "text/html")
TEXT_FIRST = (*TEXT_TYPES, "application/json")


def create_app(services: Services, host: str = "127.0.0.1") -> Flask:
    """The Flask application for these services; `host` is the address that it listens on."""
    app = Flask(__package__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    # a trailing or double slash never redirects
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.add_template_global(error_codes)
    app.add_template_filter(facts_of)
    app.before_request(lambda: _refuse_foreign(host))
    for operation in OPERATIONS:
        for path in (operation.path, *operation.aliases):
            _add_route(app, services, operation, path)
    if home := find_operation(OPERATIONS, "help"):
        _add_route(app, services, home, "/")
    app.add_url_rule("/openapi.json", "openapi", _openapi)
    for error in (MemsvcError, HTTPException, Exception):
        app.register_error_handler(error, partial(_problem, services.mask))
    return app


def _add_route(app: Flask, services: Services, operation: Operation, path: str) -> None:
    view = _view(services, operation)
    endpoint = f"{operation.name} {operation.method} {path}"
    app.add_url_rule(path, endpoint, view, methods=[operation.method])


def _view(services: Services, operation: Operation) -> Callable[..., Response]:
    def view(**path_parameters: str) -> Response:
        call = _call(services, operation, path_parameters)
        answer = operation.run(services, operation.read(call))
        return _answer(operation, answer, call)

    return view


def _refuse_foreign(host: str) -> None:
    """Refuse requests from other sites: Host and Origin must be loopback names."""
    allowed = LOOPBACK | {host}
    if _host_name(f"//{request.host}") not in allowed and host not in ("0.0.0.0", "::"):
        raise Forbidden(f"Host {request.host[:80]!r} is not allowed; use 127.0.0.1 or localhost.")
    origin = request.headers.get("Origin")
    if origin and _host_name(origin) not in allowed:
        raise Forbidden(f"Origin {origin[:80]!r} is not allowed; use 127.0.0.1 or localhost.")


def _host_name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


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
        given = request.mimetype or "no content type"
        raise NotJson(
            f"The content type of the body is {given!r}; send JSON with "
            "Content-Type: application/json."
        )
    try:
        return json.loads(request.get_data())
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"The body is not valid JSON: {error}", {"body": [str(error)]}) from None


# -- what goes out --------------------------------------------------------------------------------


def _answer(operation: Operation, answer: Answer, call: Call) -> Response:
    """An answer in the requested format: JSON, text, or a page for a browser."""
    form = _form(operation, call)
    if form == "text/html":
        return _respond(render_template(operation.html, **answer), form)  # type: ignore[arg-type]
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


def _openapi() -> Response:
    return _respond(to_json(build_openapi(_base())), "application/json")


def _problem(mask: Mask, error: Exception) -> Response:
    status, problem, headers = problem_of(error, _base())
    if request.method == "POST":  # a refusal quotes what was to be stored
        problem = masked_problem(problem, mask)
    response = _respond(to_json(problem), "application/problem+json", status)
    response.headers.extend(headers)
    return response


def _base() -> str:
    """The worker's address, as the client wrote it."""
    return request.host_url.rstrip("/")


def _respond(body: str, mimetype: str, status: int = 200) -> Response:
    data = body.encode("utf-8", "replace")
    response = Response(data, status, content_type=f"{mimetype}; charset=utf-8")
    response.headers["Vary"] = "Accept"
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if request.method in ("GET", "HEAD") and status == 200:
        response.set_etag(hashlib.blake2b(mimetype.encode() + data, digest_size=12).hexdigest())
        response.make_conditional(request)
    return response
