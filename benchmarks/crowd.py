"""Kills a worker under a crowd of writers and readers, on a full disk if wanted."""

import contextlib
import os
import random
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import requests

from benchmarks.corpus import Item, sample_items, title_words
from benchmarks.http_client import url
from benchmarks.loading import opened_store
from benchmarks.tables import Row, report
from benchmarks.trial import direct_session, say
from benchmarks.worker import PATIENCE, Worker, home_in, running_worker
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.filters import Filter
from memsvc.core.records import SHAPES, Kind, Ref

WRITERS = READERS = 8

SOONEST, LATEST = 0.5, 3.0
"""Seconds after the first record was acknowledged in which the worker is killed."""

MAX_BATCH = 10
"""Maximum records per write."""

FORGETTING = 0.1
"""The share of writes after which one of their records is forgotten."""

FREED: Final = 64 * 1024
"""Bytes left on a disk that is filled: enough to begin a write, not to finish many."""


@dataclass
class Crowd:
    """What the worker acknowledged to whom, and what was wrong; shared by all threads."""

    seed: int
    items: list[Item]
    failures: list[str] = field(default_factory=list)
    stored: dict[str, Ref] = field(default_factory=dict)
    forgotten: dict[str, Ref] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def check(self, holds: bool, sentence: str) -> None:
        """Record a failure unless `holds`."""
        if not holds:
            with self.lock:
                self.failures.append(sentence)
            say(f"FAILED {sentence}")

    def batch(self, chance: random.Random) -> list[Item]:
        """The next records to write; empty when all have been taken."""
        with self.lock:
            size = chance.randint(1, MAX_BATCH)
            taken, self.items[:] = self.items[:size], self.items[size:]
            return taken

    def note(self, status: int) -> None:
        """Count one answer."""
        with self.lock:
            self.statuses[status] += 1


def measure_crowd(corpus: Path, *, rounds: int, disk: Path | None, seed: int, as_json: bool) -> int:
    """Print what the worker acknowledged and what was lost; return the exit code."""
    items = sample_items(corpus, 2000 * rounds, random.Random(seed))
    crowd = Crowd(seed, [{**item, "id": f"crowd-{n}"} for n, item in enumerate(items)])
    with home_in(disk, "crowd") as home:
        rows = [_round(crowd, home, number, full=disk is not None) for number in range(rounds)]
        shutil.rmtree(home, ignore_errors=True)
    answers = {str(status): count for status, count in sorted(crowd.statuses.items())}
    sections: dict[str, Any] = {"rounds": rows, "answers to writes, by status": answers}
    return report(sections, crowd.failures, as_json=as_json)


def _round(crowd: Crowd, home: Path, number: int, *, full: bool) -> Row:
    """One round: a crowd at work, the disk filled half way, a kill, and a check of what is left."""
    chance = random.Random(f"{crowd.seed} {number}")
    seconds = chance.uniform(SOONEST, LATEST)
    (home / "worker.json").unlink(missing_ok=True)  # left by the worker killed before
    crowd.over.clear()
    with running_worker(home) as worker:
        threads = list(_threads(crowd, worker, number))
        _await_answer(crowd)
        time.sleep(seconds / 2)
        with _filled(home) if full else contextlib.nullcontext():
            time.sleep(seconds / 2)
            os.kill(worker.pid, 9)
            crowd.over.set()
            for thread in threads:
                thread.join(PATIENCE)
    row = _check(crowd, home)
    say(f"round {number + 1}, killed after {seconds:.1f} s: {row}")
    return {"round": number + 1, "killed after s": seconds, **row}


def _await_answer(crowd: Crowd) -> None:
    """Wait until another write was answered."""
    before, end = crowd.statuses.total(), time.monotonic() + PATIENCE
    while crowd.statuses.total() == before and time.monotonic() < end:
        time.sleep(0.01)


def _threads(crowd: Crowd, worker: Worker, number: int) -> Iterator[threading.Thread]:
    roles: list[Callable[[Crowd, Worker, random.Random], None]] = [_write] * WRITERS
    for place, role in enumerate([*roles, *[_read] * READERS]):
        chance = random.Random(f"{crowd.seed} {number} {place}")
        thread = threading.Thread(target=role, args=(crowd, worker, chance), daemon=True)
        thread.start()
        yield thread


def _write(crowd: Crowd, worker: Worker, chance: random.Random) -> None:
    """Write batches until the worker is killed; what was not acknowledged is written again."""
    place = f"http://{worker.host}:{worker.port}"
    with direct_session() as session, contextlib.suppress(requests.RequestException):
        while not crowd.over.is_set() and (batch := crowd.batch(chance)):
            with _returned_unless_stored(crowd, batch):
                body = {"records": batch}
                answer = session.post(f"{place}/api/import", json=body, timeout=PATIENCE)
                crowd.note(answer.status_code)
                if answer.ok:
                    _acknowledge(crowd, batch, answer.json()["results"])
            if chance.random() < FORGETTING:
                _forget(crowd, session, place, str(chance.choice(batch)["id"]))


@contextlib.contextmanager
def _returned_unless_stored(crowd: Crowd, batch: Sequence[Item]) -> Iterator[None]:
    try:
        yield
    finally:
        with crowd.lock:
            known = crowd.stored.keys() | crowd.forgotten.keys()
            crowd.items += [item for item in batch if str(item["id"]) not in known]


def _acknowledge(crowd: Crowd, batch: Sequence[Item], results: Sequence[Any]) -> None:
    """Note the records that an answer says are stored."""
    for result in results:
        item = batch[int(result["place"][len("records[") : -1])]
        if result["ref"]:
            ref = _ref(result["ref"])
            with crowd.lock:
                known = crowd.stored.setdefault(str(item["id"]), ref)
            crowd.check(known == ref, f"{item['id']} was acknowledged as {known} and as {ref}")


def _ref(text: str) -> Ref:
    letters = {"S": Kind.SESSION, "P": Kind.PROMPT}
    return Ref(letters.get(text[0], Kind.OBSERVATION), int(text.lstrip("SP")))


def _forget(crowd: Crowd, session: requests.Session, place: str, name: str) -> None:
    with crowd.lock:
        ref = crowd.stored.pop(name, None)  # without an answer nobody knows whether it is there
    if ref is not None:
        answer = session.delete(f"{place}/api/{ref.kind}/{ref.id}", timeout=PATIENCE)
        crowd.note(answer.status_code)
        if answer.ok:
            with crowd.lock:
                crowd.forgotten[name] = ref


def _read(crowd: Crowd, worker: Worker, chance: random.Random) -> None:
    """Search and read until the worker is killed; every answer must be one."""
    with crowd.lock:
        words = [word for item in crowd.items[:200] for word in title_words(item)] or ["fix"]
    with worker.client() as client:
        while not crowd.over.is_set():
            path = chance.choice(["/api/search", "/api/context/recent", "/api/timeline/by-query"])
            answer = client.get(url(path, {"query": chance.choice(words)}))
            crowd.check(
                answer.status in (200, 503) or crowd.over.is_set() or not answer.status,
                f"{path} answered {answer.status}: {answer.body[:200]!r}",
            )


@contextlib.contextmanager
def _filled(home: Path) -> Iterator[None]:
    """The disk of this folder with hardly a byte left."""
    filler = home.parent / "filler"
    try:
        with filler.open("wb") as file:
            os.posix_fallocate(
                file.fileno(), 0, max(1, shutil.disk_usage(home.parent).free - FREED)
            )
        yield
    finally:
        filler.unlink(missing_ok=True)


def _check(crowd: Crowd, home: Path) -> Row:
    """What the killed worker left: everything acknowledged, nothing twice, clean checks."""
    with opened_store(home) as store:
        held = _held(store)
        for name, ref in crowd.stored.items():
            crowd.check(held.get(ref) == name, f"{ref} ({name}) was acknowledged and is lost")
        for name, ref in crowd.forgotten.items():
            crowd.check(ref not in held, f"{ref} ({name}) was forgotten and is back")
        crowd.check(len(set(held.values())) == len(held), "a record is stored twice")
    (verdict,) = _integrity(home / "memsvc.db")
    crowd.check(verdict == "ok", f"integrity_check says {verdict}")
    return {"records": len(held), "forgotten": len(crowd.forgotten), "integrity": verdict}


def _held(store: SqliteStore) -> dict[Ref, str]:
    return {
        ref: record.source_id
        for kind in Kind
        for ref, record in store.records(
            Ref(kind, id) for id in store.selected_ids(kind, Filter())
        ).items()
    }


def _integrity(database: Path) -> tuple[str]:
    """SQLite's own check of the file, after FTS5's of each index; it raises on a broken one."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for shape in SHAPES.values():
            table = f"{shape.table}_fts"
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        verdict: tuple[str] = connection.execute("PRAGMA integrity_check").fetchone()
        return verdict
