"""Deadlines: work that a thread does past its deadline is stopped.

Python code calls `check` from time to time. A call that cannot do so, such as an SQL statement, is
run within `interrupted_by`: one thread of the process then interrupts it from outside.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeVar

from memsvc.core.errors import DeadlineExceeded

AGAIN_SECONDS: Final = 0.02
"""Pause between two interruptions: one that comes between two statements is lost."""

Interrupt = Callable[[], None]
Default = TypeVar("Default")


@dataclass(eq=False)
class Deadline:
    """When the work of one thread began and must end (monotonic seconds), and what to advise."""

    began: float
    end: float
    advice: str

    def left(self) -> float:
        """The seconds that remain, 0 when it is over."""
        return max(0.0, min(self.end, _watch.latest) - time.monotonic())

    def exceeded(self) -> DeadlineExceeded:
        """The error that says how long the work ran and what to do."""
        ran = time.monotonic() - self.began
        return DeadlineExceeded(f"Stopped after {ran:.1f} s, at the deadline; {self.advice}.")


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextlib.contextmanager
def within(
    seconds: float, advice: str = "try again", *, began: float | None = None
) -> Iterator[None]:
    """Within it, this thread's work is stopped `seconds` after it `began`, which is now by default.

    A deadline inside another cannot extend it; an infinite one is none.
    """
    start = time.monotonic() if began is None else began
    outer = _current.get()
    end = min(start + seconds, outer.end if outer else math.inf)
    token = _current.set(Deadline(start, end, advice) if end < math.inf else None)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Raise DeadlineExceeded if this thread's deadline is over."""
    current = _current.get()
    if current and not current.left():
        raise current.exceeded()


def left(default: Default) -> float | Default:
    """The seconds that this thread has left; the default without a deadline."""
    current = _current.get()
    return current.left() if current else default


def exceeded() -> DeadlineExceeded:
    """The error for work of this thread that was interrupted."""
    current = _current.get()
    return current.exceeded() if current else DeadlineExceeded("The work was interrupted.")


@contextlib.contextmanager
def interrupted_by(interrupt: Interrupt) -> Iterator[None]:
    """Within it, `interrupt` is called, again and again, once this thread's deadline is over."""
    current = _current.get()
    if current is None:
        yield
        return
    check()
    _watch.add(current, interrupt)
    try:
        yield
    finally:
        _watch.remove(current, interrupt)


def end_all_within(seconds: float) -> None:
    """Let every deadline of this process, later ones too, end within `seconds` from now."""
    _watch.hasten(seconds)


class _Watch:
    """The thread that interrupts what runs past its deadline.

    A callback of SQLite would do without it but must hold Python's lock: while another thread is
    busy, statements then take three to six times as long.
    """

    def __init__(self) -> None:
        self.latest = math.inf
        self._changed = threading.Condition()
        self._watched: dict[Deadline, list[Interrupt]] = {}
        self._wakes = math.inf
        self._thread: threading.Thread | None = None

    def add(self, deadline: Deadline, interrupt: Interrupt) -> None:
        with self._changed:
            self._watched.setdefault(deadline, []).append(interrupt)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            if deadline.end < self._wakes:
                self._changed.notify()

    def remove(self, deadline: Deadline, interrupt: Interrupt) -> None:
        with self._changed:
            self._watched[deadline].remove(interrupt)
            if not self._watched[deadline]:
                del self._watched[deadline]

    def hasten(self, seconds: float) -> None:
        with self._changed:
            self.latest = time.monotonic() + seconds
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                pause = self._pause()
                self._wakes = time.monotonic() + pause
                self._changed.wait(pause if pause < math.inf else None)
                for deadline, interrupts in self._watched.items():
                    if not deadline.left():
                        _call_all(interrupts)

    def _pause(self) -> float:
        """Seconds until the next interruption."""
        soonest = min((deadline.left() for deadline in self._watched), default=math.inf)
        return max(AGAIN_SECONDS, soonest)


def _call_all(interrupts: list[Interrupt]) -> None:
    for interrupt in interrupts:
        with contextlib.suppress(Exception):  # such as a connection that was closed meanwhile
            interrupt()


_watch: Final = _Watch()
