"""Errors as problem documents (RFC 9457): what was given, what is allowed, where to find help."""

import logging
import uuid
from typing import Any

from flask import g, request
from werkzeug.exceptions import HTTPException

from memsvc.api.operations import OPERATIONS
from memsvc.core.errors import (
    BadRequest,
    BodyTooLarge,
    MemsvcError,
    MethodNotAllowed,
    NoSuchRoute,
)
from memsvc.core.ports.masking import Mask, mask_errors

_log = logging.getLogger("memsvc")


def problem_of(error: Exception, base: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """The status, body and headers of the response to an error."""
    own = _own_error(error)
    return own.status, _body(own, base), _headers(own.status, error)


def _headers(status: int, error: Exception) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": 'Bearer realm="memsvc"'}
    return {"Allow": ", ".join(_methods(error))} if status == 405 else {}


def masked_problem(problem: dict[str, Any], mask: Mask) -> dict[str, Any]:
    """A problem that quotes no secret of what was given."""
    texts = {name: mask(problem[name]).text for name in ("detail", "error")}
    return {**problem, **texts, "errors": mask_errors(problem["errors"], mask)}


def _body(error: MemsvcError, base: str) -> dict[str, Any]:
    name = (request.endpoint or "").split(" ")[0]
    known = any(operation.name == name for operation in OPERATIONS)
    return problem_body(error, base, f"?operation={name}" if known else "")


def problem_body(error: MemsvcError, base: str, about: str = "") -> dict[str, Any]:
    """The problem document of an error; `about` is the query of its help."""
    return {
        "type": f"{base}/api/search/help#{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "errors": error.errors,
        "help": f"{base}/api/search/help{about}",
        "error": error.detail,
    }


def _own_error(error: Exception) -> MemsvcError:
    if isinstance(error, MemsvcError) and error.status != MemsvcError.status:
        return error
    if not isinstance(error, HTTPException):
        return _internal_error(error)
    if error.code == 404:
        return NoSuchRoute(
            f"There is no route {request.path[:200]!r}; see /api/search/help for all routes."
        )
    if error.code == 405:
        allowed = ", ".join(_methods(error))
        return MethodNotAllowed(
            f"{request.method[:20]} is not allowed on this route; allowed: {allowed}."
        )
    if error.code == 413:
        return BodyTooLarge("The body is larger than 5 MiB; split it into several requests.")
    return BadRequest(f"The request is malformed: {error.description}")


def _methods(error: Exception) -> list[str]:
    return sorted(getattr(error, "valid_methods", None) or ())


def _internal_error(error: Exception) -> MemsvcError:
    request_id = g.setdefault("request_id", uuid.uuid4().hex[:12])
    place = (request_id, request.method[:20], ascii(request.path[:200]))
    _log.error("request %s: %s %s failed", *place, exc_info=error)
    return MemsvcError(f"Something went wrong; see request {request_id} in the log.")
