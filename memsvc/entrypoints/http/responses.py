"""TODO responses."""

import hashlib

from flask import Response, request


def base_url() -> str:
    return request.host_url.rstrip("/")


def respond(body: str, mimetype: str, status: int = 200) -> Response:
    data = body.encode("utf-8", "replace")
    response = Response(data, status, content_type=f"{mimetype}; charset=utf-8")
    response.headers["Vary"] = "Accept"
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if request.method in ("GET", "HEAD") and status == 200:
        response.set_etag(hashlib.blake2b(mimetype.encode() + data, digest_size=12).hexdigest())
        response.make_conditional(request)
    return response
