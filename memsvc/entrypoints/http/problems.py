"""TODO problems."""

import logging
import uuid

from flask import Response, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as MethodNotAllowedByRoute

from memsvc.answers.page import to_json
from memsvc.api.operations import OPERATIONS, Operation
from memsvc.core.errors import BadRequest, BodyTooLarge, MemsvcError, MethodNotAllowed, NoSuchRoute
from memsvc.entrypoints.http.responses import base_url, respond

_log = logging.getLogger("memsvc")


def _problem(error: MemsvcError) -> Response:
    help_url = f"{base_url()}/api/search/help"
    if operation := _requested():
        help_url += f"?operation={operation.name}"
    body = {
        "type": f"{base_url()}/api/search/help#{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "errors": error.errors,
        "help": help_url,
        "error": error.detail,
    }
    return respond(to_json(body), "application/problem+json", error.status)


def _requested() -> Operation | None:
    endpoint = (request.endpoint or "").split(" ")[0]
    return next((operation for operation in OPERATIONS if operation.name == endpoint), None)


def own_problem(error: MemsvcError) -> Response:
    return bug(error) if error.status == MemsvcError.status else _problem(error)


def http_problem(error: HTTPException) -> Response:
    response = _problem(_own_error(error))
    if isinstance(error, MethodNotAllowedByRoute):
        response.allow.update(error.valid_methods or ())
    return response


def _own_error(error: HTTPException) -> MemsvcError:
    if error.code == 404:
        return NoSuchRoute(f"There is no route {request.path[:200]!r}; see /api/search/help.")
    if error.code == 405:
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        return MethodNotAllowed(f"{request.method} is not allowed here; allowed: {allowed}.")
    if error.code == 413:
        return BodyTooLarge("The body is larger than 5 MiB; send it in several requests.")
    return BadRequest(f"The request cannot be read: {error.description}")


def bug(error: Exception) -> Response:
    request_id = g.setdefault("request_id", uuid.uuid4().hex[:12])
    _log.exception("request %s: %s %s failed", request_id, request.method, request.path)
    return _problem(MemsvcError(f"Something went wrong; the log says more under {request_id}."))
