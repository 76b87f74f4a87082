"""The files that the connections have open: whether they are still in their place and whole."""

import os
import shutil
from pathlib import Path
from typing import Final

from memsvc.core.errors import StoreDamaged, StoreReplaced, StoreUnavailable

SUFFIXES: Final = ("", "-wal", "-shm")
"""The files of a store: the database, what is not in it yet, and the index of that."""

MIN_FREE: Final = 1024 * 1024
"""Bytes of free space without which no record can be written."""

_MALFORMED: Final = "database disk image is malformed"

Place = tuple[int, int]
"""A device and an inode. It is not given to another file as long as a connection is open."""


class OpenFile:
    """A database file and the two beside it, as they were when they were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage = ""
        self._opened: dict[Path, Place | None] = {}

    def remember(self) -> None:
        """Take the files as they are now for those that are open."""
        paths = [self.path.with_name(f"{self.path.name}{suffix}") for suffix in SUFFIXES]
        self._opened = {path: place_of(path) for path in paths}

    def moved(self) -> list[Path]:
        """The files that were deleted, replaced or emptied since they were opened."""
        lost = [path for path, place in self._opened.items() if place_of(path) != place]
        return lost or ([self.path] if self._opened and _is_empty(self.path) else [])

    def verify(self) -> None:
        """Raise StoreReplaced if any of the files is not the one that is open."""
        for path in self.moved():
            what = "replaced or emptied" if path.exists() else "deleted"
            raise StoreReplaced(
                f"{path.name} was {what} while the worker had it open, so nothing is read from it "
                "or stored any more. Restart the worker: memsvc stop; memsvc start"
            )

    def note_damage(self, what: str) -> None:
        """Remember what was found damaged; from then on nothing is written.

        What names its table tells more than SQLite's own words.
        """
        if what and (not self.damage or self.damage == _MALFORMED):
            self.damage = what

    def verify_whole(self) -> None:
        """Raise StoreDamaged once any damage was found."""
        if self.damage:
            raise damaged(self.path, self.damage)

    def verify_space(self) -> None:
        """Raise StoreUnavailable if the disk is full."""
        if (free := shutil.disk_usage(self.path.parent).free) < MIN_FREE:
            raise StoreUnavailable(
                f"The disk of {self.path.name} is full ({free:,} bytes are free), so nothing can "
                "be written; make room on it."
            )


def place_of(path: Path) -> Place | None:
    """Where a file is; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_empty(path: Path) -> bool:
    """Whether a file holds nothing, which a store's database never does."""
    try:
        return not os.stat(path).st_size
    except OSError:
        return False


def damaged(path: Path, what: str) -> StoreDamaged:
    """The error for a damaged file, with its remedy."""
    return StoreDamaged(
        f"{path.name} is damaged ({what}): what can be read is still served, and nothing is "
        "written. Save what is readable into a new file: memsvc stop; memsvc doctor --fix"
    )
