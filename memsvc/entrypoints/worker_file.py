"""The file that tells clients where the worker of this store is; read and written only here."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from memsvc.configuration.home import read_private, write_private
from memsvc.configuration.settings import Settings, worker_url

_HOST: Final = re.compile(r"[0-9A-Za-z.:-]{1,255}")


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A worker as its file describes it; it may have died since."""

    pid: int
    host: str
    port: int

    @property
    def address(self) -> str:
        return worker_url(self.host, self.port)

    @property
    def is_ours(self) -> bool:
        """Whether its process runs and belongs to this user."""
        if sys.platform == "win32":  # there, asking with signal 0 would interrupt it
            return True
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True


def read_worker_file(path: Path) -> RunningWorker | None:
    """The worker that this file describes; None if there is no file of ours that makes sense."""
    try:
        told = json.loads(read_private(path))
        return _checked(told["pid"], told["host"], told["port"])
    except (ValueError, KeyError, TypeError):
        return None


def _checked(pid: Any, host: Any, port: Any) -> RunningWorker | None:
    # process ids below 1 are groups of processes, and `stop` would end them all
    numbers = type(pid) is int and type(port) is int and pid > 0 and 0 < port < 65536
    return RunningWorker(pid, host, port) if numbers and _HOST.fullmatch(host) else None


@contextlib.contextmanager
def kept_worker_file(settings: Settings, port: int) -> Iterator[None]:
    """Keep the address of this process in the file for as long as it serves."""
    worker = RunningWorker(os.getpid(), settings.host, port)
    write_private(settings.worker_file, json.dumps(asdict(worker)))
    try:
        yield
    finally:
        if read_worker_file(settings.worker_file) == worker:  # unless a later one replaced it
            settings.worker_file.unlink(missing_ok=True)
