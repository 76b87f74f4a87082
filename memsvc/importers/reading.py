"""What every reader gives: a stream of items, in the order they are to be written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from memsvc.model import Kind, Record, WorkSession


@dataclass(frozen=True, slots=True)
class Refused:
    """One piece of the source that cannot be a record: where it stands, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One record of the source that is not meant to be imported."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotKept:
    """Fields of the record that follows which no record has."""

    fields: tuple[str, ...]


Item = Record | WorkSession | Refused | LeftOut | NotKept


@dataclass(frozen=True, slots=True)
class Reading:
    """A source that is being read. `total` and `position()` count the same `unit`.

    `merge_within` says, for the kinds named, how many ms may lie between two records that say the
    same for them to be one.
    """

    name: str
    items: Iterator[Item]
    unit: str
    total: int | None
    position: Callable[[], int]
    merge_within: Mapping[Kind, int] = field(default_factory=dict)


class Counter:
    """How far a reader is."""

    def __init__(self) -> None:
        self.done = 0

    def position(self) -> int:
        return self.done
