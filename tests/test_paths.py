"""Paths as programs write them, and which patterns they match."""

import pytest

from memsvc.core.paths import is_glob, normal_path, path_endings, path_matches


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("src/main.py", "src/main.py"),
        (" src/main.py ", "src/main.py"),
        ("src\\main.py", "src/main.py"),
        ("./src/", "src"),
        (".//././src", "src"),
        ("./Xenon/X/", "Xenon/X"),
        ("../src", "../src"),
        ("/etc/hosts", "/etc/hosts"),
        ("//", "/"),
        (".", "."),
        ("./", ""),
        ("", ""),
    ],
)
def test_every_way_to_write_a_path_has_one_normal_form(path: str, normal: str) -> None:
    assert normal_path(path) == normal
    assert normal_path(normal) == normal


def test_endings_begin_at_segments_and_come_once() -> None:
    assert path_endings("a/b/c.py") == ["a/b/c.py", "b/c.py", "c.py"]
    assert path_endings("/a") == ["/a", "a"]
    assert path_endings("a//a") == ["a//a", "/a", "a"]
    assert path_endings("") == []


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/main.py", "src/main.py", True),
        ("main.py", "src/main.py", True),
        ("./src\\", "src/main.py", True),
        ("src", "lib/src/main.py", True),
        ("ain.py", "src/main.py", False),
        ("src/mai", "src/main.py", False),
        ("sr", "src/main.py", False),
        ("main.py/x", "src/main.py", False),
        ("*.py", "src/main.py", True),
        ("*.py", "src/main.pyc", False),
        ("m*n.py", "src/main.py", True),
        ("src/*", "src/a/main.py", True),
        ("*src*", "src", True),
        ("s*.py", "lib/main.py", False),
        ("m.*", "m.py", True),
        ("m.*", "mxpy", False),
        ("[a]*", "a.py", False),
        ("a*c", "a\nb c", True),
    ],
)
def test_a_pattern_is_a_path_an_ending_a_folder_or_a_glob(
    pattern: str, path: str, matches: bool
) -> None:
    assert path_matches(pattern, path) is matches
    assert is_glob(pattern) is ("*" in pattern)
