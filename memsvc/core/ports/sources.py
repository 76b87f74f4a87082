"""What every importer yields: a stream of items, in the order in which they are written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from memsvc.core.ports.store import Trace
from memsvc.core.records import Kind, Record, WorkSession


@dataclass(frozen=True, slots=True)
class Refused:
    """A piece of the source that cannot be a record: its place, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record of the source that is deliberately not imported."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """Fields of the next record that are not stored, because no record has them."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Export:
    """The beginning of an export: its records keep their ids, and `last_ids` were given out."""

    last_ids: Mapping[Kind, int]


@dataclass(frozen=True, slots=True)
class Whole:
    """The end of an export of which nothing is missing: these ids were given out.

    Taken over before the end, they would keep the records to come from keeping theirs.
    """

    last_ids: Mapping[Kind, int]


Item = Record | WorkSession | Trace | Export | Whole | Refused | Skipped | UnknownFields


@dataclass(frozen=True, slots=True)
class Reading:
    """A source that is being read. `total` and `position()` count the same `unit`.

    `merge_window` gives the most ms between a record and an earlier one with the same content for
    the two to be merged; None keeps them apart.
    """

    name: str
    items: Iterator[Item]
    unit: str
    total: int | None
    position: Callable[[], int]
    merge_window: Callable[[Record], int | None] = lambda record: None


class Counter:
    """How far an importer has read."""

    def __init__(self) -> None:
        self.done = 0

    def position(self) -> int:
        return self.done
