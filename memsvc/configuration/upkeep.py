"""Looking after the store of these settings: backups, restoring, and what doctor finds."""

import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

from memsvc.configuration.home import open_home
from memsvc.configuration.settings import Settings
from memsvc.core.errors import BadRequest, StoreUnavailable
from memsvc.core.ports.upkeep import Backup, KeptFile

# The adapters are imported where they are used, so that the command line starts fast.


def back_up(
    settings: Settings, target: Path | None, *, force: bool, pace: Callable[[], bool]
) -> Backup:
    """Back the store up to a file, or to a new one in the folder of backups.

    Raises BadRequest for a file that exists already, unless `force`, and StoreUnavailable,
    StoreDamaged or SourceUnreadable.
    """
    from memsvc.adapters.sqlite.upkeep.backups import MANUAL, new_path
    from memsvc.adapters.sqlite.upkeep.copying import copy_store

    path = target or new_path(settings.database, MANUAL, datetime.now())
    require_store(settings)
    if path.is_dir():
        raise BadRequest(f"{path} is a folder; give the name of a file.")
    if path.exists() and (path.samefile(settings.database) or not force):
        raise BadRequest(f"{path} exists already; choose another name, or replace it: --force")
    return copy_store(settings.database, path, pace)


def require_store(settings: Settings) -> None:
    """Raise StoreUnavailable if there is no store."""
    if not settings.database.exists():
        raise StoreUnavailable(
            f"There is no store in {settings.home} yet; import something: memsvc import --help"
        )


def restore_backup(settings: Settings, backup: Path) -> tuple[Backup, Path | None]:
    """Put a backup in the place of the store; what is restored, and where the store before is kept.

    The semantic index is removed: the next worker makes it anew from the vectors in the store.
    Raises StoreUnavailable while the store is in use; and SourceUnreadable, StoreDamaged or
    StoreTooNew for what is no usable backup.
    """
    from memsvc.adapters.sqlite.upkeep.restoring import restore

    open_home(settings.home)
    restored = restore(settings.database, backup, datetime.now())
    shutil.rmtree(settings.index_folder, ignore_errors=True)
    return restored


def inspect_backup(backup: Path) -> Backup:
    """Verify a backup without changing anything.

    Raises SourceUnreadable, StoreDamaged or StoreTooNew.
    """
    from memsvc.adapters.sqlite.upkeep.copying import inspect

    return inspect(backup)


def back_up_today(settings: Settings, today: date, pace: Callable[[], bool]) -> Backup | None:
    """Make today's backup if it is due, and remove those past their time.

    Raises StoreUnavailable, also if the disk would be left with less free than the store is large.
    """
    from memsvc.adapters.sqlite.upkeep.backups import back_up_daily

    return back_up_daily(settings.database, today, settings.backups, pace)


def describe_backups(settings: Settings) -> str:
    """How many backups there are, how old the newest is, and what they take."""
    kept = [each for each in kept_files(settings) if each.purpose != "damaged"]
    if not kept:
        return "none"
    size = sum(each.size for each in kept) / 1e6
    return f"{len(kept)}, the newest of {kept[0].made:%Y-%m-%d %H:%M}, {size:,.1f} MB together"


def kept_files(settings: Settings) -> list[KeptFile]:
    """What is in the folder of backups, newest first."""
    from memsvc.adapters.sqlite.upkeep.backups import list_backups

    return list_backups(settings.database)
