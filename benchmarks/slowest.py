"""The slowest answers to requests that were made to take long."""

import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any, Final

from benchmarks.bombs import Bomb, bombs, random_queries
from benchmarks.corpus import read_items, title_words
from benchmarks.http_client import Client
from benchmarks.loading import load
from benchmarks.metrics import percentile
from benchmarks.tables import report
from benchmarks.worker import Worker, home_in, running_worker

CLIENTS: Final = 2
SHOWN: Final = 10
TOLD_EVERY: Final = 1000
SLACK: Final = 0.5
"""Seconds beyond the deadline that an answer may take."""

MAX_HEALTH: Final = 0.1
"""Seconds in which health answers, whatever else is asked."""

Timed = tuple[str, int, float]
"""The name of a request, the status of its answer, and the seconds that it took."""


def measure_slowest(
    corpus: Path, *, queries: int, seed: int, deadline: float, keep: Path | None, as_json: bool
) -> int:
    """Ask every bomb and as many random queries; the exit code says whether all were in time."""
    words, paths = _words_and_paths(corpus)
    with home_in(keep, corpus.name) as home:
        if not (home / "memsvc.db").exists():
            print(f"importing {corpus.name}", file=sys.stderr)
            load(corpus, home)
        with running_worker(home) as worker:
            by_hand = _ask_all(worker, bombs(words, paths), 1)
            health, at_random = _beside_health(worker, random_queries(words, queries, seed))
    answers = {"made by hand": by_hand, "random": at_random}
    sections: dict[str, Any] = {name: _summary(found) for name, found in answers.items() if found}
    sections["health meanwhile"] = _summary(health)
    sections |= {f"slowest {name}": _slowest(found) for name, found in answers.items() if found}
    late = [each for found in answers.values() for each in found if each[2] > deadline + SLACK]
    broken = [each for found in answers.values() for each in found if each[1] in (0, 500)]
    failures = [
        f"{name}: {status} after {seconds:.2f} s" for name, status, seconds in late + broken
    ]
    return report(sections, failures, as_json=as_json)


def _words_and_paths(corpus: Path) -> tuple[list[str], list[str]]:
    """The most frequent words of titles, and some paths, of the first records of a corpus."""
    counts: Counter[str] = Counter()
    paths: dict[str, None] = {}
    for item in islice(read_items(corpus), 10_000):
        counts.update(word.lower() for word in title_words(item))
        paths |= dict.fromkeys(item.get("files_modified") or ())
    return [word for word, _ in counts.most_common(2000)], list(paths)[:200]


def _ask_all(worker: Worker, asked: Iterable[Bomb], clients: int) -> list[Timed]:
    """Ask everything, with so many clients at once."""
    idle: SimpleQueue[Client] = SimpleQueue()
    for _ in range(clients):
        idle.put(Client(worker.host, worker.port))

    def ask(bomb: Bomb) -> Timed:
        client = idle.get()
        try:
            answer = client.get(bomb[1])
        finally:
            idle.put(client)
        return bomb[0], answer.status, answer.seconds

    found: list[Timed] = []
    remaining = iter(asked)
    with ThreadPoolExecutor(clients) as pool:
        while some := list(islice(remaining, TOLD_EVERY)):
            found += pool.map(ask, some)
            print(f"{len(found):,} asked", file=sys.stderr)
    for _ in range(clients):
        idle.get().close()
    return found


def _beside_health(worker: Worker, asked: Iterable[Bomb]) -> tuple[list[Timed], list[Timed]]:
    """Ask everything, and health ten times a second meanwhile."""
    done = Event()
    with ThreadPoolExecutor(1) as pool:
        health = pool.submit(_ask_health, worker, done)
        found = _ask_all(worker, asked, CLIENTS)
        done.set()
        return health.result(), found


def _ask_health(worker: Worker, done: Event) -> list[Timed]:
    found: list[Timed] = []
    with worker.client() as client:
        while not done.wait(MAX_HEALTH):
            answer = client.get("/api/health")
            found.append(("health", answer.status, answer.seconds))
    return found


def _summary(answers: list[Timed]) -> dict[str, Any]:
    times = [seconds for _, _, seconds in answers]
    statuses = Counter(str(status) for _, status, _ in answers)
    shares = (
        {f"p{share} s": percentile(times, share / 100) for share in (50, 90, 99)} if times else {}
    )
    return {"requests": len(answers), **shares, "max s": max(times, default=0.0), **statuses}


def _slowest(answers: list[Timed]) -> list[dict[str, Any]]:
    slow = sorted(answers, key=lambda each: -each[2])[:SHOWN]
    return [{"request": name, "status": status, "s": seconds} for name, status, seconds in slow]
