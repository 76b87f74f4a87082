"""Processes and ports for the tests: a running worker, patient clients, waiting for an event."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import requests

PATIENCE = 120.0
"""Seconds after which a test takes something for hung; on a busy machine nothing comes near it."""

PATIENT = (PATIENCE, PATIENCE)
"""The same for a client of the worker: to connect, and to be answered."""


def patient_program(rest: str) -> list[str]:
    """A command that runs this code with clients that wait as long as a busy machine takes."""
    code = f"from memsvc.entrypoints import client; client.PROBE_SECONDS = {PATIENT}; {rest}"
    return [sys.executable, "-c", code]


def wait_until(done: Callable[[], bool]) -> None:
    """Ask again and again until it is done; an error if it hangs."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "this never happens"
        time.sleep(0.01)


def unused_port() -> int:
    """A port on which nothing listens, of those that the system gives to nobody by itself."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Worker:
    """A worker in a process of its own, over HTTP."""

    home: Path
    address: str
    process: subprocess.Popen[str]
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def port(self) -> str:
        return self.address.rsplit(":", 1)[1]

    def get(self, path: str, **given: object) -> requests.Response:
        """The answer to GET path with these parameters."""
        return self.session.get(f"{self.address}{path}", params=given, timeout=PATIENCE)

    def post(self, path: str, body: object) -> requests.Response:
        """The answer to POST path with this JSON."""
        return self.session.post(f"{self.address}{path}", json=body, timeout=PATIENCE)

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """End the worker with a signal and give its exit code."""
        self.session.close()
        if self.process.poll() is None:
            self.process.send_signal(sign)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


def start_worker(home: Path, **environment: str) -> subprocess.Popen[str]:
    """`memsvc serve` with its state in this folder, on any free port, by full text alone."""
    own = {"MEMSVC_HOME": str(home), "MEMSVC_PORT": "0", "MEMSVC_SEMANTIC": "off"}
    own["MEMSVC_DEADLINE"] = "600"  # a busy machine is no reason to stop
    return subprocess.Popen(
        [sys.executable, "-m", "memsvc", "serve"],
        env={**os.environ, **own, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def running_worker(home: Path, **environment: str) -> Iterator[Worker]:
    """A worker that listens; killed at the end unless it has ended by then."""
    process = start_worker(home, **environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    worker = Worker(home, line.split()[-1] if line else "", process)
    try:
        yield worker
    finally:
        worker.stop(signal.SIGKILL)
