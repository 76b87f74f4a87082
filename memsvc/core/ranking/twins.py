"""Twins: records that say the same again, as cherry-picks and reverts do, share one row."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from memsvc.core.ports.store import Hit, Title
from memsvc.core.ranking.subjects import subject_of
from memsvc.core.records import SHAPES, Kind, Record, Ref, kind_of

MAX_TWINS: Final = 20
"""Maximum twins in one row, which names them all; the next ones begin a row of their own."""

_NO_NEWS: Final = re.compile(
    r"^\W*(?:cherry[ -]picked from|(?:this )?reverts? (?:commit|#|\w+/)|backport of).*$",
    re.IGNORECASE | re.MULTILINE,
)

_COPY: Final = re.compile(r"^(?:revert|reapply) \"|\((?:cherry[ -]picked|backport)", re.IGNORECASE)

Name = tuple[Kind, str, str]
"""Kind, project and subject."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a record says beyond its subject, the files it touched, and whether it says that it is
    a copy.
    """

    text: str = ""
    files: frozenset[str] = frozenset()
    copied: bool = False

    def repeats(self, other: "_Said") -> bool:
        """Whether two records of one subject are the same again: the same text or files, or a
        copy that says nothing else. "Fix tests" alone is no reason.
        """
        if self.text and other.text:
            return self.text == other.text
        same_files = bool(self.files) and self.files == other.files
        return same_files or self.copied or other.copied


@dataclass(slots=True)
class _Row:
    """The best of some twins, what they say, and the others."""

    hit: Hit
    said: _Said
    others: list[Ref] = field(default_factory=list)

    def takes(self, said: _Said) -> bool:
        """Whether there is room for a record that says this, and it is a twin."""
        return len(self.others) < MAX_TWINS and self.said.repeats(said)


def fold(
    hits: Sequence[Hit],
    titles: Mapping[Ref, Title],
    read: Callable[[Iterable[Ref]], Mapping[Ref, Record]],
) -> dict[Ref, tuple[Ref, ...]]:
    """Each hit that keeps a row, in order, with its twins, best first.

    Twins are of one project and kind, have the same subject, and repeat each other. A prompt is a
    moment, and is never folded.
    """
    names = {hit.ref: _name(hit.ref, titles[hit.ref]) for hit in hits if hit.ref in titles}
    shared = Counter(names.values())
    records = read(ref for ref, name in names.items() if shared[name] > 1 and name[2])
    rows: list[_Row] = []
    of_name: dict[Name, list[_Row]] = {}
    for hit in hits:
        record = records.get(hit.ref)
        said = _said(record) if record else _Said()
        known = of_name.setdefault(names[hit.ref], []) if record else []
        row = next((row for row in known if row.takes(said)), None)
        if row:
            row.others.append(hit.ref)
            row.said = row.said if row.said.text else said
        else:
            rows.append(_Row(hit, said))
            known.append(rows[-1])
    return {row.hit.ref: tuple(row.others) for row in rows}


def _name(ref: Ref, title: Title) -> Name:
    subject = "" if ref.kind is Kind.PROMPT else subject_of(title.text)
    return ref.kind, title.project.casefold(), subject


def _said(record: Record) -> _Said:
    """What a record says, without the lines that tools add to a copy."""
    shape = SHAPES[kind_of(record)]
    title, *cells = (getattr(record, name) for name in shape.texts)
    text = "\n".join(cell if isinstance(cell, str) else "\n".join(cell) for cell in cells)
    news = _NO_NEWS.sub("", text)
    files = frozenset(path for name in shape.files for path in getattr(record, name))
    copied = news != text or _COPY.search(str(title)) is not None
    return _Said(" ".join(news.casefold().split()), files, copied)
