"""What memory saves: what learning something cost, and what reading it again costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

TOGETHER: Final = 1000
"""Milliseconds within which the records of one discovery are written, each after the one before."""


class Discovery(NamedTuple):
    """What one record says learning it cost, and what tells its discovery from others.

    `prompt_number` is -1 where there is none. They sort so that those of a discovery are
    neighbours.
    """

    project: str
    session_id: str
    prompt_number: int
    tokens: int
    created_at_epoch: int


@dataclass(frozen=True, slots=True)
class Economics:
    """Tokens: to read records, to read those whose cost of learning is known, to learn these."""

    read: int
    known: int
    learned: int

    @property
    def saved(self) -> int:
        """What reading saves over learning, where the cost of learning is known."""
        return max(0, self.learned - self.known)

    @property
    def percent(self) -> int:
        """What is saved, as a share of what learning cost."""
        return round(100 * self.saved / self.learned) if self.learned else 0

    def as_json(self) -> dict[str, Any]:
        return {
            "read_tokens": self.read,
            "discovery_tokens": self.learned,
            "saved_tokens": self.saved,
            "saved_percent": self.percent,
        }


def learned(discoveries: Iterable[Discovery]) -> int:
    """What learning cost, of discoveries in their sorted order; a shared one counts once.

    Whoever learns something often writes several records of it in one go, and each states the cost
    of the whole. So records of one prompt of one work session that state the same cost and were
    written together are one discovery.
    """
    total, before = 0, None
    for each in discoveries:
        total += 0 if before and _is_shared(before, each) else each.tokens
        before = each
    return total


def _is_shared(before: Discovery, each: Discovery) -> bool:
    """Whether a record tells of the discovery just before it."""
    return before[:4] == each[:4] and each.created_at_epoch - before.created_at_epoch <= TOGETHER
