"""Stores, clients and a running worker for the tests."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient
from meaning import indexed
from samples import NOW, fill, services_over

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.services import Services
from memsvc.entrypoints.http.app import create_app


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """The samples, shared by all tests that only read."""
    opened = open_store(tmp_path_factory.mktemp("samples") / "memsvc.db")
    fill(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def services(store: SqliteStore) -> Services:
    return services_over(store)


@pytest.fixture(scope="session")
def client(services: Services) -> FlaskClient:
    """The routes over the shared samples."""
    return create_app(services).test_client()


@pytest.fixture(scope="session")
def meaning_client(store: SqliteStore) -> FlaskClient:
    """The routes over the shared samples, with semantic search."""
    return create_app(Services(store, lambda: NOW, indexed(store))).test_client()


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store of the test's own."""
    opened = open_store(tmp_path / "memsvc.db")
    yield opened
    opened.close()


@pytest.fixture
def own_client(own_store: SqliteStore) -> FlaskClient:
    """The routes over an empty store, to write to."""
    return create_app(services_over(own_store)).test_client()


@pytest.fixture
def ask(client: FlaskClient) -> Callable[..., Any]:
    """Ask the samples: the JSON of GET path with these parameters."""

    def get(path: str, **given: Any) -> Any:
        response = client.get(path, query_string=given)
        assert response.status_code == 200, response.get_data(as_text=True)
        return response.get_json()

    return get


@pytest.fixture
def refuse(client: FlaskClient) -> Callable[..., Any]:
    """Ask the samples for what must be refused: the problem of GET path."""

    def get(path: str, **given: Any) -> Any:
        response = client.get(path, query_string=given)
        assert response.status_code == 400, response.get_data(as_text=True)
        return response.get_json()

    return get


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Move the worker to another time zone for one test."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@dataclass
class Worker:
    """A worker in a process of its own, over HTTP."""

    home: Path
    address: str
    process: subprocess.Popen[str]
    session: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str, **given: Any) -> requests.Response:
        return self.session.get(f"{self.address}{path}", params=given, timeout=30)

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """End the worker with a signal and give its exit code."""
        self.session.close()
        if self.process.poll() is None:
            self.process.send_signal(sign)
        self.process.communicate(timeout=30)
        return self.process.returncode


def start_worker(home: Path, **environment: str) -> subprocess.Popen[str]:
    """`memsvc serve` with its state in this folder, on any free port."""
    return subprocess.Popen(
        [sys.executable, "-m", "memsvc", "serve"],
        env={**os.environ, "MEMSVC_HOME": str(home), "MEMSVC_PORT": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Worker]:
    """A worker over an empty store that listens on a free port."""
    process = start_worker(tmp_path)
    assert process.stdout is not None
    line = process.stdout.readline()
    worker = Worker(tmp_path, line.split()[-1] if line else "", process)
    yield worker
    worker.stop(signal.SIGKILL)


@pytest.fixture
def free_port() -> str:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[str]:
    """A port where something listens and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield str(listener.getsockname()[1])
