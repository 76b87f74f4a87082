"""Commits by their hash: as git abbreviates it, or in full."""

import re
from dataclasses import dataclass
from typing import Final

MIN_DIGITS: Final = 7
"""Digits of the shortest hash that git prints."""

MAX_ABBREVIATED: Final = 12
"""Digits of the longest abbreviation that people write."""

FULL: Final = (40, 64)
"""Digits of a full hash: SHA-1, SHA-256."""

_HEX = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},{FULL[-1]}}}")
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by its hash, in small letters, abbreviated or full."""

    hash: str

    def __str__(self) -> str:
        return self.hash


def parse_commit(text: str) -> Commit | None:
    """Parse `a1b2c3d` or a longer hash; None if the text is none."""
    low = text.strip().lower()
    return Commit(low) if _HEX.fullmatch(low) else None


def is_hash(token: str) -> bool:
    """Whether a token can only be a hash: `defaced` may be a word, and `1234567` a number."""
    low = token.lower() if token.isupper() else token
    return (
        len(low) >= MIN_DIGITS
        and _HEX.fullmatch(low) is not None
        and not _DIGITS.isdisjoint(low)
        and not _DIGITS.issuperset(low)
    )


def abbreviations(hash: str) -> list[str]:
    """The shorter forms in which a text may give the same hash."""
    longest = min(len(hash) - 1, MAX_ABBREVIATED)
    return [hash[:length] for length in range(MIN_DIGITS, longest + 1)]


def is_commit(source_id: str) -> bool:
    """Whether a source id is the hash of a commit; numbers and words are hashes if full."""
    return is_hash(source_id) or (len(source_id) in FULL and _HEX.fullmatch(source_id) is not None)


def names_commit(hash: str, source_id: str) -> bool:
    """Whether a hash and a source id name the same commit: one begins the other."""
    return is_commit(source_id) and (source_id.startswith(hash) or hash.startswith(source_id))
