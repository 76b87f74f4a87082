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

Name = tuple[Kind, str, str]
"""Kind, project and subject."""


@dataclass(slots=True)
class _Row:
    """The best of some twins, what they say, and the others."""

    hit: Hit
    text: str
    others: list[Ref] = field(default_factory=list)

    def takes(self, text: str) -> bool:
        """Whether a record with this text is a twin: it says the same, or one says nothing."""
        return len(self.others) < MAX_TWINS and (text == self.text or not (text and self.text))


def fold(
    hits: Sequence[Hit],
    titles: Mapping[Ref, Title],
    read: Callable[[Iterable[Ref]], Mapping[Ref, Record]],
) -> dict[Ref, tuple[Ref, ...]]:
    """Each hit that keeps a row, in order, with its twins, best first.

    Twins are of one project and kind, have the same subject, and say the same beyond it, if both
    say anything. A prompt is a moment, and is never folded.
    """
    names = {hit.ref: _name(hit.ref, titles[hit.ref]) for hit in hits if hit.ref in titles}
    shared = Counter(names.values())
    records = read(ref for ref, name in names.items() if shared[name] > 1 and name[2])
    rows: list[_Row] = []
    of_name: dict[Name, list[_Row]] = {}
    for hit in hits:
        record = records.get(hit.ref)
        text = _text(record) if record else ""
        known = of_name.setdefault(names[hit.ref], []) if record else []
        row = next((row for row in known if row.takes(text)), None)
        if row:
            row.others.append(hit.ref)
            row.text = row.text or text
        else:
            rows.append(_Row(hit, text))
            known.append(rows[-1])
    return {row.hit.ref: tuple(row.others) for row in rows}


def _name(ref: Ref, title: Title) -> Name:
    subject = "" if ref.kind is Kind.PROMPT else subject_of(title.text)
    return ref.kind, title.project.casefold(), subject


def _text(record: Record) -> str:
    """What a record says beyond its title, without the lines that tools add to a copy."""
    cells = (getattr(record, name) for name in SHAPES[kind_of(record)].texts[1:])
    text = "\n".join(cell if isinstance(cell, str) else "\n".join(cell) for cell in cells)
    return " ".join(_NO_NEWS.sub("", text).casefold().split())
