"""Kills a worker and damages its index: nothing may be lost, left behind or sent anywhere."""

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.corpus import sample_items
from benchmarks.damaging import damage_often
from benchmarks.killing import check_kept, kill_often
from benchmarks.processes import PROC, processes_of
from benchmarks.tables import Row, report
from benchmarks.trial import Trial
from benchmarks.worker import temporary_home

RULES = "kingfisher"
"""The folder of compiled rules in the user's cache; it holds nothing of the user."""


def measure_durability(corpus: Path, *, kills: int, records: int, seed: int, as_json: bool) -> int:
    """Print what was done to the worker and what failed; return the exit code."""
    chance = random.Random(seed)
    items = sample_items(corpus, records, chance)
    sections: dict[str, Any] = {}
    with temporary_home() as folder, _confined(folder / "elsewhere"):
        trial = Trial(folder / "home", chance)
        sections["kills"] = kill_often(trial, items, kills)
        sections["what was kept"] = check_kept(trial)
        sections["damage"] = damage_often(trial, items)
        sections["left behind"] = _check_leavings(trial, folder / "elsewhere")
    return report(sections, trial.failures, as_json=as_json)


@contextlib.contextmanager
def _confined(folder: Path) -> Iterator[None]:
    """Redirect every place where programs write by default to one folder."""
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
    """Check for leftover processes, files elsewhere, and connections to other machines."""
    processes = processes_of(trial.home)
    for pid in processes or ():
        trial.check(False, f"process {pid} was left behind")
    found = (path.relative_to(elsewhere) for path in elsewhere.rglob("*"))
    files = sorted(str(path) for path in found if path.parts[0] != RULES)
    for name in files:
        trial.check(False, f"{name} was written outside MEMSVC_HOME")
    for contact in sorted(trial.contacts):
        trial.check(False, f"the worker had a connection that left this machine: {contact}")
    return {
        "processes": "not available on this system" if processes is None else len(processes),
        "files elsewhere": len(files),
        "connections elsewhere": len(trial.contacts) if PROC.is_dir() else "not known",
    }
