"""Is nothing lost, nothing left behind, nothing told to anyone? A worker killed, its index damaged.

What a worker must survive is done to a real one: SIGKILL while it writes and embeds, its index
deleted, overwritten and locked while it serves. Then what it left is held against the texts.
"""

import contextlib
import ipaddress
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy
import requests

from benchmarks.corpus import Item, sample_items, title_words
from benchmarks.http_client import url
from benchmarks.loading import opened_store
from benchmarks.tables import Row, report
from benchmarks.worker import (
    PATIENCE,
    Worker,
    await_index,
    last_words,
    running_worker,
    start_command,
    temporary_home,
)
from memsvc.bootstrap import load_embedder, open_index
from memsvc.indexing import embed_record
from memsvc.model import SHAPES, Filter, Kind, Record, Ref
from memsvc.passages import passages
from memsvc.ports import Embedder, SemanticIndex, Vector
from memsvc.semantic import best_of
from memsvc.settings import Settings, load_settings
from memsvc.store.sqlite import SqliteStore
from memsvc.store.vectors import SqliteVectors

INDEX: Final = "chroma"

PROC: Final = Path("/proc")
"""Where Linux tells of processes; elsewhere they are not checked."""

SOONEST, LATEST = 0.2, 4.0
"""Seconds after it listens in which a worker is killed: it loads its model in the first of them."""

BATCH = 20
"""Records that are written at once, at most."""

SAMPLE = 50
"""Records whose vectors are made again and compared."""

QUERIES = 12
"""Questions whose answers must be the same before and after."""

TOP = 10
"""The nearest records that must be the exact ones."""

NEAR = 2e-3
"""What half precision and another order of additions may change in a number of a vector."""

NOTICE = 20.0
"""Seconds in which answers must say that the index is broken."""

LOADING: Final = frozenset({"The semantic index is loading."})
"""What every start says for a moment."""


@dataclass
class Trial:
    """One run: where, what was found wrong, and what the worker said it had stored."""

    home: Path
    chance: random.Random
    failures: list[str] = field(default_factory=list)
    stored: dict[str, Item] = field(default_factory=dict)
    contacts: set[str] = field(default_factory=set)

    @property
    def settings(self) -> Settings:
        return load_settings({"MEMSVC_HOME": str(self.home), "MEMSVC_SEMANTIC": INDEX})

    def check(self, holds: bool, sentence: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.failures.append(sentence)
            _say(f"FAILED {sentence}")


def measure_durability(corpus: Path, *, kills: int, records: int, seed: int, as_json: bool) -> int:
    """Print what was done to a worker and whether all held; the exit code."""
    chance = random.Random(seed)
    items = sample_items(corpus, records, chance)
    sections: dict[str, Any] = {}
    with temporary_home() as folder, _confined(folder / "elsewhere"):
        trial = Trial(folder / "home", chance)
        sections["kills"] = _kill_often(trial, items, kills)
        sections["what was kept"] = _check_kept(trial)
        sections["damage"] = _damage_often(trial, items)
        sections["left behind"] = _check_leavings(trial, folder / "elsewhere")
    return report(sections, trial.failures, as_json=as_json)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _serving(trial: Trial) -> Iterator[Worker]:
    """A worker over the store, whose connections are watched."""
    (trial.home / "worker.json").unlink(missing_ok=True)  # of one that was killed
    with running_worker(trial.home, INDEX) as worker, _watched(trial, worker.pid):
        yield worker


@contextlib.contextmanager
def _watched(trial: Trial, pid: int) -> Iterator[None]:
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            trial.contacts.update(foreign_connections(pid))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# -- killed while it writes and embeds ------------------------------------------------------------


def _kill_often(trial: Trial, items: Sequence[Item], kills: int) -> Row:
    """Write all records to a worker that is killed again and again, then let it finish."""
    waiting = list(items)
    share = -(-len(items) // (kills + 1))
    started = time.monotonic()
    for number in range(kills):
        with _serving(trial) as worker:
            wait = trial.chance.uniform(SOONEST, LATEST)
            waiting = _write_until_killed(trial, worker, waiting, share, wait)
        _say(f"kill {number + 1} of {kills} after {wait:.1f} s: {len(trial.stored):,} stored")
    with _serving(trial) as worker:
        _write_all(trial, worker, waiting)
        with worker.client() as client:
            await_index(client)
    trial.check(len(trial.stored) == len(items), "not every record could be written in the end")
    seconds = time.monotonic() - started
    return {"kills": kills, "records acknowledged": len(trial.stored), "s": seconds}


def _write_until_killed(
    trial: Trial, worker: Worker, waiting: list[Item], share: int, wait: float
) -> list[Item]:
    """Write a share of the records while a clock runs towards the kill; what is still to write."""
    killer = threading.Timer(wait, _kill, (worker.pid,))
    killer.start()
    written = 0
    try:
        while waiting and written < share and killer.is_alive():
            batch = waiting[: trial.chance.randint(1, BATCH)]
            if not _write(trial, worker, batch):
                break
            waiting, written = waiting[len(batch) :], written + len(batch)
            time.sleep(trial.chance.uniform(0, 2 * wait * len(batch) / share))
    finally:
        killer.join()
    return waiting


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _write_all(trial: Trial, worker: Worker, waiting: list[Item]) -> None:
    for start in range(0, len(waiting), BATCH):
        _write(trial, worker, waiting[start : start + BATCH])


def _write(trial: Trial, worker: Worker, batch: list[Item]) -> bool:
    """Write records and remember those that were acknowledged; False if no answer came."""
    told = _post(worker, batch)
    if told is None:
        return False
    refused = {entry["place"] for entry in told["refused"]}
    for number, item in enumerate(batch):
        if f"records[{number}]" not in refused:
            trial.stored[str(item["id"])] = item
    return True


def _post(worker: Worker, batch: Sequence[Item]) -> Any:
    """What a worker answers to records; None if it does not."""
    with _session() as session, contextlib.suppress(requests.RequestException):
        place = f"http://{worker.host}:{worker.port}/api/import"
        response = session.post(place, json={"records": list(batch)}, timeout=PATIENCE)
        return response.json() if response.ok else None
    return None


def _session() -> requests.Session:
    """A session that heeds no proxy and no netrc."""
    session = requests.Session()
    session.trust_env = False
    return session


# -- what the kills left --------------------------------------------------------------------------


def _check_kept(trial: Trial) -> Row:
    """Hold the store and the index against the texts, with no worker around."""
    _say("checking the store and the index")
    embedder = load_embedder(trial.settings)
    with opened_store(trial.home) as store:
        records = dict(_all_records(store))
        _check_records(trial, records)
        vectors = _check_vectors(trial, store, records, embedder)
        with _opened_index(trial, store, embedder) as index:
            _check_index(trial, index, vectors, records, embedder)
    counted = sum(map(len, vectors.values()))
    return {"records": len(records), "vectors": counted, "embedded again": SAMPLE}


def _all_records(store: SqliteStore) -> Iterator[tuple[Ref, Record]]:
    for kind in Kind:
        refs = [Ref(kind, id) for id in store.selected_ids(kind, Filter())]
        for start in range(0, len(refs), 500):
            yield from store.records(refs[start : start + 500]).items()


def _check_records(trial: Trial, records: Mapping[Ref, Record]) -> None:
    held = {record.source_id for record in records.values()}
    for lost in sorted(trial.stored.keys() - held):
        trial.check(False, f"record {lost} was acknowledged and is lost")
    trial.check(len(held) == len(records), "a record is there twice")


def _check_vectors(
    trial: Trial, store: SqliteStore, records: Mapping[Ref, Record], embedder: Embedder
) -> dict[Ref, Vector]:
    """Every record has the vectors that its text calls for, of one fingerprint; gives them."""
    kept = SqliteVectors(store.connections)
    vectors = {
        Ref(kind, id): rows
        for kind in Kind
        for id, rows in kept.vectors(
            kind, [ref.id for ref in records if ref.kind is kind], embedder.fingerprint
        ).items()
    }
    trial.check(kept.count_pending() == 0, f"{kept.count_pending()} records still wait")
    trial.check(_fingerprints(store) <= {embedder.fingerprint}, "fingerprints are mixed")
    trial.check(_rows(store) == len(records), "there are vectors of records that are gone")
    for ref, record in records.items():
        wanted, found = len(passages(record)), len(vectors.get(ref, ()))
        trial.check(wanted == found, f"{ref} has {found} vectors, its text calls for {wanted}")
    for ref in trial.chance.sample(sorted(vectors), min(SAMPLE, len(vectors))):
        made = embed_record(embedder, records[ref])
        same = made.shape == vectors[ref].shape and numpy.allclose(made, vectors[ref], atol=NEAR)
        trial.check(same, f"{ref} has other vectors than its text")
    return vectors


def _fingerprints(store: SqliteStore) -> set[str]:
    return {
        row[0]
        for shape in SHAPES.values()
        for row in store.connections.reader().execute(
            f"SELECT DISTINCT fingerprint FROM {shape.table}_vectors"
        )
    }


def _rows(store: SqliteStore) -> int:
    reader = store.connections.reader()
    tables = (f"{shape.table}_vectors" for shape in SHAPES.values())
    return sum(reader.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


@contextlib.contextmanager
def _opened_index(trial: Trial, store: SqliteStore, embedder: Embedder) -> Iterator[SemanticIndex]:
    """The index as the worker left it, locked meanwhile."""
    name = SqliteVectors(store.connections).store_name()
    index = open_index(trial.settings, embedder, name)
    try:
        trial.check(
            SqliteVectors(store.connections).count_changes(index.position()) == 0,
            "the index has not followed every change",
        )
        yield index
    finally:
        index.close()


def _check_index(
    trial: Trial,
    index: SemanticIndex,
    vectors: Mapping[Ref, Vector],
    records: Mapping[Ref, Record],
    embedder: Embedder,
) -> None:
    """The index holds as many vectors as the store, and finds what comparing all finds."""
    counted = sum(map(len, vectors.values()))
    trial.check(index.count() == counted, f"the index holds {index.count()}, not {counted} vectors")
    for ref in trial.chance.sample(sorted(records), min(QUERIES, len(records))):
        text = passages(records[ref])[0][0][0]
        sought = embedder.embed(text)
        held = {each.id: rows for each, rows in vectors.items() if each.kind is ref.kind}
        exact = [cosine for _, cosine in best_of(held, sought)[:TOP]]
        found = [cosine for _, cosine in index.nearest(ref.kind, sought, TOP, Filter())]
        same = len(exact) == len(found) and numpy.allclose(exact, found, atol=NEAR)
        trial.check(same, f"the index does not find what is nearest to {text[:60]!r}")


# -- its index damaged while it serves ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """What a worker answers to the questions: full-text matches, and rankings with scores."""

    matches: list[list[str]]
    rankings: list[list[str]]
    lacks: list[str]


def _damage_often(trial: Trial, items: Sequence[Item]) -> list[Row]:
    titles = (" ".join(title_words(item)[:4]) for item in items)
    queries = list(dict.fromkeys(filter(None, titles)))[:QUERIES]
    return [
        _damaged(trial, queries, "deleted", _delete),
        _damaged(trial, queries, "overwritten", _overwrite),
        _locked(trial, queries),
    ]


def _damaged(
    trial: Trial, queries: Sequence[str], name: str, damage: Callable[[Trial], None]
) -> Row:
    """Damage the index of a worker that serves; it must go on, say so, and be healed."""
    _say(f"index {name} while serving")
    with _serving(trial) as worker:
        _await(worker)
        before = _ask(trial, worker, queries, f"before it was {name}")
        damage(trial)
        seen = _await_lack(trial, worker, queries, before, name) - LOADING
        trial.check(_alive(worker), f"the worker ended when its index was {name}")
        if seen:
            return _row(name, seen, _heal(trial, queries, worker, before, name))
    _say("nothing was noticed; the worker is started again")
    with _serving(trial) as worker:
        seen = _await_lack(trial, worker, queries, before, name)
        trial.check(bool(seen), f"no answer said that the index was {name}")
        return _row(f"{name}, restarted", seen, _heal(trial, queries, worker, before, name))


def _locked(trial: Trial, queries: Sequence[str]) -> Row:
    """Start a worker while its index is in use elsewhere; it must come up, say so, and recover."""
    _say("index locked by another process")
    with _serving(trial) as worker:
        _await(worker)
        before = _ask(trial, worker, queries, "before it was locked")
    with contextlib.ExitStack() as stack:
        with _held_index(trial):
            worker = stack.enter_context(_serving(trial))
            seen = _await_lack(trial, worker, queries, before, "locked") - LOADING
        trial.check(any("in use" in each for each in seen), "no answer said it was locked")
        return _row("locked", seen, _heal(trial, queries, worker, before, "locked"))


@contextlib.contextmanager
def _held_index(trial: Trial) -> Iterator[None]:
    """The index in use by this process."""
    embedder = load_embedder(trial.settings)
    with opened_store(trial.home) as store, _opened_index(trial, store, embedder):
        yield


def _row(name: str, seen: set[str], seconds: float) -> Row:
    return {"index": name, "s to heal": seconds, "said": _shortened(seen)}


def _shortened(seen: set[str]) -> str:
    return " | ".join(sorted(each[:70] for each in seen)) or "-"


def _delete(trial: Trial) -> None:
    for entry in trial.settings.index_folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _overwrite(trial: Trial) -> None:
    """Put other bytes into the middle of every file of the index."""
    for path in trial.settings.index_folder.rglob("*"):
        if path.is_file() and (size := path.stat().st_size):
            with path.open("r+b") as file:
                file.seek(size // 3)
                file.write(trial.chance.randbytes(max(1, size // 3)))


def _alive(worker: Worker) -> bool:
    with worker.client() as client:
        return client.get("/api/health").status == 200


def _await(worker: Worker) -> None:
    with worker.client() as client:
        await_index(client)


def _ask(trial: Trial, worker: Worker, queries: Sequence[str], when: str) -> Answers:
    """All questions once. Each must be answered."""
    matches, rankings, lacks = [], [], []
    with worker.client() as client:
        for query in queries:
            shared = {"query": query, "days": "all", "limit": 50}
            ranked = client.get(url("/api/search", shared))
            dated = client.get(url("/api/search", {**shared, "orderBy": "date_desc"}))
            good = ranked.status == dated.status == 200
            trial.check(good, f"{query!r} got {ranked.status} and {dated.status} {when}")
            if good:
                matches.append([row["ref"] for row in dated.json["results"]])
                rankings.append([row["ref"] for row in ranked.json["results"]])
                lacks.append(_lack(ranked.json))
    return Answers(matches, rankings, lacks)


def _lack(page: Any) -> str:
    """Why an answer was made without the index; that it is a moment behind is no reason."""
    return str(page.get("degraded", "")) if page["strategy"] == "fulltext" else ""


def _await_lack(
    trial: Trial, worker: Worker, queries: Sequence[str], before: Answers, name: str
) -> set[str]:
    """Write a little and ask until answers say what they lack; full text stays the same.

    They may know of nothing: what Chroma holds in memory it goes on giving.
    """
    seen: set[str] = set()
    _stir(trial, worker)
    end = time.monotonic() + NOTICE
    while not (seen - LOADING) and time.monotonic() < end and _alive(worker):
        answers = _ask(trial, worker, queries, f"while the index was {name}")
        same = answers.matches == before.matches
        trial.check(same, f"full-text matches changed while the index was {name}")
        seen.update(filter(None, answers.lacks))
    return seen


def _stir(trial: Trial, worker: Worker) -> None:
    """Write a record and forget it again, so that the index has something to follow."""
    told = _post(worker, [{"id": f"stirred {trial.chance.random()}", "title": "zzyzx"}])
    trial.check(told is not None, "a record could not be written while the index was broken")
    if told:
        place = f"http://{worker.host}:{worker.port}/api/observation/{told['results'][0]['ref']}"
        with _session() as session:
            session.delete(place, timeout=PATIENCE).raise_for_status()


def _heal(
    trial: Trial, queries: Sequence[str], worker: Worker, before: Answers, name: str
) -> float:
    """`memsvc index --rebuild`, after which the rankings are those of before; how long it took."""
    started = time.monotonic()
    process = start_command(trial.home, "index", "--rebuild", semantic=INDEX)
    code = process.wait(10 * PATIENCE)
    seconds = time.monotonic() - started
    trial.check(code == 0, f"--rebuild failed after it was {name}: {last_words(trial.home)[-300:]}")
    after = _ask(trial, worker, queries, f"after it was {name} and healed")
    trial.check(not any(after.lacks), f"healed, yet answers lack something: {after.lacks[:1]}")
    for query, old, new in zip(queries, before.rankings, after.rankings, strict=False):
        trial.check(old == new, f"{query!r} is ranked otherwise after the index was {name}")
    return seconds


# -- what is left behind --------------------------------------------------------------------------


@contextlib.contextmanager
def _confined(folder: Path) -> Iterator[None]:
    """Every place where programs write by themselves leads to one folder."""
    folder.mkdir()
    names = ["HOME", "TMPDIR", *(f"XDG_{name}_HOME" for name in ("DATA", "CACHE", "CONFIG"))]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(folder)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _check_leavings(trial: Trial, elsewhere: Path) -> Row:
    """No process, no file elsewhere, no connection to anywhere but this machine."""
    processes = _processes_of(trial.home)
    for pid in processes or ():
        trial.check(False, f"process {pid} was left behind")
    files = sorted(str(path.relative_to(elsewhere)) for path in elsewhere.rglob("*"))
    for name in files:
        trial.check(False, f"{name} was written outside MEMSVC_HOME")
    for contact in sorted(trial.contacts):
        trial.check(False, f"the worker had a connection that left this machine: {contact}")
    return {
        "processes": "not known on this system" if processes is None else len(processes),
        "files elsewhere": len(files),
        "connections elsewhere": len(trial.contacts) if PROC.is_dir() else "not known",
    }


def _processes_of(home: Path) -> list[int] | None:
    """The other processes that were started over a store; None where no system tells."""
    if not (PROC / "self" / "environ").exists():
        return None
    mark = f"MEMSVC_HOME={home}\0".encode()
    return [pid for pid in _pids() if pid != os.getpid() and mark in _read(pid, "environ")]


def _pids() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / name).read_bytes()
    return b""


def foreign_connections(pid: int) -> set[str]:
    """The sockets of a process that lead, or listen, beyond this machine's loopback."""
    sockets = _sockets(pid)
    return {
        f"{table}: {here} to {there}"
        for table in ("tcp", "tcp6", "udp", "udp6")
        for here, there, inode in _table(pid, table)
        if inode in sockets and not is_loopback(here if _is_nowhere(there) else there)
    }


def _sockets(pid: int) -> set[str]:
    """The numbers of a process's sockets."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for path in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(path).removeprefix("socket:[").rstrip("]"))
    return found


def _table(pid: int, name: str) -> Iterator[tuple[str, str, str]]:
    """Here, there and the socket of each line: addresses as Linux writes them."""
    for line in _read(pid, f"net/{name}").decode().splitlines()[1:]:
        fields = line.split()
        yield fields[1].partition(":")[0], fields[2].partition(":")[0], fields[9]


def _is_nowhere(address: str) -> bool:
    return not address.strip("0")


def is_loopback(address: str) -> bool:
    """Whether an address, in hexadecimal words of the machine's order, is of this machine."""
    words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
    known = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    mapped = getattr(known, "ipv4_mapped", None)
    return bool((mapped or known).is_loopback)
