"""Stores, clients and a running worker for the tests."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import profiles  # noqa: F401 - before any property test is made
import pytest
from fake_semantic import indexed
from flask.testing import FlaskClient
from samples import NOW, fill, new_store, services_over
from workers import PATIENCE, PATIENT, Worker, running_worker, unused_port

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.services import Services
from memsvc.entrypoints.http.app import create_app


@pytest.fixture(scope="session", autouse=True)
def patient() -> Iterator[None]:
    """Commands wait for a worker as long as a busy machine takes, not as long as people do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memsvc.entrypoints.client.PROBE_SECONDS", PATIENT)
        patch.setattr("memsvc.entrypoints.client.ANSWER_SECONDS", PATIENT)
        patch.setattr("memsvc.entrypoints.worker_process.MAX_STOP", PATIENCE)
        patch.setattr("memsvc.entrypoints.worker_process.MAX_STALL", PATIENCE)
        patch.setattr("memsvc.configuration.place.MAX_SECONDS", PATIENCE)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_project() -> Iterator[None]:
    """Commands and tools stand in the root folder, which is nobody's project."""
    with contextlib.chdir("/"):
        yield


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
def semantic_client(store: SqliteStore) -> FlaskClient:
    """The routes over the shared samples, with semantic search."""
    return create_app(Services(store, lambda: NOW, indexed(store))).test_client()


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """An empty store of the test's own, where it is the samples' present moment."""
    monkeypatch.setattr("memsvc.adapters.sqlite.records.now_ms", lambda: NOW)
    opened = new_store(tmp_path / "memsvc.db")
    yield opened
    opened.close()


@pytest.fixture
def vectors(own_store: SqliteStore) -> SqliteVectors:
    """The vectors kept in the test's own store."""
    return SqliteVectors(own_store.connections)


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


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Worker]:
    """A worker over an empty store that listens on a free port; it searches by full text alone."""
    with running_worker(tmp_path) as worker:
        yield worker


@pytest.fixture
def live_semantic(tmp_path: Path) -> Iterator[Worker]:
    """The same with semantic search, which indexes in the background."""
    with running_worker(tmp_path, MEMSVC_SEMANTIC="chroma") as worker:
        yield worker


@pytest.fixture
def free_port() -> str:
    """A port on which nothing listens."""
    return str(unused_port())


@pytest.fixture
def silent_port() -> Iterator[str]:
    """A port where something listens and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield str(listener.getsockname()[1])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of the test's own, with full text alone."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("MEMSVC_HOME", str(folder))
    monkeypatch.setenv("MEMSVC_SEMANTIC", "off")
    return folder
