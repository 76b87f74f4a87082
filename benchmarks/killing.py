"""Kills a worker while it writes and embeds, and compares what it kept with the texts."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy

from benchmarks.corpus import Item
from benchmarks.loading import opened_store
from benchmarks.tables import Row
from benchmarks.trial import QUERIES, Trial, opened_index, post, say, serving
from benchmarks.worker import Worker, await_index
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.semantic.index_sync import embed_record
from memsvc.configuration.bootstrap import load_embedder
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedder, SemanticIndex, Vector
from memsvc.core.records import SHAPES, Kind, Record, Ref
from memsvc.core.semantic.cosines import rank_all
from memsvc.core.semantic.passages import embedding_texts

SOONEST, LATEST = 0.2, 4.0
"""Seconds after its start in which a worker is killed; in the first it loads its model."""

BATCH = 20
"""Maximum records per write."""

SAMPLE = 50
"""Records that are embedded again and compared."""

TOP = 10
"""How many of the nearest records must be exact."""

NEAR = 2e-3
"""The error that half precision and another order of additions may cause in a vector."""


def kill_often(trial: Trial, items: Sequence[Item], kills: int) -> Row:
    """Write all records to a worker that is killed repeatedly, then let it finish."""
    waiting = list(items)
    share = -(-len(items) // (kills + 1))
    started = time.monotonic()
    for number in range(kills):
        with serving(trial) as worker:
            wait = trial.chance.uniform(SOONEST, LATEST)
            waiting = _write_until_killed(trial, worker, waiting, share, wait)
        say(f"kill {number + 1} of {kills} after {wait:.1f} s: {len(trial.stored):,} stored")
    with serving(trial) as worker:
        _write_all(trial, worker, waiting)
        with worker.client() as client:
            await_index(client)
    trial.check(len(trial.stored) == len(items), "not every record could be written in the end")
    seconds = time.monotonic() - started
    return {"kills": kills, "records acknowledged": len(trial.stored), "s": seconds}


def _write_until_killed(
    trial: Trial, worker: Worker, waiting: list[Item], share: int, wait: float
) -> list[Item]:
    """Write records until the worker is killed; return those not written yet."""
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
    """Write records and note those that were acknowledged; False without an answer."""
    told = post(worker, batch)
    if told is None:
        return False
    refused = {entry["place"] for entry in told["refused"]}
    for number, item in enumerate(batch):
        if f"records[{number}]" not in refused:
            trial.stored[str(item["id"])] = item
    return True


# -- what the kills left --------------------------------------------------------------------------


def check_kept(trial: Trial) -> Row:
    """Compare the store and the index with the texts, with no worker running."""
    say("checking the store and the index")
    embedder = load_embedder(trial.settings)
    with opened_store(trial.home) as store:
        records = dict(_all_records(store))
        _check_records(trial, records)
        vectors = _check_vectors(trial, store, records, embedder)
        with opened_index(trial, store, embedder) as index:
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
    trial.check(len(held) == len(records), "a record is stored twice")


def _check_vectors(
    trial: Trial, store: SqliteStore, records: Mapping[Ref, Record], embedder: Embedder
) -> dict[Ref, Vector]:
    """Check that every record has the vectors of its text, with one fingerprint; return them."""
    kept = SqliteVectors(store.connections)
    vectors = {
        Ref(kind, id): rows
        for kind in Kind
        for id, rows in kept.vectors(
            kind, [ref.id for ref in records if ref.kind is kind], embedder.fingerprint
        ).items()
    }
    trial.check(kept.count_pending() == 0, f"{kept.count_pending()} records are still pending")
    trial.check(_fingerprints(store) <= {embedder.fingerprint}, "fingerprints are mixed")
    trial.check(_rows(store) == len(records), "there are vectors of records that no longer exist")
    for ref, record in records.items():
        wanted, found = len(embedding_texts(record)), len(vectors.get(ref, ()))
        trial.check(wanted == found, f"{ref} has {found} vectors; its text needs {wanted}")
    for ref in trial.chance.sample(sorted(vectors), min(SAMPLE, len(vectors))):
        made = embed_record(embedder, records[ref])
        same = made.shape == vectors[ref].shape and numpy.allclose(made, vectors[ref], atol=NEAR)
        trial.check(same, f"{ref} has vectors that differ from its text's")
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


def _check_index(
    trial: Trial,
    index: SemanticIndex,
    vectors: Mapping[Ref, Vector],
    records: Mapping[Ref, Record],
    embedder: Embedder,
) -> None:
    """Check that the index has all vectors and finds the same as an exact comparison."""
    counted = sum(map(len, vectors.values()))
    trial.check(index.count() == counted, f"the index has {index.count()}, not {counted} vectors")
    for ref in trial.chance.sample(sorted(records), min(QUERIES, len(records))):
        text = embedding_texts(records[ref])[0][0][0]
        sought = embedder.embed(text)
        held = {each.id: rows for each, rows in vectors.items() if each.kind is ref.kind}
        exact = [cosine for _, cosine in rank_all(held, sought)[:TOP]]
        found = [cosine for _, cosine in index.nearest(ref.kind, sought, TOP, Filter())]
        same = len(exact) == len(found) and numpy.allclose(exact, found, atol=NEAR)
        trial.check(same, f"the index misses the nearest record to {text[:60]!r}")
