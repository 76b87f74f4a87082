"""Deletes, overwrites and locks the index of a running worker, and checks that it recovers."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.corpus import Item, title_words
from benchmarks.http_client import url
from benchmarks.loading import opened_store
from benchmarks.tables import Row
from benchmarks.trial import INDEX, QUERIES, Trial, direct_session, opened_index, post, say, serving
from benchmarks.worker import PATIENCE, Worker, await_index, last_words, start_command
from memsvc.application.semantic.indexer import LOADING
from memsvc.configuration.bootstrap import load_embedder

NOTICE = 20.0
"""Seconds within which answers must say that the index is broken."""


@dataclass(frozen=True, slots=True)
class Answers:
    """A worker's answers to the questions: full-text matches, rankings, and what they lack."""

    matches: list[list[str]]
    rankings: list[list[str]]
    lacks: list[str]


def damage_often(trial: Trial, items: Sequence[Item]) -> list[Row]:
    """Damage the index in every way, and rebuild it each time."""
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
    """Damage the index of a running worker: it must keep answering, report it, and recover."""
    say(f"index {name} while serving")
    with serving(trial) as worker:
        _await(worker)
        before = _ask(trial, worker, queries, f"before it was {name}")
        damage(trial)
        seen = _await_lack(trial, worker, queries, before, name) - {LOADING}
        trial.check(_alive(worker), f"the worker exited when its index was {name}")
        if seen:
            return _row(name, seen, _heal(trial, queries, worker, before, name))
    say("nothing was noticed; restarting the worker")
    with serving(trial) as worker:
        seen = _await_lack(trial, worker, queries, before, name)
        trial.check(bool(seen), f"no answer said that the index was {name}")
        return _row(f"{name}, restarted", seen, _heal(trial, queries, worker, before, name))


def _locked(trial: Trial, queries: Sequence[str]) -> Row:
    """Start a worker whose index is locked: it must start, report it, and recover."""
    say("index locked by another process")
    with serving(trial) as worker:
        _await(worker)
        before = _ask(trial, worker, queries, "before it was locked")
    with contextlib.ExitStack() as stack:
        with _held_index(trial):
            worker = stack.enter_context(serving(trial))
            seen = _await_lack(trial, worker, queries, before, "locked") - {LOADING}
        trial.check(any("in use" in each for each in seen), "no answer said it was locked")
        return _row("locked", seen, _heal(trial, queries, worker, before, "locked"))


@contextlib.contextmanager
def _held_index(trial: Trial) -> Iterator[None]:
    """The index, locked by this process."""
    embedder = load_embedder(trial.settings)
    with opened_store(trial.home) as store, opened_index(trial, store, embedder):
        yield


def _row(name: str, seen: set[str], seconds: float) -> Row:
    return {"index": name, "s to rebuild": seconds, "said": _shortened(seen)}


def _shortened(seen: set[str]) -> str:
    return " | ".join(sorted(each[:70] for each in seen)) or "-"


def _delete(trial: Trial) -> None:
    for entry in trial.settings.index_folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _overwrite(trial: Trial) -> None:
    """Overwrite bytes in the middle of every file of the index."""
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
    """Ask all questions once; each must be answered."""
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
    """Why an answer was made without the index; a short lag does not count."""
    return str(page.get("degraded", "")) if page["strategy"] == "fulltext" else ""


def _await_lack(
    trial: Trial, worker: Worker, queries: Sequence[str], before: Answers, name: str
) -> set[str]:
    """Write a few records and ask until answers say what they lack; full text must stay the same.

    They may say nothing, because Chroma keeps serving what it has in memory.
    """
    seen: set[str] = set()
    _stir(trial, worker)
    end = time.monotonic() + NOTICE
    while not (seen - {LOADING}) and time.monotonic() < end and _alive(worker):
        answers = _ask(trial, worker, queries, f"while the index was {name}")
        same = answers.matches == before.matches
        trial.check(same, f"full-text matches changed while the index was {name}")
        seen.update(filter(None, answers.lacks))
    return seen


def _stir(trial: Trial, worker: Worker) -> None:
    """Write and forget a record, so that the index has changes to apply."""
    told = post(worker, [{"id": f"stirred {trial.chance.random()}", "title": "zzyzx"}])
    trial.check(told is not None, "a record could not be written while the index was broken")
    if told:
        place = f"http://{worker.host}:{worker.port}/api/observation/{told['results'][0]['ref']}"
        with direct_session() as session:
            session.delete(place, timeout=PATIENCE).raise_for_status()


def _heal(
    trial: Trial, queries: Sequence[str], worker: Worker, before: Answers, name: str
) -> float:
    """Run `memsvc index --rebuild`, check that the rankings are as before, return the seconds."""
    started = time.monotonic()
    process = start_command(trial.home, "index", "--rebuild", semantic=INDEX)
    code = process.wait(10 * PATIENCE)
    seconds = time.monotonic() - started
    trial.check(code == 0, f"--rebuild failed after it was {name}: {last_words(trial.home)[-300:]}")
    after = _ask(trial, worker, queries, f"after it was {name} and rebuilt")
    trial.check(
        not any(after.lacks), f"rebuilt, but answers still lack something: {after.lacks[:1]}"
    )
    for query, old, new in zip(queries, before.rankings, after.rankings, strict=False):
        trial.check(old == new, f"{query!r} is ranked differently after the index was {name}")
    return seconds
