"""What an import came to, for people and for programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memsvc.core.ports.sources import Refused
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Kind

MOST_REFUSALS = 20
MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What became of everything a source holds; after a dry run, what would become of it.

    `refusals` are the first of the `refused`, with their places; `stored_kinds` divides `stored`.
    """

    name: str
    dry_run: bool
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    stored_kinds: Mapping[Kind, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    refusals: tuple[Refused, ...] = ()
    fields_not_kept: Mapping[str, int] = field(default_factory=dict)

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
        """The report as JSON can hold it."""
        return {
            "name": self.name,
            "dry_run": self.dry_run,
            **{outcome.value: self.outcomes.get(outcome, 0) for outcome in Outcome},
            "stored_kinds": {kind.value: self.stored_kinds.get(kind, 0) for kind in Kind},
            "left_out": dict(self.left_out),
            "refused": self.refused,
            "refusals": [{"place": r.place, "reason": r.reason} for r in self.refusals],
            "fields_not_kept": dict(self.fields_not_kept),
        }

    def __str__(self) -> str:
        """The report as people read it."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        would = "would be " if self.dry_run else ""
        nothing = "; nothing was written" if self.dry_run else ""
        yield f"{self.name}: {self.stored:,} {would}stored{self._divided()}{nothing}"
        for outcome, said in _SAID.items():
            if count := self.outcomes.get(outcome, 0):
                yield f"  {count:,} {said.format(would=would)}"
        for reason, count in self.left_out.items():
            yield f"  {count:,} left out: {reason}"
        yield from self._refusal_lines()
        if self.fields_not_kept:
            yield f"  fields not kept: {_counted(self.fields_not_kept, MOST_FIELDS)}"

    def _divided(self) -> str:
        counts = [(kind, count) for kind, count in self.stored_kinds.items() if count]
        said = ", ".join(f"{count:,} {kind}{'s' if count > 1 else ''}" for kind, count in counts)
        return f" ({said})" if said else ""

    def _refusal_lines(self) -> Iterator[str]:
        if self.refused:
            yield f"  {self.refused:,} refused:"
        for refusal in self.refusals:
            yield f"    {refusal.place}: {refusal.reason}"
        if more := self.refused - len(self.refusals):
            yield f"    … and {more:,} more"


_SAID: Mapping[Outcome, str] = {
    Outcome.UPDATED: "{would}updated: changed at the source since",
    Outcome.UNCHANGED: "already there, unchanged",
    Outcome.MERGED: "{would}merged: they say the same as an earlier one",
    Outcome.FORGOTTEN: "kept away: you had them forgotten",
}


def _counted(counts: Mapping[str, int], most: int) -> str:
    """`commit (100,000), text (3)`, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"{name} ({count:,})" for name, count in ranked[:most])
    more = len(ranked) - most
    return named if more <= 0 else f"{named} and {more:,} more"
