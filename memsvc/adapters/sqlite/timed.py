"""A connection that keeps to the deadline of the thread that uses it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from memsvc.core.limits import deadline


class TimedConnection(sqlite3.Connection):
    """Starts no statement after the deadline; one that runs within `timed` is interrupted."""

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        deadline.check()
        return super().execute(sql, parameters)

    @contextlib.contextmanager
    def timed(self, patience: float) -> Iterator[None]:
        """Within it, statements end with the deadline. They wait for other programs up to
        `patience` seconds, and no longer than the deadline allows.
        """
        with deadline.interrupted_by(self.interrupt):
            wait = round(1000 * min(patience, deadline.left(patience)))
            self.execute(f"PRAGMA busy_timeout = {wait}")
            yield
