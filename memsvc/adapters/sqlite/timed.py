"""A connection that keeps to the deadline of the thread that uses it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

from memsvc.core.limits import deadline


class TimedConnection(sqlite3.Connection):
    """Starts no statement after the deadline; one that runs within `timed` is interrupted."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        deadline.check()
        cursor = super().execute(sql, parameters)
        self._cursors.add(cursor)
        return cursor

    def rollback(self) -> None:
        """Undo the transaction. Its cursors are closed first: as long as one is open, an
        interruption holds for all later statements too, the ROLLBACK included.
        """
        for cursor in list(self._cursors):
            cursor.close()
        super().rollback()

    @contextlib.contextmanager
    def timed(self, patience: float) -> Iterator[None]:
        """Within it, statements end with the deadline. They wait for other programs up to
        `patience` seconds, and no longer than the deadline allows.
        """
        with deadline.interrupted_by(self.interrupt):
            wait = round(1000 * min(patience, deadline.left(patience)))
            self.execute(f"PRAGMA busy_timeout = {wait}")
            yield
