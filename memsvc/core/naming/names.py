"""Names in a query: commits, issues and versions, and how a text writes each of them."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memsvc.core.naming.commits import abbreviations, is_hash

_ISSUE_OF: Final = r"(?:(?<![\w&])#|\bgh-|\b(?:issues?|pulls?|pull requests?|prs?|tickets?)[ /]#?)"
_LETTERS: Final = r"(?:[-.]?(?:a|b|c|rc|alpha|beta|dev|post|pre)[-.]?\d+)?"

_ISSUE = re.compile(rf"{_ISSUE_OF}(\d+)\b", re.I)
_VERSION = re.compile(rf"(?<![\w.])v?(\d+(?:\.\d+)+{_LETTERS})(?![\w]|\.\d)", re.I)
_FILE = re.compile(r"(?<![^\W_])([\w-]{2,}(?:\.[\w-]+)*\.[a-z]\w{0,4})(?![\w/])", re.I)
_LEADING_V = re.compile(r"(?<![^\W_])v(?=\d+\.\d)", re.I)
_TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Name:
    """One name: its plain form (`#1025`, `1.0a9`, `a1b2c3d`), and a pattern for it in a text."""

    text: str
    written: re.Pattern[str]


@lru_cache(maxsize=1024)  # every kind of record is searched by the same text
def names_in(text: str) -> tuple[Name, ...]:
    """The names in a text, each once, in order."""
    found = {f"#{number}": _issue(number) for number in _ISSUE.findall(text)}
    found |= {version.lower(): _version(version) for version in _VERSION.findall(text)}
    found |= {
        token.lower(): _hash(token.lower()) for token in _TOKEN.findall(text) if is_hash(token)
    }
    return tuple(Name(name, re.compile(written, re.I)) for name, written in found.items())


def plain_versions(text: str) -> str:
    """The text with `1.2.3` for `v1.2.3`: both are the same version."""
    return _LEADING_V.sub("", text) if "." in text else text


def versions_in(text: str) -> list[str]:
    """The versions in a text, in small letters, without a leading v."""
    return [version.lower() for version in _VERSION.findall(text)]


def files_in(text: str) -> list[str]:
    """The names of files in a text, without their folders."""
    return _FILE.findall(text) if "." in text else []


def _issue(number: str) -> str:
    return rf"{_ISSUE_OF}{number}\b"


def _version(version: str) -> str:
    return rf"(?<![\w.])v?{re.escape(version)}(?!\w|\.\d|[-.]?(?:a|b|rc|dev|post)\d)"


def _hash(hash: str) -> str:
    shorter = "|".join([rf"{each}\b" for each in abbreviations(hash)] + [rf"{hash}[0-9a-f]*\b"])
    return rf"\b(?:{shorter})"
