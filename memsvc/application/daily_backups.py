"""A backup a day, made in the background of a worker."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from memsvc.core.errors import MemsvcError
from memsvc.core.ports.upkeep import Stopped

CHECK_SECONDS: Final = 600.0
"""Seconds between two looks at whether today's backup is there."""

PAUSE_SECONDS: Final = 0.001
"""The pause after each piece of work of about as long: searches go first."""

_log = logging.getLogger("memsvc")


class DailyBackups:
    """Makes today's backup when there is none yet, until it is stopped.

    `make` makes the backup if it is due and asks the given function again and again, which takes a
    short pause and is true when the work is to be broken off.
    """

    def __init__(self, make: Callable[[Callable[[], bool]], object]) -> None:
        self._make = make
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backups", daemon=True)

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Break off what is being made, and wait for the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._make(lambda: self._stopping.wait(PAUSE_SECONDS))
            except Stopped:
                return
            except MemsvcError as error:
                _log.warning("there is no backup of today: %s", error.detail)
            except Exception:
                _log.exception("there is no backup of today")
            self._stopping.wait(CHECK_SECONDS)
