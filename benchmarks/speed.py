"""How fast are import, start, each route, and eight simultaneous clients?"""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clients import ask_together
from benchmarks.corpus import derived_items, missing_kinds, read_items, sample_items, write_items
from benchmarks.http_client import Client
from benchmarks.loading import contents, interrupt_and_resume, load, store_megabytes
from benchmarks.metrics import percentile
from benchmarks.processes import cpu_seconds, memory
from benchmarks.questions import Questions, routes
from benchmarks.tables import report
from benchmarks.worker import Worker, running_worker, temporary_home

SAMPLE = 5000
STARTS = 3
CLIENTS = 8
MAX_REQUESTS = 1000
TOGETHER = tuple(
    f"{route}, {form}"
    for route in ("1 observations", "2 sessions", "3 prompts")
    for form in ("words", "question")
)
"""What the simultaneous clients request."""

Section = dict[str, Any]


def measure_speed(
    corpus: Path, *, seconds: float, interrupt: bool, clients: int, as_json: bool
) -> int:
    """Measure with a corpus; the exit code says whether every request was answered."""
    with temporary_home() as folder:
        sections, failures = _measure(corpus, folder, seconds, interrupt, clients)
    return report(sections, failures, as_json=as_json)


def _measure(
    corpus: Path, folder: Path, seconds: float, interrupt: bool, clients: int
) -> tuple[Section, list[str]]:
    home = folder / "store"
    sections: Section = {"import": _measure_import(corpus, home)}
    failures: list[str] = []
    if interrupt:
        sections["interrupted and resumed"] = _measure_interrupt(corpus, folder, failures)
    derived = _load_derived(corpus, folder, home)
    ask = _questions(corpus, sections["import"]["records"])
    sections["start"] = _measure_starts(home, ask)
    with running_worker(home) as worker:
        sections |= _measure_worker(worker, routes(ask), seconds, clients)
    failures += [f"{row['route']}: {row['errors']} errors" for row in _failed(sections)]
    return {**sections, "notes": _notes(derived)}, failures


def _failed(sections: Section) -> list[Section]:
    rows = [*sections["one client"], *sections["many clients"]]
    return [row for row in rows if row["errors"]]


def _notes(derived: int) -> str:
    if not derived:
        return "sessions and prompts come from the corpus"
    return (
        f"the corpus has no sessions or prompts; {derived:,} were made from the first record of "
        "each work session, after the timed import"
    )


def _measure_import(corpus: Path, home: Path) -> Section:
    print(f"importing {corpus.name}", file=sys.stderr)
    took, read = load(corpus, home), _raw_megabytes(corpus)
    size = store_megabytes(home)
    return {
        "records": took.stored,
        "refused": took.refused,
        "seconds": took.seconds,
        "records per second": round(took.stored / took.seconds),
        "peak memory MB": took.peak,
        "store MB": size,
        "store / JSON": size / read,
    }


def _raw_megabytes(corpus: Path) -> float:
    """The uncompressed size of a corpus."""
    with temporary_home() as home:
        write_items(read_items(corpus), home / "corpus.jsonl")
        return (home / "corpus.jsonl").stat().st_size / 1e6


def _measure_interrupt(corpus: Path, folder: Path, failures: list[str]) -> Section:
    """Compare an import that was interrupted and run again with a clean one."""
    print("importing again, with an interruption", file=sys.stderr)
    clean, home = contents(folder / "store"), folder / "interrupted"
    found: Section = interrupt_and_resume(corpus, home, len(clean))
    found["doubles"] = len(again := contents(home)) - len(set(again))
    if again != clean:
        failures.append("the store of an interrupted import differs from that of a clean one")
    if not found["kept when interrupted"] < len(clean):
        failures.append("the import ended before it could be interrupted: use a larger corpus")
    return found


def _load_derived(corpus: Path, folder: Path, home: Path) -> int:
    """Add sessions or prompts to a corpus without them; return how many."""
    kinds = missing_kinds(corpus)
    if not kinds:
        return 0
    print("making sessions and prompts", file=sys.stderr)
    write_items(derived_items(corpus, kinds), folder / "derived.jsonl")
    return load(folder / "derived.jsonl", home).stored


def _questions(corpus: Path, stored: int) -> Questions:
    chance = random.Random(1)
    return Questions(sample_items(corpus, SAMPLE, chance), stored, chance)


def _measure_starts(home: Path, ask: Questions) -> Section:
    """The time from the start of the process to the first answers; the median of several starts."""
    first = routes(ask)[TOGETHER[0]]
    health = [_start(home, "/api/health") for _ in range(STARTS)]
    query = [_start(home, first()) for _ in range(STARTS)]
    return {
        "to /api/health ms": percentile(health, 0.5),
        "to the first full-text answer ms": percentile(query, 0.5),
    }


def _start(home: Path, url: str) -> float:
    with running_worker(home) as worker, worker.client() as client:
        client.get(url)
        return 1000 * (time.perf_counter() - worker.started)


def _measure_worker(
    worker: Worker, makers: dict[str, Callable[[], str]], seconds: float, clients: int
) -> Section:
    before = memory(worker.pid)
    with worker.client() as client:
        rows = [_measure_route(client, name, makers[name], seconds) for name in makers]
    together = [_measure_together(worker, makers, seconds, clients)]
    after = memory(worker.pid)
    held = [{"worker": "before", **before}, {"worker": "after", **after}]
    return {"one client": rows, "many clients": together, "memory": held}


def _measure_route(client: Client, name: str, make: Callable[[], str], seconds: float) -> Section:
    """Measure one route with one client: different requests, up to a time or a number."""
    print(f"asking {name}", file=sys.stderr)
    times: list[float] = []
    errors, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end and len(times) < MAX_REQUESTS:
        answer = client.get(asked := make())
        times.append(1000 * answer.seconds)
        if answer.status != 200:
            errors += 1
            print(f"{answer.status} {asked}", file=sys.stderr)
    return {"route": name, **_spread(times), "errors": errors}


def _spread(times: Sequence[float]) -> Section:
    shares = {f"p{round(100 * share)} ms": percentile(times, share) for share in (0.5, 0.95, 0.99)}
    return {"requests": len(times), **shares, "worst ms": max(times)}


def _measure_together(
    worker: Worker, makers: dict[str, Callable[[], str]], seconds: float, clients: int
) -> Section:
    """Words and questions on routes 1 to 3, from many simultaneous clients."""
    print(f"{clients} simultaneous clients", file=sys.stderr)
    urls = [[makers[name]() for _ in range(200) for name in TOGETHER] for _ in range(clients)]
    before = cpu_seconds(worker.pid)
    shares = ask_together(worker.host, worker.port, urls, seconds)
    used = (cpu_seconds(worker.pid) or 0) - (before or 0)
    times = [1000 * each for share in shares for each in share.seconds]
    capacity = seconds * (os.cpu_count() or 1)
    return {
        "route": f"routes 1-3, {clients} clients",
        "requests/s": sum(share.in_time for share in shares) / seconds,
        **_spread(times),
        "errors": sum(share.errors for share in shares),
        "clients' share of all cores": sum(share.cpu for share in shares) / capacity,
        "worker's share": used / capacity if before is not None else None,
    }
