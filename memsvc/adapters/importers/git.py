"""Reads the history of a git repository: one observation per commit of the current branch.

A commit's type comes from a conventional prefix (`fix(api)!: …`) or else from its wording, its
concepts from wording in its body (`_CONCEPTS`). Trailers such as Signed-off-by are dropped.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from memsvc.adapters.importers.commit_types import commit_type
from memsvc.adapters.importers.repository import git_output, git_stream, project_of
from memsvc.core.errors import SourceUnreadable
from memsvc.core.ports.sources import Counter, Item, Reading
from memsvc.core.records import Observation
from memsvc.schemas.records import clean_text

MAX_FILES: Final = 1000  # adding a whole tree is not an event in the history of each file
MAX_SUBTITLE: Final = 200
MAX_SECONDS: Final = 253_402_300_799

_CONCEPTS: Final = (
    ("why-it-exists", re.compile(r"\b(because|so that|in order to|the reason)\b", re.I)),
    ("trade-off", re.compile(r"\b(instead of|rather than|trade-?off|at the cost of)\b", re.I)),
    ("gotcha", re.compile(r"\b(beware|careful|caveat|gotcha|subtle|surprising(ly)?)\b", re.I)),
)
_TRAILER = re.compile(r"^(?:(?:[a-z]+-)+by|cc|change-id|git-svn-id): .*$\n?", re.I | re.M)
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|\n\s*\n|$)", re.S)

_FIELDS: Final = ("%H", "%at", "%ad", "%aN", "%s", "%b")


def read_git(path: Path, project: str | None = None) -> Reading:
    """Read the history of the repository that a folder is in, oldest commit first, without merges.

    The project goes by the repository's name if none is given. Raises SourceUnreadable if there is
    no repository or no commit, or git is missing.
    """
    project = clean_text(project or "").strip() or project_of(path)
    total = _count_commits(path)
    counter = Counter()
    items = _read_commits(path, project, counter)
    return Reading(str(path), items, "commits", total, counter.position)


def _count_commits(path: Path) -> int:
    try:
        git_output(path, "rev-parse", "--verify", "--quiet", "HEAD")
    except SourceUnreadable:
        raise SourceUnreadable(
            f"The repository {path} has no commits yet; commit something first."
        ) from None
    return int(git_output(path, "rev-list", "--count", "--no-merges", "HEAD"))


def _read_commits(path: Path, project: str, counter: Counter) -> Iterator[Item]:
    mark = secrets.token_hex(16)  # starts a commit; no file has such a name by accident
    form = "%x00".join((mark, *_FIELDS, ""))
    which = ("log", "--reverse", "--date-order", "--no-merges")
    names = ("--name-only", "--no-renames", "-z")
    plain = ("--no-show-signature", "--no-color", "--no-notes", "--encoding=UTF-8", "--date=short")
    with git_stream(path, *which, *names, *plain, f"--format={form}", "HEAD") as output:
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


def _concepts(kind: str, text: str) -> tuple[str, ...]:
    """`problem-solution` for a bugfix, else `what-changed`, plus those that the body mentions."""
    first = "problem-solution" if kind == "bugfix" else "what-changed"
    return (first, *(concept for concept, wording in _CONCEPTS if wording.search(text)))
