"""The shape of every answer. OpenAPI shows these schemas, and the tests check every answer against
them.
"""

from enum import StrEnum

from marshmallow import INCLUDE, Schema, fields


class Result(StrEnum):
    """The shapes that an operation may answer with."""

    PAGE = "Page"
    RECORD = "Record"
    DOCUMENT = "Document"
    WRITTEN = "Written"


class Open(Schema):
    """An object that may have more fields than listed: answers may grow, never shrink."""

    class Meta:
        unknown = INCLUDE


class Tokens(Open):
    """What this answer costs, and what reading all its records in full would cost."""

    this = fields.Integer(required=True)
    full = fields.Integer(required=True)


class Window(Open):
    """The time window that applied, and how many matches are older or dated in the future."""

    days = fields.Raw(required=True, metadata={"description": "number of days, or all"})
    older_matches = fields.Integer(required=True)
    future_matches = fields.Integer()


class PageResult(Open):
    """A page of records."""

    format = fields.String(required=True)
    count = fields.Integer(required=True)
    total = fields.Integer(required=True)
    folded = fields.Integer(
        metadata={"description": "matches named in `twins` of the row that they are alike to"}
    )
    offset = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    next_offset = fields.Integer(required=True, allow_none=True)
    strategy = fields.String(required=True)
    window = fields.Nested(Window)
    tokens = fields.Nested(Tokens, required=True)
    results = fields.Raw(
        required=True, metadata={"description": "rows; for by-file, rows grouped by kind"}
    )


class RecordResult(Open):
    """One record in full."""

    id = fields.Integer(required=True)
    kind = fields.String(required=True)
    project = fields.String(required=True)
    created_at = fields.String(required=True)
    created_at_epoch = fields.Integer(required=True)


class DocumentResult(Open):
    """Any other JSON object."""


class WriteResult(Open):
    """The outcome for each record sent."""

    stored = fields.Integer(required=True)
    updated = fields.Integer(required=True)
    unchanged = fields.Integer(required=True)
    merged = fields.Integer(required=True)
    forgotten = fields.Integer(required=True)
    private = fields.Integer(required=True)
    masked = fields.Dict(
        required=True, metadata={"description": "secrets masked before storing, by kind"}
    )
    refused = fields.List(fields.Dict(), required=True)
    results = fields.List(fields.Dict(), required=True)


class Problem(Open):
    """An error (RFC 9457), with the one-line text in `error`."""

    type = fields.String(required=True)
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(required=True)
    code = fields.String(required=True)
    errors = fields.Dict(required=True)
    help = fields.String(required=True)
    error = fields.String(required=True)


RESULTS: dict[str, type[Schema]] = {
    "Tokens": Tokens,
    "Window": Window,
    Result.PAGE: PageResult,
    Result.RECORD: RecordResult,
    Result.DOCUMENT: DocumentResult,
    Result.WRITTEN: WriteResult,
    "Problem": Problem,
}
