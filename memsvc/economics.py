"""What memory saves: what learning something cost, and what reading it again costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

TOGETHER: Final = 1000
"""Milliseconds within which the records of one discovery are written, each after the one before."""


class Cost(NamedTuple):
    """What one record costs in tokens, and what tells its discovery from others.

    `prompt_number` is -1 where there is none. Costs sort so that those of a discovery are
    neighbours.
    """

    project: str
    session_id: str
    prompt_number: int
    discovery_tokens: int
    created_at_epoch: int
    read_tokens: int


@dataclass(frozen=True, slots=True)
class Economics:
    """Tokens: to read records, to have learned them, and what reading saves over learning.

    What was saved is told of those records alone whose cost of learning is known.
    """

    read: int = 0
    learned: int = 0
    saved: int = 0

    @property
    def percent(self) -> int:
        """What was saved, as a share of what learning cost."""
        return round(100 * self.saved / self.learned) if self.learned else 0

    def as_json(self) -> dict[str, Any]:
        return {
            "read_tokens": self.read,
            "discovery_tokens": self.learned,
            "saved_tokens": self.saved,
            "saved_percent": self.percent,
        }


def weigh_up(costs: Iterable[Cost]) -> Economics:
    """The economics of records, given in their sorted order; a shared discovery counts once.

    Whoever learns something often writes several records of it in one go, and each states the cost
    of the whole. So records of one prompt of one work session that state the same cost and were
    written together are one discovery.
    """
    read = known = learned = 0
    before: Cost | None = None
    for cost in costs:
        read += cost.read_tokens
        if cost.discovery_tokens:
            known += cost.read_tokens
            learned += 0 if _is_shared(before, cost) else cost.discovery_tokens
        before = cost
    return Economics(read, learned, max(0, learned - known))


def _is_shared(before: Cost | None, cost: Cost) -> bool:
    """Whether a cost is that of the discovery just before it."""
    if before is None or before[:4] != cost[:4]:
        return False
    return cost.created_at_epoch - before.created_at_epoch <= TOGETHER
