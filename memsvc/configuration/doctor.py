"""What doctor looks at, and what it mends: the store, its backups, its folder and its worker."""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from memsvc import __version__
from memsvc.configuration.home import OTHERS
from memsvc.configuration.settings import Settings
from memsvc.configuration.upkeep import describe_backups, kept_files
from memsvc.core.ports.upkeep import MIN_FREE_SHARE, SALVAGE, Finding, Salvage

PERMISSIONS: Final = "permissions"

MIN_FREE: Final = 100_000_000
"""Bytes that the disk should have free in any case."""


def examine(settings: Settings, worker: str) -> list[Finding]:
    """All findings, good and bad, while a worker may be serving at the given address."""
    if not settings.database.exists():
        detail = f"there is none in {settings.home} yet"
        return [Finding("store", False, detail, "memsvc import --help; or memsvc restore FILE")]
    from memsvc.adapters.sqlite.upkeep.checks import check_store

    return [
        Finding("version", True, f"memsvc {__version__}, SQLite {_sqlite_version()}"),
        Finding("worker", True, f"running on {worker}" if worker else "not running"),
        *check_store(settings.database, thorough=not worker),
        _check_disk(settings),
        _check_permissions(settings),
        _check_backups(settings),
    ]


def _sqlite_version() -> str:
    from memsvc.adapters.sqlite.connections import SQLITE_VERSION

    return SQLITE_VERSION


def _check_disk(settings: Settings) -> Finding:
    free, size = shutil.disk_usage(settings.home).free, settings.database.stat().st_size
    detail = f"{free / 1e6:,.0f} MB are free, and the store takes {size / 1e6:,.1f} MB"
    if free < max(MIN_FREE, MIN_FREE_SHARE * size):
        remedy = f"make room on the disk of {settings.home}; until then no backup is made by itself"
        return Finding("disk", False, detail, remedy)
    return Finding("disk", True, detail)


def _check_permissions(settings: Settings) -> Finding:
    open_to_others = [str(path.relative_to(settings.home)) for path in _too_open(settings.home)]
    if not open_to_others:
        return Finding(PERMISSIONS, True, "nobody else can read the folder")
    names = ", ".join(open_to_others[:5])
    detail = f"others can read or write {len(open_to_others)} of the files and folders: {names}"
    return Finding(PERMISSIONS, False, detail, "memsvc doctor --fix", PERMISSIONS)


def _too_open(home: Path) -> Iterator[Path]:
    """The folder and what is in it, as far as others have any permission."""
    if sys.platform == "win32":
        return
    for path in (home, *home.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & OTHERS:
            yield path


def _check_backups(settings: Settings) -> Finding:
    kept = [each for each in kept_files(settings) if each.purpose != "damaged"]
    detail = describe_backups(settings)
    if kept and datetime.now() - kept[0].made < timedelta(days=max(2, settings.backups)):
        return Finding("backups", True, detail)
    return Finding("backups", False, detail, "memsvc backup; a running worker makes one a day")


def mend(
    settings: Settings, findings: list[Finding], progress: Callable[[int], None]
) -> Iterator[str]:
    """Mend what can be mended, and say in a sentence what was done.

    Raises StoreUnavailable while any program has a damaged store open, and StoreDamaged if nothing
    can be saved.
    """
    wanted = {finding.mend for finding in findings if not finding.ok}
    if PERMISSIONS in wanted:
        yield _close(settings.home)
    yield from _mend_store(settings, wanted, progress)


def _mend_store(
    settings: Settings, wanted: set[str], progress: Callable[[int], None]
) -> Iterator[str]:
    from memsvc.adapters.sqlite.upkeep import checks
    from memsvc.adapters.sqlite.upkeep.salvage import salvage

    if SALVAGE in wanted:
        saved = salvage(settings.database, datetime.now(), progress)
        shutil.rmtree(settings.index_folder, ignore_errors=True)
        yield from _told(saved)
        return
    if checks.FULLTEXT in wanted:
        checks.mend_fulltext_of_all(settings.database)
        yield "made the full text anew"
    if checks.ROWS in wanted:
        checks.mend_rows(settings.database)
        yield "removed what belongs to no record, and made what records lacked"


def _close(home: Path) -> str:
    found = list(_too_open(home))
    for path in found:
        os.chmod(path, stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
    return f"closed {len(found)} files and folders to others"


def _told(saved: Salvage) -> Iterator[str]:
    kinds = ", ".join(f"{count:,} {kind}s" for kind, count in saved.saved.items())
    yield f"saved {kinds}, {saved.vectors:,} of their vectors, into a new file"
    if missing := {kind: count for kind, count in saved.missing.items() if count}:
        lost = ", ".join(f"{count:,} {kind}s" for kind, count in missing.items())
        known = ", ".join(saved.lost[:20]) + (", ..." if len(saved.lost) > 20 else "")
        yield f"missing: up to {lost}" + (f"; known to be lost: {known}" if known else "")
        yield "a backup may hold what is missing: memsvc restore FILE"
    yield f"the damaged file is kept: {saved.damaged}"
