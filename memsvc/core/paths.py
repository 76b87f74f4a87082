"""File paths as people name them: one spelling, all endings, folders and globs."""


def normal_path(path: str) -> str:
    """One spelling of a path: `/` between parts, no leading `./`, no trailing `/`."""
    plain = path.strip().replace("\\", "/")
    while plain.startswith("./"):
        plain = plain[2:].lstrip("/")
    return plain.rstrip("/") or plain[:1]


def path_endings(path: str) -> list[str]:
    """Every text a path ends in at a `/`: `a/b/c.py` gives itself, `b/c.py` and `c.py`."""
    parts = path.split("/")
    endings = ("/".join(parts[start:]) for start in range(len(parts)))
    return [ending for ending in dict.fromkeys(endings) if ending]


def is_glob(pattern: str) -> bool:
    """Whether a pattern is a glob; only `*` makes one."""
    return "*" in pattern


def sqlite_glob(pattern: str) -> str:
    """A `*` pattern as SQLite's GLOB reads it, where `?` and `[` would mean more."""
    return "".join(f"[{letter}]" if letter in "?[" else letter for letter in pattern)
