"""Reads the history of a git repository: one observation per commit of the current branch.

A commit's type comes from a conventional prefix (`fix(api)!: …`) or else from its wording, its
concepts from wording in its body (`_CONCEPTS`). Trailers such as Signed-off-by are dropped.
"""

import contextlib
import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from memsvc.core.errors import SourceUnreadable
from memsvc.core.ports.sources import Counter, Item, Reading
from memsvc.core.records import Observation
from memsvc.schemas.records import clean_text

MAX_FILES: Final = 1000  # adding a whole tree is not an event in the history of each file
MAX_SUBTITLE: Final = 200
MAX_SECONDS: Final = 253_402_300_799

_PREFIX = re.compile(r"(\w+)(?:\([^)]*\))?!?:\s")
_TYPE_OF_PREFIX: Final = {
    "feat": "feature",
    "feature": "feature",
    "fix": "bugfix",
    "bugfix": "bugfix",
    "hotfix": "bugfix",
    "refactor": "refactor",
    "style": "refactor",
    "perf": "change",
    "docs": "change",
    "test": "change",
    "tests": "change",
    "chore": "change",
    "build": "change",
    "ci": "change",
    "revert": "change",
}
_TYPE_OF_WORDING: Final = (
    ("bugfix", re.compile(r"\b(fix(e[sd]|ing)?|bug|crash(e[sd])?|regression|hotfix)\b", re.I)),
    ("decision", re.compile(r"\b(decided?|switch(ed)? to|adopt(ed)?|drop(ped)?)\b", re.I)),
    ("refactor", re.compile(r"\b(refactor\w*|rename\w*|clean\w*|simplif\w*)\b", re.I)),
    ("feature", re.compile(r"\b(add(s|ed)?|implement\w*|introduc\w*)\b", re.I)),
)
_CONCEPTS: Final = (
    ("why-it-exists", re.compile(r"\b(because|so that|in order to|the reason)\b", re.I)),
    ("trade-off", re.compile(r"\b(instead of|rather than|trade-?off|at the cost of)\b", re.I)),
    ("gotcha", re.compile(r"\b(beware|careful|caveat|gotcha|subtle|surprising(ly)?)\b", re.I)),
)
_TRAILER = re.compile(r"^(?:(?:[a-z]+-)+by|cc|change-id|git-svn-id): .*$\n?", re.I | re.M)
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|\n\s*\n|$)", re.S)

_FIELDS: Final = ("%H", "%at", "%ad", "%aN", "%s", "%b")
_QUIET: Final = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_REDIRECTING: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE"})
"""Git sets these inside a hook, where they would override the folder that we name."""


def read_git(path: Path) -> Reading:
    """Read the history of the repository that a folder is in, oldest commit first, without merges.

    Raises SourceUnreadable if there is no repository or no commit, or git is missing.
    """
    project = project_of(path)
    total = _count_commits(path)
    counter = Counter()
    items = _read_commits(path, project, counter)
    return Reading(str(path), items, "commits", total, counter.position)


def project_of(path: Path) -> str:
    """The name of the repository that a folder is in, the same in all its worktrees.

    Raises SourceUnreadable if it is in none, or git is missing.
    """
    answer = _git_output(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
    common = Path(answer.strip())
    named = common.parent if common.name == ".git" else common
    return clean_text(os.fsencode(named.name).decode("utf-8", "replace")).removesuffix(".git")


def _count_commits(path: Path) -> int:
    try:
        _git_output(path, "rev-parse", "--verify", "--quiet", "HEAD")
    except SourceUnreadable:
        raise SourceUnreadable(
            f"The repository {path} has no commits yet; commit something first."
        ) from None
    return int(_git_output(path, "rev-list", "--count", "--no-merges", "HEAD"))


def _git_output(path: Path, *arguments: str) -> str:
    """The output of a short git command."""
    with _run(path, *arguments) as output:
        return output.read().decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def _run(path: Path, *arguments: str) -> Iterator[IO[bytes]]:
    """The output of git as a stream. Raises SourceUnreadable at the end if git failed."""
    with tempfile.TemporaryFile() as errors, _start(path, arguments, errors) as process:
        assert process.stdout
        try:
            yield process.stdout
        except BaseException:
            process.kill()
            raise
        if process.wait():
            errors.seek(0)
            raise _explain(path, errors.read())


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
    except FileNotFoundError as error:
        raise SourceUnreadable(
            "git is not installed or not on the PATH; install it to import a repository's history."
        ) from error


def _explain(path: Path, errors: bytes) -> SourceUnreadable:
    if not path.is_dir():
        return SourceUnreadable(f"There is no folder {path}; give the path of a git repository.")
    text = errors.decode("utf-8", "replace").strip().removeprefix("fatal: ")
    if "not a git repository" in text:
        return SourceUnreadable(
            f"{path} is not in a git repository; give the path of a repository with commits."
        )
    return SourceUnreadable(f"The history of {path} cannot be read; git says: {text}")


def _read_commits(path: Path, project: str, counter: Counter) -> Iterator[Item]:
    mark = secrets.token_hex(16)  # starts a commit; no file has such a name by accident
    form = "%x00".join((mark, *_FIELDS, ""))
    which = ("log", "--reverse", "--date-order", "--no-merges")
    names = ("--name-only", "--no-renames", "-z")
    plain = ("--no-show-signature", "--no-color", "--no-notes", "--encoding=UTF-8", "--date=short")
    with _run(path, *which, *names, *plain, f"--format={form}", "HEAD") as output:
        for fields in _commits(_pieces(output), mark):
            counter.done += 1
            yield _observation(fields, project)


def _pieces(output: IO[bytes]) -> Iterator[str]:
    """The NUL-separated fields of a stream."""
    rest = b""
    while block := output.read(65_536):
        *whole, rest = (rest + block).split(b"\0")
        yield from (piece.decode("utf-8", "replace") for piece in whole)


def _commits(pieces: Iterator[str], mark: str) -> Iterator[list[str]]:
    commit: list[str] = []
    for piece in pieces:
        if piece == mark and commit:
            yield commit
            commit = []
        elif piece != mark:
            commit.append(piece)
    if commit:
        yield commit


def _observation(fields: Sequence[str], project: str) -> Observation:
    commit, seconds, day, author, subject, body = fields[: len(_FIELDS)]
    files = _files(fields[len(_FIELDS) :])
    title, text = clean_text(subject).strip(), _without_trailers(clean_text(body))
    kind = commit_type(title)
    return Observation(
        type=kind,
        title=title or commit,
        subtitle=_first_sentence(text),
        narrative=text,
        facts=_facts(len(files)),
        concepts=_concepts(kind, text),
        files_modified=tuple(files[:MAX_FILES]),
        project=project,
        session_id=f"{project}-{day}",
        created_at_epoch=min(max(int(seconds or 0), 1), MAX_SECONDS) * 1000,
        source=f"git:{project}",
        source_id=commit,
        author=clean_text(author).strip(),
    )


def _files(pieces: Sequence[str]) -> list[str]:
    """The files of a commit; git ends the message with an empty field and a line break."""
    names = [*pieces]
    if len(names) > 1:
        names[1] = names[1].removeprefix("\n")
    return [name for name in names if name]


def _facts(files: int) -> tuple[str, ...]:
    if files <= MAX_FILES:
        return ()
    return (f"Changed {files:,} files; the first {MAX_FILES:,} are listed.",)


def _without_trailers(body: str) -> str:
    return _TRAILER.sub("", body).strip()


def _first_sentence(text: str) -> str:
    match = _SENTENCE.match(text)
    sentence = " ".join(match[0].split()) if match else ""
    if len(sentence) <= MAX_SUBTITLE:
        return sentence
    return f"{sentence[: MAX_SUBTITLE - 1].rstrip()}…"


def commit_type(subject: str) -> str:
    """The observation type of a commit, from its subject."""
    prefix = _PREFIX.match(subject)
    if prefix and (known := _TYPE_OF_PREFIX.get(prefix[1].lower())):
        return known
    return next((kind for kind, wording in _TYPE_OF_WORDING if wording.search(subject)), "change")


def _concepts(kind: str, text: str) -> tuple[str, ...]:
    """`problem-solution` for a bugfix, else `what-changed`, plus those that the body mentions."""
    first = "problem-solution" if kind == "bugfix" else "what-changed"
    return (first, *(concept for concept, wording in _CONCEPTS if wording.search(text)))
