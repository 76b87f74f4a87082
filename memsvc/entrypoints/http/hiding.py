"""Answers without the folders of this machine's user."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Hide = Callable[[str], str]


def hider(home: Path) -> Hide:
    """A function that writes MEMSVC_HOME for this folder, and ~ for the user's own."""
    names = {os.path.expanduser("~"): "~"}  # as it is for a user without a folder
    names |= {os.path.realpath(home): "MEMSVC_HOME", str(home): "MEMSVC_HOME"}
    known = {path: name for path, name in names.items() if len(Path(path).parts) > 1}
    longest_first = sorted(map(re.escape, known), key=len, reverse=True)
    paths = re.compile(rf"(?:{'|'.join(longest_first)})(?!\w)")
    return lambda text: paths.sub(lambda found: known[found[0]], text)


def hidden(value: Any, hide: Hide) -> Any:
    """A part of an answer, with every text in it rewritten."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {name: hidden(each, hide) for name, each in value.items()}
    return [hidden(each, hide) for each in value] if isinstance(value, list) else value
