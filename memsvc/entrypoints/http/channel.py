"""One connection: how long it may be silent, and what it answers to what is not HTTP."""

import time
from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, WSGITask

from memsvc.answers.page import to_json
from memsvc.configuration.settings import worker_url
from memsvc.core.errors import (
    BodyTooLarge,
    Busy,
    HeaderTooLarge,
    MalformedRequest,
    MemsvcError,
    UnknownEncoding,
)
from memsvc.entrypoints.http.headers import security_headers
from memsvc.entrypoints.http.lanes import RETRY_SECONDS
from memsvc.entrypoints.http.problems import problem_body

ARRIVED: Final = "memsvc.arrived"
"""The key of the WSGI environment with the moment (monotonic) at which a request was complete."""

MAX_HEADER: Final = 256 * 1024
"""Bytes of a request line with its headers; the longest query takes a tenth when escaped."""

MAX_BODY: Final = 64 * 1024 * 1024
"""Bytes of a body beyond which the worker hangs up; below it, the application answers in words."""

MAX_SILENCE: Final = 10.0
"""Seconds that a new connection may send nothing."""

MAX_RECEIVING: Final = 30.0
"""Seconds that a request may take to arrive, and that a client may read nothing of its answer."""

MAX_IDLE: Final = 60.0
"""Seconds that a connection may be kept between two requests."""


class RequestTask(WSGITask):
    """A request for the application, which is told when it arrived."""

    def get_environment(self) -> Any:
        environment = super().get_environment()
        environment[ARRIVED] = self.request.arrived  # type: ignore[attr-defined]
        return environment


class ProblemTask(ErrorTask):
    """A refusal as a problem document: by waitress, which then hangs up, or by a full lane."""

    def execute(self) -> None:
        given: Any = self.request.error  # type: ignore[attr-defined]
        error = given if isinstance(given, MemsvcError) else _explained(given.code, given.body)
        server: Any = self.channel.server
        base = worker_url(server.effective_host, int(server.effective_port))
        body = to_json(problem_body(error, base)).encode()
        self.status = f"{error.status} {error.title}"
        self.response_headers = [
            ("Content-Type", "application/problem+json; charset=utf-8"),
            ("Cache-Control", "no-store"),
            *security_headers().items(),
        ]
        if isinstance(error, Busy):
            self.response_headers.append(("Retry-After", str(RETRY_SECONDS)))
        else:
            self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


def _explained(code: int, reason: str) -> MemsvcError:
    """The error for what waitress refuses."""
    if code == 413:
        return BodyTooLarge("The body is larger than 5 MiB; split it into several requests.")
    if code == 431:
        return HeaderTooLarge(
            f"The request line and headers are larger than {MAX_HEADER // 1024} KiB; shorten the "
            "query, or send ids in the body: POST /api/observations/batch."
        )
    if code == 501:
        return UnknownEncoding("The only Transfer-Encoding is chunked; or send a Content-Length.")
    if code >= 500:
        return MemsvcError("Something went wrong; see the worker's log.")
    return MalformedRequest(f"The request is not valid HTTP: {reason[:80]}.")


class Channel(HTTPChannel):
    """One connection."""

    task_class = RequestTask
    error_task_class = ProblemTask
    begun = 0.0
    """When the request that is being received began, in seconds since 1970; 0 before the first."""

    def received(self, data: bytes) -> bool:
        if self.request is None:
            self.begun = time.time()
        return super().received(data)

    def is_stale(self, now: float) -> bool:
        """Whether the client has been silent, slow or idle for too long."""
        if self.requests:
            return False
        if self.request is not None:
            return self.begun < now - MAX_RECEIVING
        if not self.begun:
            return self.creation_time < now - MAX_SILENCE
        return self.last_activity < now - (MAX_RECEIVING if self.total_outbufs_len else MAX_IDLE)

    def is_answering(self) -> bool:
        """Whether a request is being answered, or its answer being sent."""
        return bool(self.requests or self.total_outbufs_len)
