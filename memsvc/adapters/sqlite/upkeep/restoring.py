"""Puts a backup in the place of the store, and keeps the store that was there."""

import contextlib
import os
import sqlite3
from datetime import datetime
from pathlib import Path

from memsvc.adapters.sqlite.upkeep.backups import BEFORE_RESTORE, DAMAGED, new_path
from memsvc.adapters.sqlite.upkeep.copying import copy_store, inspect, sync_folder
from memsvc.core.errors import SourceUnreadable, StoreDamaged, StoreUnavailable
from memsvc.core.ports.upkeep import Backup

LOGS = ("-wal", "-shm", "-journal")


def restore(store: Path, backup: Path, now: datetime) -> tuple[Backup, Path | None]:
    """Replace a store by a backup; what is restored, and where the store before is kept, if any.

    The backup is not changed. Raises StoreUnavailable while any program has the store open, and
    SourceUnreadable, StoreDamaged or StoreTooNew for a backup that cannot be restored.
    """
    inspect(backup)
    if store.exists() and os.path.samefile(store, backup):
        raise SourceUnreadable(f"{backup} is the store itself; give one of its backups.")
    if store.exists():
        require_unused(store)
    new = store.with_name(f".{store.name}.restored")
    try:
        restored = copy_store(backup, new, live=False)
        _begin_new_life(new)
        kept = _keep(store, now)
        put_in_place(new, store)
    finally:
        new.unlink(missing_ok=True)
    return Backup(store, restored.size, restored.counts, restored.schema), kept


def require_unused(store: Path) -> None:
    """Raise StoreUnavailable if any program has the store open; empty its log otherwise.

    A file that is too damaged for that may be in use unnoticed.
    """
    connection = sqlite3.connect(f"{store.absolute().as_uri()}?mode=rw", uri=True, timeout=0)
    connection.isolation_level = None
    with contextlib.closing(connection):
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreUnavailable(
                    f"{store.name} is in use; stop the worker and whatever else has it open: "
                    "memsvc stop"
                ) from error


def _keep(store: Path, now: datetime) -> Path | None:
    """Keep a store in the folder of backups: a copy, or the file itself if it is damaged."""
    if not store.exists():
        return None
    try:
        return copy_store(store, new_path(store, BEFORE_RESTORE, now)).path
    except (StoreDamaged, SourceUnreadable):
        return move_aside(store, now)


def move_aside(store: Path, now: datetime) -> Path:
    """Move a damaged store and its log into the folder of backups."""
    kept = new_path(store, DAMAGED, now)
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for ending in LOGS:
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{store}{ending}", f"{kept}{ending}")
    os.replace(store, kept)
    for path in (kept, *(Path(f"{kept}{ending}") for ending in LOGS)):
        with contextlib.suppress(FileNotFoundError):
            path.chmod(0o600)
    return kept


def put_in_place(new: Path, store: Path) -> None:
    """Rename a new file to the store; the log of another file would be read as part of it."""
    for ending in LOGS:
        Path(f"{store}{ending}").unlink(missing_ok=True)
    os.replace(new, store)
    sync_folder(store.parent)


def _begin_new_life(new: Path) -> None:
    """Give a restored store a name of its own: an index that followed the other store knows
    changes that this one has not made yet, and takes no notice of those that it will make.
    """
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "semantic" in tables:
            connection.execute("UPDATE semantic SET name = lower(hex(randomblob(6)))")
