"""What memory saves: the cost of learning something against the cost of reading it again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

MAX_GAP_MS: Final = 1000
"""Longest gap, in ms, between two records of the same discovery."""


class Discovery(NamedTuple):
    """The cost of learning that a record states, and what identifies the discovery.

    `prompt_number` is -1 if there is none. Sorting puts the records of one discovery next to each
    other.
    """

    project: str
    session_id: str
    prompt_number: int
    tokens: int
    created_at_epoch: int


@dataclass(frozen=True, slots=True)
class Economics:
    """Token totals: `read` for all records, `known` for those whose discovery cost is known, and
    `learned`, that discovery cost.
    """

    read: int
    known: int
    learned: int

    @property
    def saved(self) -> int:
        """Tokens that reading saves over learning again, where the discovery cost is known."""
        return max(0, self.learned - self.known)

    @property
    def percent(self) -> int:
        """Saved tokens as a percentage of the discovery cost."""
        return round(100 * self.saved / self.learned) if self.learned else 0

    def as_json(self) -> dict[str, Any]:
        return {
            "read_tokens": self.read,
            "discovery_tokens": self.learned,
            "saved_tokens": self.saved,
            "saved_percent": self.percent,
        }


def discovery_cost(discoveries: Iterable[Discovery]) -> int:
    """The total discovery cost. Expects sorted input; a cost that several records share counts
    once.

    An agent often writes several records about one discovery, and each states the full cost.
    Records with the same work session, prompt and cost that were written together therefore count
    as one discovery.
    """
    total, before = 0, None
    for each in discoveries:
        total += 0 if before and _is_shared(before, each) else each.tokens
        before = each
    return total


def _is_shared(before: Discovery, each: Discovery) -> bool:
    """Whether a record belongs to the same discovery as the one before it."""
    return before[:4] == each[:4] and each.created_at_epoch - before.created_at_epoch <= MAX_GAP_MS
