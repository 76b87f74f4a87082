"""What the plugin's hook prints when a work session starts: the start page, or nothing at all."""

import os
import sys
import threading
from pathlib import Path
from typing import Final

PATIENCE: Final = 1.2
"""Seconds that the page may take. Finding and asking the worker takes a part of it, so that a
worker that answers within one second is heard."""


def main() -> None:
    """Print the start page for the project of this folder; always succeed, and soon."""
    sys.stdout.buffer.write(page_in_time(PATIENCE).encode("utf-8", "replace"))
    sys.stdout.flush()
    os._exit(0)  # whatever the thread still waits for


def page_in_time(patience: float) -> str:
    """The start page if it comes within so many seconds; empty whatever else happens."""
    found: list[str] = []

    def ask() -> None:
        try:
            found.append(_page())
        except Exception:  # a session starts without its memory rather than not at all
            found.append("")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return found[0] if found else ""


def _page() -> str:
    # imported here, where the time it takes is bounded too
    from memsvc.configuration.settings import load_settings
    from memsvc.entrypoints.client import ask_worker

    project = _project()
    asked = [("project", project)] if project else []  # the root folder has no name
    response = ask_worker(
        load_settings(), "GET", "/api/context/inject", asked, accept="text/markdown"
    )
    return response.content.decode("utf-8") if response.ok else ""


def _project() -> str:
    """The project of the folder that the session works in: its repository's name, or its own."""
    from memsvc.configuration.importers import project_of
    from memsvc.core.errors import SourceUnreadable

    folder = Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    try:
        return project_of(folder)
    except SourceUnreadable:
        return folder.name
