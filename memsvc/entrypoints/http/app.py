"""The Flask edge: requests in, use cases, answers and problems out."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, render_template, request
from werkzeug.exceptions import HTTPException

from memsvc.answers.budget import fit
from memsvc.answers.page import Page, to_json, write_json
from memsvc.answers.text import document_text, record_text
from memsvc.api import help as catalog
from memsvc.api.openapi import build_openapi
from memsvc.api.operations import OPERATIONS, Operation
from memsvc.application.services import Services
from memsvc.core.errors import BadRequest, Forbidden, MemsvcError, NotJson
from memsvc.entrypoints.http.problems import bug, http_problem, own_problem
from memsvc.entrypoints.http.responses import base_url, respond
from memsvc.schemas.parameters import load_parameters

LARGEST_BODY = 5 * 1024 * 1024


LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


def create_app(services: Services, host: str = "127.0.0.1") -> Flask:
    """The web application over these services; `host` is the address it will listen on."""
    app = Flask(__package__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    # the same characters mean the same route, whatever a client appends
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.before_request(lambda: _refuse_foreign(host))
    for operation in OPERATIONS:
        for path in (operation.path, *operation.aliases):
            app.add_url_rule(
                path,
                f"{operation.name} {operation.method} {path}",
                _view(services, operation),
                methods=[operation.method],
            )
    app.add_url_rule("/openapi.json", "openapi", _openapi)
    app.add_url_rule("/", "root", _view(services, _operation("help")))
    app.register_error_handler(MemsvcError, own_problem)
    app.register_error_handler(HTTPException, http_problem)
    app.register_error_handler(Exception, bug)
    return app


def _operation(name: str) -> Operation:
    return next(operation for operation in OPERATIONS if operation.name == name)


def _refuse_foreign(host: str) -> None:
    """Keep pages of other sites out: only loopback names may be Host or Origin."""
    allowed = LOOPBACK | {host}
    if _host_name(f"//{request.host}") not in allowed and host not in ("0.0.0.0", "::"):
        raise Forbidden(f"Host {request.host[:80]!r} is not served; use 127.0.0.1 or localhost.")
    origin = request.headers.get("Origin")
    if origin and _host_name(origin) not in allowed:
        raise Forbidden(f"Origin {origin[:80]!r} is not served; use 127.0.0.1 or localhost.")


def _host_name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _view(services: Services, operation: Operation) -> Callable[..., Response]:
    def view(**path_parameters: str) -> Response:
        given = _given(operation, path_parameters)
        if operation.name == "help":
            return _help(services, operation, given)
        answer = operation.run(services, given)
        if isinstance(answer, Page):
            return _page(operation, answer, given)
        if operation.name == "readiness" and not answer["ready"]:
            return respond(to_json(answer), "application/json", 503)
        if _wants_text(operation, given):
            is_record = operation.path.endswith("<id>") and operation.method == "GET"
            text = record_text(answer) if is_record else f"{document_text(answer)}\n"
            return respond(text, "text/markdown")
        return respond(to_json(answer), "application/json", 201 if answer.get("stored") else 200)

    return view


def _given(operation: Operation, path_parameters: dict[str, str]) -> dict[str, Any]:
    pairs: Iterable[tuple[str, Any]] = [
        *path_parameters.items(),
        *request.args.items(multi=True),
    ]
    if operation.body == "parameters":
        pairs = [*pairs, *_json_pairs()]
    given = load_parameters(operation.schema, pairs)
    if operation.body == "records":
        given["body"] = _json_body()
    return given


def _json_pairs() -> Iterator[tuple[str, Any]]:
    """The parameters in a JSON object: a list repeats one, null leaves it out."""
    body = _json_body()
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.", {"body": ["expected a JSON object"]})
    for name, value in body.items():
        values = value if isinstance(value, list) else [value]
        yield from ((name, item) for item in values if item is not None)


def _json_body() -> Any:
    if not request.is_json:
        given = request.mimetype or "no content type"
        raise NotJson(f"The body is {given!r}; send JSON with Content-Type: application/json.")
    try:
        return json.loads(request.get_data())
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}", {"body": [str(error)]}) from None


def _wants_text(operation: Operation, given: dict[str, Any]) -> bool:
    if given.get("render"):
        return bool(given["render"] == "text")
    return _accepted(operation) in ("text/markdown", "text/plain")


def _accepted(operation: Operation) -> str:
    offered = ["application/json", "text/markdown", "text/plain", "text/html"]
    if operation.text_first:
        offered = ["text/markdown", "text/plain", "application/json"]
    return request.accept_mimetypes.best_match(offered) or offered[0]


def _page(operation: Operation, page: Page, given: dict[str, Any]) -> Response:
    bounds = [bound for bound in (given.get("max_tokens"), operation.ceiling) if bound]
    budget = min(bounds, default=None)
    if _wants_text(operation, given):
        return respond(fit(page, budget, operation.write), "text/markdown")
    return respond(fit(page, budget, write_json), "application/json")


def _help(services: Services, operation: Operation, given: dict[str, Any]) -> Response:
    catalogue = catalog.build_help(services, given, base_url())
    if _wants_text(operation, given):
        return respond(catalog.help_text(catalogue), "text/markdown")
    if _accepted(operation) == "text/html" and not given.get("render"):
        codes = catalog.error_codes()
        return respond(render_template("help.html", **catalogue, codes=codes), "text/html")
    return respond(to_json(catalogue), "application/json")


def _openapi() -> Response:
    return respond(to_json(build_openapi(base_url())), "application/json")
