"""Simultaneous clients, each in its own process so that they do not wait for each other."""

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

from benchmarks.http_client import Client


@dataclass(frozen=True, slots=True)
class Share:
    """The results of one client: seconds per answer, answers in time, errors, CPU time."""

    seconds: list[float]
    in_time: int
    errors: int
    cpu: float


def ask_together(host: str, port: int, urls: Sequence[Sequence[str]], span: float) -> list[Share]:
    """Run one client per list of URLs, all for `span` seconds from the same moment."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(len(urls)) as pool:
        barrier = manager.Barrier(len(urls))
        jobs = [(host, port, list(own), span, barrier) for own in urls]
        return pool.starmap(ask_alone, jobs, chunksize=1)


def ask_alone(
    host: str, port: int, urls: Sequence[str], span: float, barrier: Barrier | None = None
) -> Share:
    """Request these URLs in turn, over and over, for `span` seconds."""
    client = Client(host, port)
    client.get("/api/health")
    if barrier is not None:
        barrier.wait()
    share = _ask_on(client, urls, span)
    client.close()
    return share


def _ask_on(client: Client, urls: Sequence[str], span: float) -> Share:
    seconds: list[float] = []
    errors, in_time = 0, 0
    cpu, end = time.process_time(), time.perf_counter() + span
    while time.perf_counter() < end:
        answer = client.get(urls[len(seconds) % len(urls)])
        seconds.append(answer.seconds)
        errors += answer.status != 200
        in_time += time.perf_counter() < end
    return Share(seconds, in_time, errors, time.process_time() - cpu)
