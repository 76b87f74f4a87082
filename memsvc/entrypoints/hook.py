"""The plugin's hook: prints the session-start page when a session starts, or nothing at all."""

import os
import sys
import threading
from typing import Final

MAX_SECONDS: Final = 1.2
"""How long the page may take, imports and the health check included; a worker that answers within
one second is in time.
"""

START_PAGE: Final = "/api/context/inject"
"""Not read from the table of operations, because importing that would delay every session."""


def main() -> None:
    """Print the session-start page for the project of this folder; always succeed, and quickly."""
    sys.stdout.buffer.write(page_within(MAX_SECONDS).encode("utf-8", "replace"))
    sys.stdout.flush()
    os._exit(0)  # without waiting for the thread


def page_within(seconds: float) -> str:
    """The session-start page if it arrives within this many seconds; otherwise empty."""
    found: list[str] = []

    def ask() -> None:
        try:
            found.append(_page())
        except Exception:  # a session without its memory is better than none
            found.append("")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else ""


def _page() -> str:
    # imported here, where the time limit applies
    from memsvc.configuration.settings import load_settings
    from memsvc.entrypoints.client import ask_worker
    from memsvc.entrypoints.place import project_here, session_folder

    settings = load_settings()
    project = project_here(settings, session_folder())
    pairs = [("project", project)] if project else []  # the root folder has no name
    response = ask_worker(settings, "GET", START_PAGE, pairs, accept="text/markdown")
    return response.content.decode("utf-8") if response.ok else ""
