"""File paths: normal form, endings and globs."""

import re


def normal_path(path: str) -> str:
    """The normal form of a path: `/` between segments, no leading `./`, no trailing `/`."""
    plain = path.strip().replace("\\", "/")
    while plain.startswith("./"):
        plain = plain[2:].lstrip("/")
    return plain.rstrip("/") or plain[:1]


def path_endings(path: str) -> list[str]:
    """The endings of a path that start at a segment: `a/b/c.py` has itself, `b/c.py` and `c.py`."""
    names = path.split("/")
    endings = ("/".join(names[start:]) for start in range(len(names)))
    return [ending for ending in dict.fromkeys(endings) if ending]


def is_glob(pattern: str) -> bool:
    """Whether a pattern is a glob; only `*` is a wildcard."""
    return "*" in pattern


def path_matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches a path: the path, an ending, a folder above it, or a glob."""
    wanted = normal_path(pattern)
    if is_glob(wanted):
        first, *inner, last = map(re.escape, wanted.split("*"))
        # each piece matches where it can first: another place would leave less for those behind
        placed = "".join(f"(?>.*?{piece})" for piece in inner)
        glob = re.compile(f"{first}{placed}.*{last}", re.DOTALL)
        return any(glob.fullmatch(ending) for ending in path_endings(path))
    return any(f"{ending}/".startswith(f"{wanted}/") for ending in path_endings(path))
