"""Copies a store into a new file while others use it: whole, compact, and verified."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from memsvc.adapters.sqlite.connections import store_errors
from memsvc.adapters.sqlite.schema import migrations
from memsvc.core.errors import MemsvcError, SourceUnreadable, StoreDamaged, StoreUnavailable
from memsvc.core.ports.upkeep import Backup, Stopped
from memsvc.core.records import SHAPES, Kind

PART: Final = ".part"
"""The ending of a file that is not finished."""

STEPS: Final = 20_000
"""SQLite's steps between two looks at whether to go on: about a millisecond."""

Pace = Callable[[], bool]
"""Asked again and again while a copy is made; True breaks it off."""


def copy_store(
    source: Path, target: Path, pace: Pace = lambda: False, *, live: bool = True
) -> Backup:
    """Copy a store to a file, which is replaced at once when the copy is whole and verified.

    Free pages, and with them forgotten text, are not copied. Only the owner may read the copy.
    A source that is not `live` is one that nobody writes to, such as a backup. Raises
    StoreUnavailable, StoreDamaged, SourceUnreadable, StoreTooNew, or Stopped; then nothing is left
    of the copy.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}{PART}")
    with _written(part, target), contextlib.closing(_open(source, live)) as connection:
        _require_room(connection, target)
        connection.set_progress_handler(pace, STEPS)
        with _errors(source, target):
            connection.execute("VACUUM INTO ?", (str(part),))
        sync_file(part)
        copied = inspect(part, pace)
        os.replace(part, target)
    return Backup(target, copied.size, copied.counts, copied.schema)


def inspect(path: Path, pace: Pace = lambda: False) -> Backup:
    """Verify a store's file without changing anything, and say what is in it.

    Raises SourceUnreadable, StoreDamaged, or StoreTooNew.
    """
    with contextlib.closing(_open(path, live=False)) as connection:
        connection.set_progress_handler(pace, STEPS)
        with _errors(path, path):
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise _damaged(path, str(found))
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            return Backup(path, path.stat().st_size, _counts(connection), int(schema))


def _counts(connection: sqlite3.Connection) -> dict[Kind, int]:
    counts = {}
    for kind, shape in SHAPES.items():
        (counts[kind],) = connection.execute(f"SELECT count(*) FROM {shape.table}").fetchone()
    return counts


def _open(path: Path, live: bool) -> sqlite3.Connection:
    """A connection to a store of ours, with what is in its log. Nothing is left beside a file that
    is not live, whose folder may be read-only.
    """
    if not path.is_file():
        raise SourceUnreadable(f"There is no file {path}; give a backup of memsvc.")
    has_log = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=rw" if live else "mode=ro" if has_log else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    with _errors(path, path):
        connection = sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None)
        try:
            migrations.check_owner(connection)
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                raise SourceUnreadable(f"{path} is empty; give a backup of memsvc.")
        except BaseException:
            connection.close()
            raise
    return connection


def _require_room(connection: sqlite3.Connection, target: Path) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (unused,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    needed, free = (pages - unused) * size, shutil.disk_usage(target.parent).free
    if free < needed:
        raise StoreUnavailable(
            f"{target.parent} has {free / 1e6:,.1f} MB free, and the copy needs "
            f"{needed / 1e6:,.1f} MB; make room, or choose a file on another disk."
        )


@contextlib.contextmanager
def _written(part: Path, target: Path) -> Iterator[None]:
    """An empty private file to be filled and then renamed; removed if anything fails."""
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"{target} cannot be written ({error.strerror}); check the permissions of its folder, "
            "or choose another file."
        ) from error
    try:
        yield
        sync_folder(target.parent)
    except OSError as error:
        raise StoreUnavailable(f"{target} cannot be written ({error.strerror}).") from error
    finally:
        part.unlink(missing_ok=True)
        part.with_name(f"{part.name}-journal").unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Let a file survive a power failure."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a power failure, where the system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _errors(source: Path, target: Path) -> Iterator[None]:
    try:
        with store_errors(source):
            yield
    except MemsvcError as error:
        cause = error.__cause__
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            raise Stopped from error
        if code == sqlite3.SQLITE_FULL:
            raise StoreUnavailable(
                f"The disk of {target} is full; make room, or choose a file on another disk."
            ) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise _damaged(source, str(cause)) from error
        raise


def _damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"{path} is damaged ({' '.join(what.split())[:200]}). Save what is readable: "
        "memsvc doctor --fix; or restore another backup: memsvc restore FILE"
    )
