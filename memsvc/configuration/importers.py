"""The importers by name. A new one is a module in `adapters/importers` and a row here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memsvc.core.ports.sources import Reading


@dataclass(frozen=True, slots=True)
class Importer:
    """How a source is opened, and the help of its command: `memsvc import NAME [ARGUMENT]`.

    `open` gets the argument and the options that were given, as text and by name; it raises
    SourceUnreadable. `options` maps the name of an option to its help.
    """

    open: Callable[..., Reading]
    help: str
    argument: str = ""
    required: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False


# Importers are imported when they are opened, so that the command line starts fast.


def _open_claude_mem(file: str | None = None) -> Reading:
    from memsvc.adapters.importers.claude_mem import read_claude_mem

    return read_claude_mem(None if file is None else Path(file))


def _open_git(repository: str = ".", project: str | None = None) -> Reading:
    from memsvc.adapters.importers.git import read_git

    return read_git(Path(repository), project)


def _open_jsonl(file: str, source: str | None = None) -> Reading:
    from memsvc.adapters.importers.jsonl import read_jsonl

    return read_jsonl(file, source=source)


def _open_sample() -> Reading:
    from memsvc.adapters.importers.jsonl import SAMPLE, read_jsonl

    return read_jsonl(SAMPLE)


IMPORTERS: Final[Mapping[str, Importer]] = {
    "claude-mem": Importer(
        _open_claude_mem, "Import a claude-mem database, which is only read.", "file"
    ),
    "git": Importer(
        _open_git,
        "Import the history of a git repository, without merge commits.",
        "repository",
        options={"project": "Name of the project; default: the repository's name."},
    ),
    "jsonl": Importer(
        _open_jsonl,
        "Import FILE with one JSON record per line (also .gz, or - for standard input).",
        "file",
        required=True,
        options={"source": "Name of the source; default: the file name."},
    ),
    "sample": Importer(_open_sample, "Import the bundled sample, made for `trial`.", hidden=True),
}
