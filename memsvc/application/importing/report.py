"""The report of an import, for people and for programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memsvc.core.ports.sources import Refused
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Kind

MAX_REFUSALS = 20
"""Refusals that are reported with their places; the rest are only counted."""

MAX_FIELDS = 20
"""Unknown fields that the text names."""


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to everything in a source; after a dry run, what would happen.

    `refusals` are the first of the `refused`, with their places; `stored_kinds` splits `stored` by
    kind; `skipped` counts by reason, `unknown_fields` by name; `masked` counts the secrets that are
    not stored, by kind.
    """

    name: str
    dry_run: bool
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    stored_kinds: Mapping[Kind, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    masked: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    refusals: tuple[Refused, ...] = ()
    unknown_fields: Mapping[str, int] = field(default_factory=dict)

    @property
    def stored(self) -> int:
        return self.outcomes.get(Outcome.STORED, 0)

    @property
    def updated(self) -> int:
        return self.outcomes.get(Outcome.UPDATED, 0)

    @property
    def unchanged(self) -> int:
        return self.outcomes.get(Outcome.UNCHANGED, 0)

    @property
    def merged(self) -> int:
        return self.outcomes.get(Outcome.MERGED, 0)

    @property
    def forgotten(self) -> int:
        return self.outcomes.get(Outcome.FORGOTTEN, 0)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON, for programs."""
        return {
            "name": self.name,
            "dry_run": self.dry_run,
            **{outcome.value: self.outcomes.get(outcome, 0) for outcome in Outcome},
            "stored_kinds": {kind.value: self.stored_kinds.get(kind, 0) for kind in Kind},
            "left_out": dict(self.skipped),
            "masked": dict(self.masked),
            "refused": self.refused,
            "refusals": [{"place": r.place, "reason": r.reason} for r in self.refusals],
            "fields_not_kept": dict(self.unknown_fields),
        }

    def __str__(self) -> str:
        """The report as text, for people."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        would = "would be " if self.dry_run else ""
        nothing = "; nothing was written" if self.dry_run else ""
        yield f"{self.name}: {self.stored:,} {would}stored{self._by_kind()}{nothing}"
        for outcome, text in _TEXTS.items():
            if count := self.outcomes.get(outcome, 0):
                yield f"  {count:,} {text.format(would=would)}"
        for reason, count in self.skipped.items():
            yield f"  {count:,} skipped: {reason}"
        if self.masked:
            yield f"  {sum(self.masked.values()):,} secrets masked: {_counted(self.masked)}"
        yield from self._refusal_lines()
        if self.unknown_fields:
            yield f"  unknown fields, not stored: {_counted(self.unknown_fields)}"

    def _by_kind(self) -> str:
        counts = [(kind, count) for kind, count in self.stored_kinds.items() if count]
        text = ", ".join(f"{count:,} {kind}{'s' if count > 1 else ''}" for kind, count in counts)
        return f" ({text})" if text else ""

    def _refusal_lines(self) -> Iterator[str]:
        if self.refused:
            yield f"  {self.refused:,} refused:"
        for refusal in self.refusals:
            yield f"    {refusal.place}: {refusal.reason}"
        if more := self.refused - len(self.refusals):
            yield f"    … and {more:,} more"


_TEXTS: Mapping[Outcome, str] = {
    Outcome.UPDATED: "{would}updated: changed at the source",
    Outcome.UNCHANGED: "already stored, unchanged",
    Outcome.MERGED: "{would}merged: the same content as an earlier record",
    Outcome.FORGOTTEN: "skipped: deleted earlier",
    Outcome.PRIVATE: "skipped: private, nothing else in it",
}


def _counted(counts: Mapping[str, int]) -> str:
    """`commit (100,000), text (3)`, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"{name} ({count:,})" for name, count in ranked[:MAX_FIELDS])
    more = len(ranked) - MAX_FIELDS
    return named if more <= 0 else f"{named} and {more:,} more"
