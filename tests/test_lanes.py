"""Nobody waits for another: reads, writes and health, silent clients, the end, a second worker."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from workers import PATIENCE, Worker, running_worker, start_worker, wait_until

from memsvc.entrypoints.http.channel import MAX_HEADER
from memsvc.entrypoints.http.lanes import MAX_WAITING_WRITES


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """Within it, another program holds the store's lock for writing."""
    with contextlib.closing(sqlite3.connect(home / "memsvc.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


class Answers:
    """Requests in threads of their own, and what they were answered."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.threads: list[threading.Thread] = []
        self.got: list[requests.Response] = []

    def post(self, title: str) -> None:
        """Send one record without waiting for the answer."""
        thread = threading.Thread(target=self._post, args=(title,), daemon=True)
        thread.start()
        self.threads.append(thread)

    def _post(self, title: str) -> None:
        address, body = f"{self.worker.address}/api/observations", {"title": title}
        with contextlib.suppress(requests.ConnectionError):
            self.got.append(requests.post(address, json=body, timeout=PATIENCE))

    def wait(self) -> list[int]:
        """The status of every answer, once all are there."""
        for thread in self.threads:
            thread.join(PATIENCE)
        return sorted(response.status_code for response in self.got)


def test_reads_and_health_are_answered_while_writes_wait(live: Worker) -> None:
    writes = Answers(live)
    with locked(live.home):
        for number in range(8):  # more than there are threads
            writes.post(f"marmot {number}")
        for _ in range(20):
            assert live.get("/api/health").status_code == 200
            assert live.get("/api/search", query="marmot").json()["total"] == 0
        assert writes.got == []
    assert writes.wait() == [201] * 8
    assert live.get("/api/search", query="marmot").json()["total"] == 8


def test_writers_beyond_the_bound_are_told_at_once_when_to_come_back(live: Worker) -> None:
    writes = Answers(live)
    with locked(live.home):
        for number in range(MAX_WAITING_WRITES + 10):
            writes.post(f"marmot {number}")
        wait_until(lambda: len(writes.got) >= 8)  # one is being written, perhaps one is on its way
        refused = writes.got[0]
        assert (refused.status_code, refused.json()["code"]) == (503, "busy")
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["Content-Type"] == "application/problem+json; charset=utf-8"
        assert live.get("/api/health").status_code == 200
    told = writes.wait()
    assert set(told) == {201, 503}
    assert live.get("/api/search", query="marmot").json()["total"] == told.count(201)


def test_a_write_that_another_program_holds_up_is_refused_in_time(tmp_path: Path) -> None:
    with running_worker(tmp_path, MEMSVC_DEADLINE="1") as worker:
        with locked(worker.home):
            problem = worker.post("/api/observations", {"title": "marmot"}).json()
        assert problem["status"] == 503
        assert problem["code"] in ("store_unavailable", "deadline")
        assert worker.post("/api/observations", {"title": "marmot"}).status_code == 201


def test_hundreds_of_silent_connections_block_nobody(live: Worker) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(500):
            silent = stack.enter_context(_connected(live))
            if number % 2:
                silent.sendall(b"POST /api/observations HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        assert live.get("/api/health").status_code == 200
        assert live.post("/api/observations", {"title": "marmot"}).status_code == 201
        assert live.get("/api/search", query="marmot").json()["total"] == 1


def test_a_client_that_reads_nothing_holds_no_thread(live: Worker) -> None:
    records = [{"title": f"marmot {n}", "narrative": "x" * 40_000} for n in range(100)]
    assert live.post("/api/observations", records).status_code == 201
    path = "/api/search/observations?query=marmot&limit=100&format=full"
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        for _ in range(8):  # more than there are threads, each with more than the sockets hold
            stack.enter_context(_connected(live)).sendall(request * 8)
        assert live.get("/api/search", query="marmot").json()["total"] == 100


def _connected(worker: Worker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(worker.port)), timeout=PATIENCE)


def _answer(worker: Worker, sent: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of the answer to these bytes, after which the worker hangs up."""
    with _connected(worker) as connection:
        connection.sendall(sent)
        said = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), json.loads(body)


POST = b"POST /api/observations HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "malformed_request"),
        (b"get / HTTP/1.1\r\n\r\n", 400, "malformed_request"),
        (POST + b"Content-Length: -1\r\n\r\n", 400, "malformed_request"),
        (POST + b"Content-Length: 1, 2\r\n\r\n", 400, "malformed_request"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "malformed_request"),
        (POST + b"Bad\rHeader: 1\r\n\r\n", 400, "malformed_request"),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 501, "unknown_encoding"),
        (POST + b"Content-Length: 99999999999\r\n\r\n", 413, "body_too_large"),
        (POST + b"X: " + b"a" * MAX_HEADER + b"\r\n\r\n", 431, "header_too_large"),
    ],
    ids=lambda value: value[:60] if isinstance(value, bytes) else None,
)
def test_what_is_not_http_is_a_problem_too(
    shared: Worker, sent: bytes, status: int, code: str
) -> None:
    told, headers, problem = _answer(shared, sent)
    assert (told, problem["status"], problem["code"]) == (status, status, code)
    assert headers["Content-Type"] == "application/problem+json; charset=utf-8"
    assert headers["Connection"] == "close"
    assert headers["X-Frame-Options"] == "DENY"
    assert problem["help"] == f"{shared.address}/api/search/help"
    assert "waitress" not in json.dumps(problem)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker for the tests that only send nonsense."""
    with running_worker(tmp_path_factory.mktemp("shared")) as worker:
        yield worker


# -- the end --------------------------------------------------------------------------------------


def test_a_signal_ends_the_worker_although_a_write_waits_and_clients_are_silent(
    live: Worker,
) -> None:
    writes = Answers(live)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(_connected(live))
        stack.enter_context(locked(live.home))
        writes.post("marmot")
        wait_until(lambda: live.get("/api/health").ok)
        assert live.stop(signal.SIGTERM) == 0
        assert writes.wait() in ([503], [])
    assert not (live.home / "worker.json").exists()


def test_a_worker_that_embeds_ends_at_a_signal_and_goes_on_at_the_next_start(
    live_semantic: Worker,
) -> None:
    words = "payment ledger retry queue marmot " * 400
    records = [{"title": f"marmot {number}", "narrative": words} for number in range(50)]
    assert live_semantic.post("/api/observations", records).status_code == 201
    assert live_semantic.stop(signal.SIGTERM) == 0
    with running_worker(live_semantic.home) as again:
        assert again.get("/api/search", query="marmot").json()["total"] == 50


# -- a second worker ------------------------------------------------------------------------------


def test_a_second_worker_says_who_holds_the_home_and_leaves_it_alone(live: Worker) -> None:
    told = (live.home / "worker.json").read_text("utf-8")
    second = start_worker(live.home)
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode not in (0, None)
    assert f"process {live.process.pid}" in said
    assert live.address in said
    assert len(said.strip().splitlines()) == 1
    assert (live.home / "worker.json").read_text("utf-8") == told
    assert live.get("/api/health").ok


def test_the_home_of_a_killed_worker_is_free(live: Worker) -> None:
    live.stop(signal.SIGKILL)
    assert (live.home / "worker.json").exists()
    with running_worker(live.home) as again:
        assert again.get("/api/health").ok


def test_the_home_of_a_worker_that_stops_is_free_for_the_next(live: Worker) -> None:
    os.kill(live.process.pid, signal.SIGTERM)
    wait_until(lambda: not (live.home / "worker.json").exists())
    with running_worker(live.home) as again:  # perhaps before the first is gone
        assert again.get("/api/health").ok
