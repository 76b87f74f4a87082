"""What every reader gives: a stream of items, in the order they are to be written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memsvc.core.records import Record, WorkSession


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

    `merge_window` says how many ms may lie between a record and an earlier one that says the same
    for the two to be one; None keeps it apart.
    """

    name: str
    items: Iterator[Item]
    unit: str
    total: int | None
    position: Callable[[], int]
    merge_window: Callable[[Record], int | None] = lambda record: None


class Counter:
    """How far a reader is."""

    def __init__(self) -> None:
        self.done = 0

    def position(self) -> int:
        return self.done
