"""The folder of backups beside the store: what is in it, and what is made and removed by itself."""

import contextlib
import shutil
import sqlite3
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

from memsvc.adapters.sqlite.connections import store_errors
from memsvc.adapters.sqlite.schema import migrations
from memsvc.adapters.sqlite.upkeep.copying import PART, Pace, copy_store
from memsvc.core.errors import StoreUnavailable
from memsvc.core.ports.upkeep import MIN_FREE_SHARE, Backup, KeptFile
from memsvc.core.records import SHAPES

MAX_BEFORE_SCHEMA: Final = 3
"""Backups from before schema steps that are kept."""

DAILY: Final = "daily"
MANUAL: Final = "manual"
BEFORE_RESTORE: Final = "before-restore"
BEFORE_SCHEMA: Final = "before-schema"
DAMAGED: Final = "damaged"
PURPOSES: Final = (DAILY, MANUAL, BEFORE_RESTORE, BEFORE_SCHEMA, DAMAGED)


def folder_of(store: Path) -> Path:
    """The folder that the backups of a store are in."""
    return store.parent / "backups"


def new_path(store: Path, purpose: str, now: datetime) -> Path:
    """A path for a new file in the folder; no file has it yet."""
    stem = f"{purpose}-{now:%Y-%m-%d-%H%M%S}"
    paths = (
        folder_of(store) / f"{stem}{number}.db" for number in ("", *map(_suffix, range(2, 99)))
    )
    return next(path for path in paths if not path.exists())


def _suffix(number: int) -> str:
    return f"-{number}"


def list_backups(store: Path) -> list[KeptFile]:
    """The files in the folder, newest first."""
    found = []
    for path in folder_of(store).glob("*.db"):
        purpose = next((each for each in PURPOSES if path.name.startswith(f"{each}-")), "")
        if purpose:
            with contextlib.suppress(OSError):  # removed meanwhile
                state = path.stat()
                made = datetime.fromtimestamp(state.st_mtime)
                found.append(KeptFile(path, purpose, made, state.st_size))
    return sorted(found, key=lambda kept: (kept.made, kept.path.name), reverse=True)


def back_up_daily(store: Path, today: date, days: int, pace: Pace) -> Backup | None:
    """Make today's backup unless it is there, and remove those that are older than `days` days.

    None if there is nothing to do; an empty store has no backup. With 0 days nothing is made or
    removed. Raises StoreUnavailable, also when the disk is nearly full, StoreDamaged or Stopped.
    """
    target = folder_of(store) / f"{DAILY}-{today}.db"
    if not days or target.exists() or _is_empty(store):
        return None
    _require_plenty(store)
    _remove_unfinished(store)
    made = copy_store(store, target, pace)
    for path in folder_of(store).glob(f"{DAILY}-*.db"):  # once there is a new one
        if path.stem < f"{DAILY}-{today - timedelta(days)}":
            path.unlink(missing_ok=True)
    return made


def _require_plenty(store: Path) -> None:
    """Raise StoreUnavailable unless the disk has room for the backup and for as much again."""
    size, free = store.stat().st_size, shutil.disk_usage(store.parent).free
    if free < MIN_FREE_SHARE * size:
        raise StoreUnavailable(
            f"the disk has {free / 1e6:,.1f} MB free, less than {MIN_FREE_SHARE} times the size of "
            f"the store ({size / 1e6:,.1f} MB); make room on it."
        )


def _remove_unfinished(store: Path) -> None:
    """Remove what a daily backup left that was killed."""
    for path in folder_of(store).glob(f".{DAILY}-*{PART}*"):
        path.unlink(missing_ok=True)


def back_up_before_migration(store: Path, connection: sqlite3.Connection, now: datetime) -> None:
    """Keep a store as it is before its schema changes, unless it is new or empty.

    Raises StoreUnavailable if that is not possible; the store must then not be migrated.
    """
    steps = migrations.pending(connection)
    if len(steps) == len(migrations.STEPS) or not has_records(connection):
        return
    number = steps[0].partition("_")[0]
    try:
        copy_store(store, new_path(store, f"{BEFORE_SCHEMA}-{number}", now))
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"The store must be migrated to this version of memsvc, and a backup is made first, "
            f"but: {error.detail} The store is unchanged."
        ) from error
    old = [kept.path for kept in list_backups(store) if kept.purpose == BEFORE_SCHEMA]
    for path in old[MAX_BEFORE_SCHEMA:]:
        path.unlink(missing_ok=True)


def _is_empty(store: Path) -> bool:
    uri = f"{store.absolute().as_uri()}?mode=rw"
    with (
        store_errors(store),
        contextlib.closing(sqlite3.connect(uri, uri=True, timeout=10)) as connection,
    ):
        return not has_records(connection)


def has_records(connection: sqlite3.Connection) -> bool:
    """Whether a store holds any record."""
    tables = [shape.table for shape in SHAPES.values()]
    sql = " UNION ALL ".join(f"SELECT EXISTS (SELECT 1 FROM {table})" for table in tables)
    return any(found for (found,) in connection.execute(sql))
