"""Write what a reader reads into a store: in batches, repeatable, never half a batch."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memsvc.application.importing.report import MOST_REFUSALS, Report
from memsvc.core.ports.sources import LeftOut, NotKept, Reading, Refused
from memsvc.core.ports.store import Outcome, Store
from memsvc.core.records import Kind, Record, WorkSession, content_hash, kind_of

BATCH = 1000
_MOST_NAMES = 1000  # different names counted; a source made of noise must not fill the memory
_LONGEST_NAME = 60

Progress = Callable[[int, int | None], None]
"""Told how far the import is, and how far it goes if that is known."""


def ingest(
    store: Store, reading: Reading, *, dry_run: bool = False, progress: Progress | None = None
) -> Report:
    """Write a source into a store and report what became of everything in it.

    Each batch is written whole or not at all, so an import can be broken off at any moment and run
    again: what is there already is left alone. With `dry_run` nothing is written, and the report
    says what would become of each record.
    """
    tally = _Tally()
    rehearsal = _Rehearsal(store)
    for batch in _batches(reading, tally):
        if dry_run:
            outcomes = rehearsal.write(batch.records, batch.merge_within)
        else:
            outcomes = _write(store, batch)
        tally.count(batch.records, outcomes)
        if progress:
            progress(reading.position(), reading.total)
    return tally.report(reading.name, dry_run)


@dataclass(slots=True)
class _Batch:
    """Records that are written together, all with the same window for merging."""

    merge_within: int | None
    records: list[Record] = field(default_factory=list)
    work_sessions: list[WorkSession] = field(default_factory=list)

    def add(self, item: Record | WorkSession) -> None:
        if isinstance(item, Record):
            self.records.append(item)
        else:
            self.work_sessions.append(item)

    def is_full(self) -> bool:
        return len(self.records) + len(self.work_sessions) >= BATCH

    def is_empty(self) -> bool:
        return not self.records and not self.work_sessions


def _write(store: Store, batch: _Batch) -> list[Outcome]:
    if batch.is_empty():
        return []
    receipts = store.write(batch.records, batch.work_sessions, merge_within=batch.merge_within)
    return [receipt.outcome for receipt in receipts]


def _batches(reading: Reading, tally: "_Tally") -> Iterator[_Batch]:
    """Batches of what is to be written; all else goes to the tally as it comes."""
    batch = _Batch(None)
    for item in reading.items:
        if not isinstance(item, Record | WorkSession):
            tally.note(item)
            continue
        window = _window(reading, item)
        if batch.is_full() or window != batch.merge_within:
            yield batch
            batch = _Batch(window)
        batch.add(item)
    yield batch


def _window(reading: Reading, item: Record | WorkSession) -> int | None:
    return reading.merge_window(item) if isinstance(item, Record) else None


class _Tally:
    """Counts what becomes of the items of one source."""

    def __init__(self) -> None:
        self._outcomes: Counter[Outcome] = Counter()
        self._stored_kinds: Counter[Kind] = Counter()
        self._left_out: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()
        self._refused = 0
        self._refusals: list[Refused] = []

    def note(self, item: Refused | LeftOut | NotKept) -> None:
        """Count an item of which nothing is written."""
        if isinstance(item, LeftOut):
            _count(self._left_out, item.reason)
        elif isinstance(item, NotKept):
            for name in item.fields:
                _count(self._fields, name[:_LONGEST_NAME])
        else:
            self._refused += 1
            if len(self._refusals) < MOST_REFUSALS:
                self._refusals.append(item)

    def count(self, records: list[Record], outcomes: list[Outcome]) -> None:
        """Count what became of the records of one batch."""
        self._outcomes.update(outcomes)
        pairs = zip(records, outcomes, strict=True)
        stored = [record for record, outcome in pairs if outcome is Outcome.STORED]
        self._stored_kinds.update(map(kind_of, stored))

    def report(self, name: str, dry_run: bool) -> Report:
        """All that was counted."""
        return Report(
            name,
            dry_run,
            outcomes=dict(self._outcomes),
            stored_kinds=dict(self._stored_kinds),
            left_out=dict(self._left_out),
            refused=self._refused,
            refusals=tuple(self._refusals),
            fields_not_kept=dict(self._fields),
        )


def _count(counts: Counter[str], name: str) -> None:
    if name in counts or len(counts) < _MOST_NAMES:
        counts[name] += 1
    else:
        counts["others"] += 1


class _Rehearsal:
    """Foresees what writing would come to, the records rehearsed before included."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[int, int] = {}
        self._told: dict[int, list[int]] = {}

    def write(self, records: list[Record], merge_within: int | None) -> list[Outcome]:
        """What would become of these records."""
        foreseen = self._store.foresee(records, merge_within=merge_within)
        return [
            self._settle(record, receipt.outcome, merge_within)
            for record, receipt in zip(records, foreseen, strict=True)
        ]

    def _settle(self, record: Record, foreseen: Outcome, merge_within: int | None) -> Outcome:
        if foreseen is Outcome.FORGOTTEN:
            return foreseen
        identity, said = hash((type(record), record.source, record.source_id)), hash(record)
        before = self._written.get(identity)
        if before is not None:
            foreseen = Outcome.UNCHANGED if before == said else Outcome.UPDATED
        elif foreseen is Outcome.STORED and self._is_told(record, merge_within):
            foreseen = Outcome.MERGED
        if foreseen is not Outcome.MERGED:
            self._written[identity] = said
        return foreseen

    def _is_told(self, record: Record, merge_within: int | None) -> bool:
        """Whether a record rehearsed before says the same at about the same time."""
        if merge_within is None:
            return False
        what = hash((type(record), record.source, content_hash(record)))
        moments = self._told.setdefault(what, [])
        moment = record.created_at_epoch
        if any(abs(moment - other) <= merge_within for other in moments):
            return True
        moments.append(moment)
        return False
