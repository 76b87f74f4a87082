"""The durability measurement: it sees what should not be, and a worker passes a short run."""

import json
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from samples import NOW
from workers import PATIENCE

from benchmarks.__main__ import benchmarks
from benchmarks.processes import foreign_connections, is_loopback
from benchmarks.trial import Trial

ON_LINUX = pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="Linux tells")


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:8.8.8.8", False),
        ("2001:db8::1", False),
    ],
)
def test_an_address_is_of_this_machine_or_not(address: str, here: bool) -> None:
    assert is_loopback(_as_linux_writes(address)) is here


def _as_linux_writes(address: str) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, 'little'):08X}" for word in words)


@ON_LINUX
def test_a_socket_that_listens_to_everyone_is_seen_and_one_on_loopback_is_not() -> None:
    with socket.socket() as near:
        near.bind(("127.0.0.1", 0))
        near.listen()
        before = foreign_connections(os.getpid())
        with socket.socket() as far:
            far.bind(("0.0.0.0", 0))
            far.listen()
            assert len(foreign_connections(os.getpid()) - before) == 1


def test_what_does_not_hold_is_noted_in_words(tmp_path: Path) -> None:
    trial = Trial(tmp_path, random.Random(1))
    trial.check(True, "all is well")
    trial.check(False, "a record is lost")
    assert trial.failures == ["a record is lost"]


@pytest.mark.slow
def test_a_worker_killed_once_keeps_what_it_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of all of it, on few records."""
    monkeypatch.setattr("benchmarks.damaging.NOTICE", PATIENCE)
    monkeypatch.setattr("benchmarks.killing.LATEST", 1.0)
    corpus = tmp_path / "corpus.jsonl"
    items = (
        {"id": number, "title": f"Fixed fault {number}", "created_at_epoch": NOW + number}
        for number in range(24)
    )
    corpus.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    words = ["durability", str(corpus), "--kills", "1", "--records", "24", "--json"]
    result = CliRunner().invoke(benchmarks, words)
    told = json.loads(result.stdout)
    assert told["failures"] == []
    assert result.exit_code == 0
    assert told["kills"]["records acknowledged"] == 24
    assert told["what was kept"]["records"] == 24


@pytest.mark.slow
def test_a_crowd_loses_nothing_when_the_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight writers, eight readers, a kill; twice over one store."""
    monkeypatch.setattr("benchmarks.crowd.LATEST", 1.0)
    told = _run("crowd", tmp_path, ["--rounds", "2", "--json"])
    assert [row["integrity"] for row in told["rounds"]] == ["ok", "ok"]
    assert told["rounds"][1]["records"] > 0


@pytest.mark.slow
def test_under_mixed_load_every_answer_is_the_one_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few seconds of it; how fast and how flat only a quiet machine can show."""
    for name, value in (("MAX_DRIFT", 9.0), ("MAX_HEALTH_MS", 1e6), ("SAMPLE_PAUSE", 0.2)):
        monkeypatch.setattr(f"benchmarks.endurance.{name}", value)
    told = _run("endurance", tmp_path, ["--minutes", "0.1", "--semantic", "off", "--json"])
    assert {"200", "201"} <= told["answers by status"].keys()


def _run(benchmark: str, folder: Path, words: list[str]) -> dict[str, Any]:
    """The report of a benchmark over a few records; nothing in it may have failed."""
    corpus = folder / "corpus.jsonl"
    titles = [f"Fixed fault {number} in the {word}" for number, word in enumerate(WORDS * 20)]
    shared = {"project": "shop", "created_at_epoch": NOW}
    items = ({"id": n, "title": title, **shared} for n, title in enumerate(titles))
    corpus.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    result = CliRunner().invoke(benchmarks, [benchmark, str(corpus), *words])
    told: dict[str, Any] = json.loads(result.stdout)
    assert told["failures"] == []
    return told


WORDS = ["parser", "queue", "cache", "login"]
