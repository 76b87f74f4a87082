"""What git says of the repository that a folder is in. Light: the session-start hook imports it."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from memsvc.core.errors import SourceUnreadable

MAX_SECONDS: Final = 1.0
"""How long git may take to say where a folder belongs; a history of 100,000 commits fits in."""

_QUIET: Final = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_REDIRECTING: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE"})
"""Git sets these inside a hook, where they would override the folder that we name."""


def project_of(path: Path, seconds: float | None = None) -> str:
    """The name of the repository that a folder is in, the same in all its worktrees.

    Raises SourceUnreadable if it is in none, git is missing, or it takes longer than `seconds`.
    """
    asked = ("rev-parse", "--path-format=absolute", "--git-common-dir")
    common = Path(git_output(path, *asked, seconds=seconds).rstrip("\n"))
    named = common.parent if common.name == ".git" else common
    return name_of(named).removesuffix(".git")


def name_of(path: Path) -> str:
    """The name of a folder as text; empty for the root folder."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def first_commit(path: Path, seconds: float | None = None) -> str:
    """The hash of the commit that the current branch began with, the same in every clone.

    In a shallow clone it is the oldest commit there. Raises SourceUnreadable as `project_of` does,
    and if there is no commit yet.
    """
    asked = ("rev-list", "--first-parent", "--max-parents=0", "HEAD")
    # the oldest commit of a shallow clone counts as one without parents
    return git_output(path, *asked, seconds=seconds).strip()


def git_output(path: Path, *arguments: str, seconds: float | None = None) -> str:
    """The output of a short git command. Raises SourceUnreadable."""
    with tempfile.TemporaryFile() as errors, _start(path, arguments, errors) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SourceUnreadable(
                f"git took more than {seconds:g} seconds in {path}; try again."
            ) from None
        if process.returncode:
            raise _explained(path, errors)
        return output.decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def git_stream(path: Path, *arguments: str) -> Iterator[IO[bytes]]:
    """The output of git as a stream. Raises SourceUnreadable at the end if git failed."""
    with tempfile.TemporaryFile() as errors, _start(path, arguments, errors) as process:
        assert process.stdout
        try:
            yield process.stdout
        except BaseException:
            process.kill()
            raise
        if process.wait():
            raise _explained(path, errors)


def _start(path: Path, arguments: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if name not in _REDIRECTING}
    try:
        return subprocess.Popen(
            ["git", "-C", str(path), "-c", "core.quotePath=false", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**inherited, **_QUIET},
        )
    except OSError as error:
        raise SourceUnreadable(
            "git is not installed or not on the PATH; install it to import a repository's history."
        ) from error


def _explained(path: Path, errors: IO[bytes]) -> SourceUnreadable:
    if not path.is_dir():
        return SourceUnreadable(f"There is no folder {path}; give the path of a git repository.")
    errors.seek(0)
    text = errors.read().decode("utf-8", "replace").strip().removeprefix("fatal: ")
    if "not a git repository" in text:
        return SourceUnreadable(
            f"{path} is not in a git repository; give the path of a repository with commits."
        )
    return SourceUnreadable(f"The history of {path} cannot be read; git says: {text}")
