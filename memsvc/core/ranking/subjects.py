"""The subject of a record: its title without what people and tools put around it."""

import re
from functools import lru_cache
from typing import Final

from memsvc.core.words import MAX_CACHED

MAX_SUBJECT: Final = 300
"""Characters of a title that is cut; a longer one is text, and taken as it stands."""

_BEFORE: Final = re.compile(r"(?:[\w./-]+(?:\([^)]*\))?!?:(?=\s)|\[[^\]]*\])\s*", re.ASCII)
_AFTER: Final = re.compile(
    r"""(?:\s?\((?:\#\d+|cherry[ -]picked[^)]*|backport[^)]*)\)  # (#123), (backport of 1.2)
    |[\s,;]\s?(?:(?:closes|fixes|refs?|see)\s)?\#\d+             # , closes #1
    |[\s.…!,;])\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS: Final = (*"0123456789).…!,;", " ")
"""What a title ends with if `_AFTER` matches at all: few do, and searching takes long."""

_REVERT: Final = re.compile(r'(?:revert|reapply) "(?P<subject>.*)"', re.IGNORECASE | re.DOTALL)


def without_prefix(subject: str) -> str:
    """A subject without a conventional prefix such as `fix(api):` or a tag such as `[1.2]`."""
    while len(subject) <= MAX_SUBJECT and (found := _BEFORE.match(subject)):
        subject = subject[found.end() :]
    return subject


def without_references(title: str) -> str:
    """A title on one line, without the references and full stops at its end."""
    subject = " ".join(title.split())
    while len(subject) <= MAX_SUBJECT and subject.endswith(_ENDS):
        if not (found := _AFTER.search(subject)):
            break
        subject = subject[: found.start()]
    return subject


@lru_cache(maxsize=MAX_CACHED)
def subject_of(title: str) -> str:
    """What a title is about, in small letters: the same for a cherry-pick and for a revert."""
    subject = without_references(title)
    while reverted := _REVERT.fullmatch(subject):
        subject = without_references(reverted["subject"])
    return subject.casefold()
