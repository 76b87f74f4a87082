"""Three lanes for requests, so that none waits for those of another kind.

Reads never wait for writes, of which SQLite takes one at a time anyway, and what costs nothing,
such as `/api/health` and refusals, waits for neither.
"""

import time
from typing import Any, Final

from waitress.task import ThreadedTaskDispatcher

from memsvc.api.operations import OPERATIONS
from memsvc.core.errors import Busy

MAX_WAITING_READS: Final = 128
"""Reads that may wait for a thread; within the deadline four threads answer far more."""

MAX_WAITING_WRITES: Final = 32
"""Writes that may wait for the one before them."""

RETRY_SECONDS: Final = 1
"""Seconds after which a client that was told `busy` may try again."""

_READING: Final = frozenset(
    (operation.method, path)
    for operation in OPERATIONS
    if operation.body != "records" and operation.method != "DELETE"
    for path in (operation.path, *operation.aliases)
)


class Lanes:
    """What waitress asks of a task dispatcher; `threads` read at the same time."""

    def __init__(self, threads: int) -> None:
        self._quick, self._writes, self._reads = (_lane(number) for number in (1, 1, threads))

    def add_task(self, channel: Any) -> None:
        """Let the first request of a channel wait in its lane, or be refused if that is full."""
        request = channel.requests[0]
        request.arrived = time.monotonic()
        lane = self._lane_of(request)
        most = MAX_WAITING_WRITES if lane is self._writes else MAX_WAITING_READS
        if lane is not self._quick and len(lane.queue) >= most:
            request.error = Busy(
                f"{most} requests wait already; nothing was done for this one. Send it again in "
                f"{RETRY_SECONDS} s, and fewer at the same time."
            )
            lane = self._quick
        lane.add_task(channel)

    def shutdown(self) -> None:
        """Let the threads end after what they are doing; nothing else is begun."""
        for lane in (self._reads, self._writes, self._quick):
            lane.set_thread_count(0)

    def _lane_of(self, request: Any) -> ThreadedTaskDispatcher:
        if request.error or _is_health(request):
            return self._quick
        path = request.path.rstrip("/")
        changes = request.command not in ("GET", "HEAD") and (request.command, path) not in _READING
        return self._writes if changes else self._reads


def _is_health(request: Any) -> bool:
    return request.command in ("GET", "HEAD") and request.path.rstrip("/") == "/api/health"


def _lane(threads: int) -> ThreadedTaskDispatcher:
    lane = ThreadedTaskDispatcher()
    lane.set_thread_count(threads)
    return lane
