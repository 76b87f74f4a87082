"""The folder that holds all state: nobody but its owner may read what is in it."""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Final

from memsvc.core.errors import StoreUnavailable

OWN_NAMES: Final = (
    "memsvc.db*",
    "worker.json",
    "worker.lock",
    "worker.log",
    "token",
    "index",
    "backups",
)
"""What memsvc keeps there; other files in the folder are left as they are."""

MAX_SMALL_FILE: Final = 4_096
"""Maximum bytes of a file that `read_private` reads."""

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)  # a pipe in place of a file would hold us up


def open_home(home: Path) -> None:
    """Create the folder if it is missing, and take what is ours in it away from everybody else.

    From now on this process creates private files only. On Windows the folder of a user is
    private already. Raises StoreUnavailable if the folder cannot be created, or is not ours.
    """
    if sys.platform != "win32":
        os.umask(OTHERS)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"The folder {home} cannot be created ({error.strerror}); set MEMSVC_HOME to a "
            "writable folder."
        ) from error
    if sys.platform != "win32":
        _require_owner(home)
        for path in _ours(home.resolve()):
            _tighten(path)


def _require_owner(home: Path) -> None:
    if home.stat().st_uid != os.geteuid():
        raise StoreUnavailable(
            f"The folder {home} belongs to another user, who could read and replace what is in "
            "it; set MEMSVC_HOME to a folder of your own."
        )


def _ours(home: Path) -> Iterator[Path]:
    if not _is_shared(home):
        yield home
    for path in (path for name in OWN_NAMES for path in home.glob(name)):
        yield path
        for folder, folders, files in os.walk(path):  # follows no links
            yield from (Path(folder, name) for name in (*folders, *files))


def _is_shared(folder: Path) -> bool:
    """Whether a folder has other purposes: closing it would lock others out of their files."""
    users = Path(os.path.expanduser("~"))  # unlike Path.home(), no error for a user without one
    return bool(folder.stat().st_mode & stat.S_ISVTX) or folder in (users, folder.parent)


def _tighten(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone by now, or a file system without permissions
        found = path.lstat()
        ours = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
        if ours and found.st_mode & OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)


def write_private(path: Path, text: str) -> None:
    """Write a private file all at once. A link in its place is replaced, not followed.

    Raises StoreUnavailable.
    """
    try:
        with whole_file(path) as file:
            file.write(text)
    except OSError as error:
        raise _cannot_write(path, error) from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A private file that takes its name once it is whole, and leaves nothing otherwise."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def new_private(path: Path) -> BinaryIO:
    """An empty private file in place of whatever was there. Raises StoreUnavailable."""
    try:
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
        return open(os.open(path, flags, 0o600), "wb")
    except OSError as error:
        raise _cannot_write(path, error) from error


def read_private(path: Path) -> str:
    """The text of a small file; empty if there is none, or if it is a link or not ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK | _NO_WAIT)
        with open(descriptor, encoding="utf-8") as file:
            return file.read() if _is_plain(os.fstat(descriptor)) else ""
    except (OSError, ValueError):
        return ""


def _is_plain(found: os.stat_result) -> bool:
    own = sys.platform == "win32" or found.st_uid == os.geteuid()
    return own and stat.S_ISREG(found.st_mode) and found.st_size <= MAX_SMALL_FILE


def _cannot_write(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"The file {path} cannot be written ({error.strerror}); check the permissions of its "
        "folder and the free space on its disk."
    )
