"""What looking after a store finds and makes: backups, findings of doctor, what was salvaged."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from memsvc.core.records import Kind

SALVAGE: Final = "salvage"
"""What mends a damaged file: saving what is readable of it into a new one."""

MIN_FREE_SHARE: Final = 2
"""How many times the size of the store the disk should have free, for a daily backup."""


class Stopped(Exception):
    """What was being made was broken off on request; nothing is left of it."""


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup: its file, its size in bytes, how many records of each kind are in it, and the
    version of its schema.
    """

    path: Path
    size: int
    counts: Mapping[Kind, int]
    schema: int

    @property
    def records(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file in the folder of backups: what it was made for, when (local time), its bytes."""

    path: Path
    purpose: str
    made: datetime
    size: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What doctor found out about one part, and what to do if it is not `ok`.

    `mend` names what `doctor --fix` can do about it; empty if it cannot.
    """

    part: str
    ok: bool
    detail: str
    remedy: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was saved from a damaged store: how many records of each kind and vectors, how many
    records may be missing, the refs that are known to be lost, and where the damaged file is kept.
    """

    saved: Mapping[Kind, int]
    missing: Mapping[Kind, int]
    lost: tuple[str, ...]
    vectors: int
    damaged: Path
