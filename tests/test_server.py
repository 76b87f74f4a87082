"""The worker as a process: its address, its end, and many clients at once."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from workers import PATIENCE, Worker, running_worker, start_worker

from memsvc.core.query import MAX_LENGTH
from memsvc.core.tokens import count_tokens


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker for the tests that neither stop it nor count what it holds."""
    with running_worker(tmp_path_factory.mktemp("shared")) as worker:
        yield worker


def test_the_first_answer_is_right(live: Worker) -> None:
    assert live.get("/api/health").json()["status"] == "ok"
    assert live.get("/api/readiness").json()["ready"] is True
    assert live.get("/api/search", query="anything").json()["total"] == 0


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_worker_json_tells_the_address_while_the_worker_runs(
    live_semantic: Worker, sign: signal.Signals
) -> None:
    worker = live_semantic
    file = worker.home / "worker.json"
    told = json.loads(file.read_text())
    assert f"http://{told['host']}:{told['port']}" == worker.address
    assert told["pid"] == worker.process.pid
    worker.get("/api/health")
    assert worker.stop(sign) == 0
    assert not file.exists()


def test_what_was_acknowledged_is_there_after_the_worker_is_killed(live: Worker) -> None:
    assert live.post("/api/observations", {"title": "a marmot"}).status_code == 201
    live.stop(signal.SIGKILL)
    with running_worker(live.home) as again:
        assert again.get("/api/search", query="marmot").json()["total"] == 1


def test_a_port_in_use_is_one_sentence_and_a_failure(shared: Worker, tmp_path: Path) -> None:
    second = start_worker(tmp_path, MEMSVC_PORT=shared.port)
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode not in (0, None)
    assert f"Port {shared.port} is in use" in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "worker.json").exists()
    assert shared.get("/api/health").ok


@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_a_worker_listens_on_other_names_of_this_machine(tmp_path: Path, host: str) -> None:
    with running_worker(tmp_path, MEMSVC_HOST=host) as worker:
        assert worker.get("/api/health").ok


def test_a_damaged_store_keeps_the_worker_from_starting_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "memsvc.db").write_bytes(b"not a database" * 100)
    process = start_worker(tmp_path)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "damaged" in said
    assert "Traceback" not in said


def _read(address: str, number: int, errors: list[str]) -> None:
    """Ask one of three routes again and again, as one client of several."""
    query: dict[str, str | int] = {"query": "marmot payment", "max_tokens": 500}
    path, given = (
        ("search", query),
        ("search/observations", {**query, "offset": 1}),
        ("context/recent", {"limit": 2}),
    )[number % 3]
    with requests.Session() as session:
        for _ in range(15):
            answer = session.get(f"{address}/api/{path}", params=given, timeout=PATIENCE)
            if answer.status_code != 200 or answer.json()["count"] > answer.json()["total"]:
                errors.append(answer.text)


def _write(address: str, errors: list[str]) -> None:
    """Write thirty lists of three records each."""
    with requests.Session() as session:
        for turn in range(30):
            titles = [f"marmot payment {turn} {part}" for part in range(3)]
            body = [{"title": title, "project": "den"} for title in titles]
            answer = session.post(f"{address}/api/observations", json=body, timeout=PATIENCE)
            if answer.status_code != 201:
                errors.append(answer.text)


def test_eight_clients_read_while_one_writes(live_semantic: Worker) -> None:
    errors: list[str] = []
    address = live_semantic.address
    threads = [threading.Thread(target=_read, args=(address, n, errors)) for n in range(8)]
    threads.append(threading.Thread(target=_write, args=(address, errors)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert live_semantic.get("/api/search", query="marmot").json()["total"] == 90


def test_the_longest_query_passes_through_the_socket(shared: Worker) -> None:
    query = ("\U00020000" + " payment 登录" * 200)[:MAX_LENGTH]
    answer = shared.get("/api/search", query=query, max_tokens=500)
    assert answer.status_code == 200
    assert count_tokens(answer.text) <= 500


def test_a_large_body_is_refused_in_words(shared: Worker) -> None:
    answer = shared.post("/api/observations", {"title": "x" * (6 * 1024 * 1024)})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_the_answer_does_not_tell_what_serves_it(shared: Worker) -> None:
    assert "Server" not in shared.get("/api/health").headers
