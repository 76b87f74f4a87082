"""The project that a client means unless it names one: that of the folder it stands in."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memsvc.configuration.place import names_of
from memsvc.configuration.settings import Settings
from memsvc.entrypoints.client import ask_worker

Pair = tuple[str, str]

PROJECTS: Final = "/api/projects"
"""Not read from the table of operations, because importing that would delay every session."""


def session_folder() -> Path | None:
    """The folder of an agent's session; None if it is gone."""
    given = os.environ.get("CLAUDE_PROJECT_DIR")
    return Path(given) if given else working_folder()


def working_folder() -> Path | None:
    """The working directory; None if it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def with_folder(settings: Settings, pairs: Sequence[Pair], folder: Path | None) -> list[Pair]:
    """The parameters of a search, and the project of the folder unless they name one.

    Raises StoreUnavailable without a worker.
    """
    if not {"project", "folder"}.isdisjoint(name for name, _ in pairs):
        return [*pairs]
    project = project_here(settings, folder)
    return [*pairs, ("folder", project)] if project else [*pairs]


def project_here(settings: Settings, folder: Path | None) -> str:
    """The stored project of a folder, or else the folder's own name; empty if it has none.

    Raises StoreUnavailable without a worker.
    """
    names = list[str]()
    for name in filter(None, names_of(folder) if folder else ()):
        names.append(name)
        response = ask_worker(settings, "GET", PROJECTS, [("folder", name)])
        if not response.ok:  # a worker that was started before an upgrade, or wants a token
            return ""
        if found := response.json()["projects"]:
            return str(found[0]["project"])
    return names[0] if names else ""
