"""Mixed load for a long time: errors, memory, descriptors, and how fast health answers."""

import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import uuid4

import requests

from benchmarks.corpus import Item, sample_items, title_words
from benchmarks.http_client import Client, url
from benchmarks.loading import load
from benchmarks.metrics import percentile
from benchmarks.processes import descriptors, memory
from benchmarks.tables import Row, report
from benchmarks.trial import direct_session, say
from benchmarks.worker import PATIENCE, Worker, await_index, home_in, running_worker

READERS, WRITERS = 4, 2

PAUSE = 0.4
"""Seconds that a client pauses between two requests, as an agent does, only far longer."""

PROBE_PAUSE = 0.25
"""Seconds between two requests for health."""

SAMPLE_PAUSE = 5.0
"""Seconds between two samples of memory and descriptors."""

BATCH = 5

KEPT = 20
"""Batches that a writer keeps before it forgets the oldest, so that the store stays as large."""

MAX_DRIFT: Final = 0.05
"""How far memory and descriptors may drift between the second sixth of the time and the last."""

MAX_HEALTH_MS: Final = 100.0

WRONG: Final[tuple[tuple[str, dict[str, object], int], ...]] = (
    ("/api/search", {"query": "x", "limt": 5}, 400),
    ("/api/search/by-type", {}, 400),
    ("/api/observation/999999999", {}, 404),
    ("/api/nowhere", {}, 404),
    ("/api/search", {"query": "x" * 5000}, 400),
)
"""Requests that are refused by design, with the status of the refusal."""


@dataclass
class Load:
    """What the clients saw; shared by all threads."""

    worker: Worker
    items: Sequence[Item]
    seed: int
    failures: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def told(self) -> str:
        """How many answers there were, how many of them wrong, and the last of these."""
        last = f" ({self.failures[-1]})" if self.failures else ""
        return f"{sum(self.statuses.values()):,} answers, {len(self.failures)} wrong{last}"

    def note(self, what: str, status: int, expected: int, body: bytes) -> None:
        """Count an answer; one of another status than expected is a failure."""
        with self.lock:
            self.statuses[status] += 1
            if status != expected and len(self.failures) < 1000:
                self.failures.append(f"{what} answered {status}: {body[:200]!r}")


def measure_endurance(
    corpus: Path, *, minutes: float, semantic: str, keep: Path | None, seed: int, as_json: bool
) -> int:
    """Print how the worker took the load; return the exit code."""
    items = sample_items(corpus, 2000, random.Random(seed))
    with home_in(keep, f"endurance-{corpus.name}") as home:
        if not (home / "memsvc.db").exists():
            load(corpus, home)
        with running_worker(home, semantic) as worker:
            if semantic != "off":
                with worker.client() as client:
                    await_index(client)
            return _measure(Load(worker, items, seed), 60 * minutes, as_json=as_json)


def _measure(shared: Load, seconds: float, *, as_json: bool) -> int:
    context = multiprocessing.get_context("spawn")
    over, queue = context.Event(), context.SimpleQueue()
    probe = context.Process(target=_probe, args=(shared.worker, over, queue), daemon=True)
    probe.start()
    threads = _start(shared)
    samples = _sampled(shared, seconds)
    shared.over.set()
    over.set()
    health: list[float] = queue.get()
    for thread in threads:
        thread.join(PATIENCE)
    probe.join(PATIENCE)
    return _report(shared, samples, health, as_json=as_json)


def _start(shared: Load) -> list[threading.Thread]:
    roles: list[Callable[[Load, random.Random], None]] = [*[_write] * WRITERS, *[_read] * READERS]
    threads = [
        threading.Thread(target=role, args=(shared, random.Random(f"{shared.seed} {place}")))
        for place, role in enumerate(roles)
    ]
    for thread in threads:
        thread.start()
    return threads


def _sampled(shared: Load, seconds: float) -> list[Row]:
    """Memory and descriptors of the worker, sampled while the load goes on."""
    samples: list[Row] = []
    end, told = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        pid = shared.worker.pid
        samples.append({"MB": memory(pid)["resident MB"], "descriptors": descriptors(pid)})
        if time.monotonic() - told > 60:
            told = time.monotonic()
            left = (end - told) / 60
            say(f"{left:.0f} minutes left: {shared.told()}, {samples[-1]['MB']:.0f} MB")
        time.sleep(SAMPLE_PAUSE)
    return samples


def _probe(worker: Worker, over: Event, queue: Any) -> None:
    """Ask for health until it is over; runs in a process of its own, to wait for nobody."""
    seconds = []
    client = Client(worker.host, worker.port)
    while not over.wait(PROBE_PAUSE):
        seconds.append(client.get("/api/health").seconds)
    queue.put(seconds)


def _read(shared: Load, chance: random.Random) -> None:
    with shared.worker.client() as client:
        while not shared.over.wait(PAUSE):
            path, parameters, expected = _request(shared, chance)
            answer = client.get(url(path, parameters))
            shared.note(f"{path} {parameters}"[:200], answer.status, expected, answer.body)


def _request(shared: Load, chance: random.Random) -> tuple[str, dict[str, object], int]:
    if chance.random() < 0.05:
        path, wrong, status = chance.choice(WRONG)
        return path, dict(wrong), status
    item = chance.choice(shared.items)
    query = " ".join(title_words(item)[: chance.randint(1, 8)]) or "fix"
    requests_: list[tuple[str, dict[str, object]]] = [
        ("/api/search", {"query": query}),
        ("/api/search", {"query": query, "explain": 1, "limit": 5, "days": "all"}),
        ("/api/search/observations", {"query": query, "project": item.get("project", "")}),
        ("/api/search/observations", {"query": query, "format": "full", "max_tokens": 2000}),
        ("/api/search/by-type", {"type": item.get("type") or "bugfix", "query": query}),
        ("/api/search/by-file", {"filePath": (item.get("files_modified") or ["src"])[0]}),
        ("/api/context/recent", {"limit": 3}),
        ("/api/context/recent", {"query": query}),
        ("/api/context/timeline", {"anchor": item["created_at_epoch"], "depth_after": 20}),
        ("/api/timeline/by-query", {"query": query}),
        ("/api/context/inject", {}),
        ("/api/stats", {}),
        ("/api/readiness", {}),
        ("/api/search/help", {}),
    ]
    return *chance.choice(requests_), 200


def _write(shared: Load, chance: random.Random) -> None:
    """Write batches of records and forget older ones."""
    place = f"http://{shared.worker.host}:{shared.worker.port}"
    kept: list[list[str]] = []
    with direct_session() as session:
        while not shared.over.wait(10 * PAUSE):
            batch = [{**item, "id": uuid4().hex} for item in chance.sample(shared.items, BATCH)]
            kept.append(_post(shared, session, place, batch))
            for ref in kept.pop(0) if len(kept) > KEPT else ():
                path = f"/api/{_kind(ref)}/{ref.lstrip('SP')}"
                answer = session.delete(f"{place}{path}", timeout=PATIENCE)
                shared.note(f"DELETE {path}", answer.status_code, 200, answer.content)


def _post(shared: Load, session: requests.Session, place: str, batch: Sequence[Item]) -> list[str]:
    body = {"records": list(batch)}
    answer = session.post(f"{place}/api/import", json=body, timeout=PATIENCE)
    shared.note("POST /api/import", answer.status_code, 201, answer.content)
    results = answer.json()["results"] if answer.ok else []
    return [str(result["ref"]) for result in results if result["ref"]]


def _kind(ref: str) -> str:
    return {"S": "session", "P": "prompt"}.get(ref[0], "observation")


def _report(shared: Load, samples: list[Row], health: list[float], *, as_json: bool) -> int:
    p99 = 1000 * percentile(health, 0.99)
    drifts = {name: _drift([row[name] for row in samples if row[name]]) for name in samples[0]}
    failures = list(shared.failures)
    if p99 > MAX_HEALTH_MS:
        failures.append(f"health took {p99:.0f} ms at the 99th percentile")
    for name, drift in drifts.items():
        if abs(drift["drift"]) > MAX_DRIFT:
            failures.append(f"{name} drifted by {drift['drift']:.1%}")
    sections: dict[str, Any] = {
        "answers by status": {str(code): n for code, n in sorted(shared.statuses.items())},
        "worker": [{"": name, **drift} for name, drift in drifts.items()],
        "health": {
            "asked": len(health),
            "p50 ms": 1000 * median(health),
            "p99 ms": p99,
            "slowest ms": 1000 * max(health),
        },
    }
    return report(sections, failures, as_json=as_json)


def _drift(values: Sequence[float]) -> dict[str, float]:
    """The median of the second sixth and of the last, and the change between them."""
    sixth = max(1, len(values) // 6)
    early, late = median(values[sixth : 2 * sixth] or values), median(values[-sixth:])
    return {"early": early, "late": late, "drift": late / early - 1}
