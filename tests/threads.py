"""Threads that begin at one moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from workers import PATIENCE

Result = TypeVar("Result")


def at_once(*tasks: Callable[[], Result]) -> list[Result]:
    """What the tasks give, each run in a thread of its own from the moment that all are there."""
    gate = threading.Barrier(len(tasks), timeout=PATIENCE)

    def run(task: Callable[[], Result]) -> Result:
        gate.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        begun = [pool.submit(run, task) for task in tasks]
        return [each.result(PATIENCE) for each in begun]
