"""Every error that a user can see.

MemsvcError
├── BadRequest            400  bad_parameter
│   ├── MalformedRequest       malformed_request
│   └── SourceUnreadable       source_unreadable
├── Unauthorized          401  unauthorized
├── Forbidden             403  foreign_host
├── NotFound              404  no_such_record, no_such_route
├── MethodNotAllowed      405  method_not_allowed
├── BodyTooLarge          413  body_too_large
├── NotJson               415  not_json
├── HeaderTooLarge        431  header_too_large
├── UnknownEncoding       501  unknown_encoding
├── Busy                  503  busy
├── DeadlineExceeded      503  deadline
├── StoreUnavailable      503  store_unavailable
│   ├── StoreDamaged           store_damaged
│   ├── StoreReplaced          store_replaced
│   ├── StoreTooNew            store_too_new
│   └── FulltextBroken         fulltext_broken
└── SemanticUnavailable   503  semantic_unavailable
"""

from collections.abc import Mapping
from typing import Final

MISSING: Final = "missing; it is required"
"""What an error says of a required parameter, beside its name."""


class MemsvcError(Exception):
    """An error with a sentence for people (`detail`) and a code for programs (`code`)."""

    status = 500
    code = "internal_error"
    title = "Internal error"

    def __init__(self, detail: str, errors: Mapping[str, list[str]] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = dict(errors or {})


class BadRequest(MemsvcError):
    status = 400
    code = "bad_parameter"
    title = "Bad parameter"

    @classmethod
    def of(cls, parameter: str, message: str) -> "BadRequest":
        """What is wrong with one parameter."""
        return cls(f"{parameter} {message}", {parameter: [message]})


class MalformedRequest(BadRequest):
    """What was sent is not HTTP."""

    code = "malformed_request"
    title = "Malformed request"


class SourceUnreadable(BadRequest):
    """The source of an import cannot be read at all."""

    code = "source_unreadable"
    title = "Source unreadable"


class Unauthorized(MemsvcError):
    status = 401
    code = "unauthorized"
    title = "Token missing or wrong"


class Forbidden(MemsvcError):
    status = 403
    code = "foreign_host"
    title = "Foreign host or origin"


class NotFound(MemsvcError):
    status = 404
    code = "no_such_record"
    title = "No such record"


class NoSuchRoute(NotFound):
    code = "no_such_route"
    title = "No such route"


class MethodNotAllowed(MemsvcError):
    status = 405
    code = "method_not_allowed"
    title = "Method not allowed"


class BodyTooLarge(MemsvcError):
    status = 413
    code = "body_too_large"
    title = "Body too large"


class NotJson(MemsvcError):
    status = 415
    code = "not_json"
    title = "Body is not JSON"


class HeaderTooLarge(MemsvcError):
    status = 431
    code = "header_too_large"
    title = "Header too large"


class UnknownEncoding(MemsvcError):
    """The body is sent in a Transfer-Encoding that the worker does not know."""

    status = 501
    code = "unknown_encoding"
    title = "Unknown transfer encoding"


class Busy(MemsvcError):
    """Too many requests wait already; nothing of this one was done."""

    status = 503
    code = "busy"
    title = "Busy"


class DeadlineExceeded(MemsvcError):
    """An answer took too long and was stopped; a write was undone."""

    status = 503
    code = "deadline"
    title = "Deadline exceeded"


class StoreUnavailable(MemsvcError):
    status = 503
    code = "store_unavailable"
    title = "Store unavailable"


class StoreDamaged(StoreUnavailable):
    code = "store_damaged"
    title = "Store damaged"


class StoreReplaced(StoreUnavailable):
    """The file was deleted or replaced while it was open."""

    code = "store_replaced"
    title = "Store replaced or deleted"


class StoreTooNew(StoreUnavailable):
    code = "store_too_new"
    title = "Store from a newer version"


class FulltextBroken(StoreUnavailable):
    """A full-text index cannot be searched; the records are whole."""

    code = "fulltext_broken"
    title = "Full-text index broken"


class SemanticUnavailable(MemsvcError):
    """The semantic index or its model cannot be used; `detail` says why in one sentence."""

    status = 503
    code = "semantic_unavailable"
    title = "Semantic search unavailable"


ERRORS: tuple[type[MemsvcError], ...] = (
    BadRequest,
    MalformedRequest,
    SourceUnreadable,
    Unauthorized,
    Forbidden,
    NotFound,
    NoSuchRoute,
    MethodNotAllowed,
    BodyTooLarge,
    NotJson,
    HeaderTooLarge,
    UnknownEncoding,
    Busy,
    DeadlineExceeded,
    StoreUnavailable,
    StoreDamaged,
    StoreReplaced,
    StoreTooNew,
    FulltextBroken,
    SemanticUnavailable,
    MemsvcError,
)
"""All error classes, in the order that help shows them."""
