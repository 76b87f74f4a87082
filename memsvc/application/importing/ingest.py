"""Stores what an importer reads, in atomic batches, so that an import can be repeated."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memsvc.application.importing.report import MAX_REFUSALS, Report
from memsvc.core.ports.sources import Export, Reading, Refused, Skipped, UnknownFields, Whole
from memsvc.core.ports.store import Outcome, Store, Trace
from memsvc.core.records import Kind, Record, WorkSession, content_hash, kind_of

BATCH = 1000
MAX_NAMES = 1000  # distinct names counted: a garbage source must not exhaust the memory
MAX_NAME = 60  # characters of a name

Progress = Callable[[int, int | None], None]
"""Called with the position of the import and, if known, its total."""


def ingest(
    store: Store, reading: Reading, *, dry_run: bool = False, progress: Progress | None = None
) -> Report:
    """Import a source into a store and report what happened to everything in it.

    Each batch is written completely or not at all, so an import can be interrupted at any time and
    run again: it skips what is stored already. With `dry_run` nothing is written, and the report
    says what would happen to each record.
    """
    tally = _Tally()
    preview = _Preview(store)
    for batch in _batches(reading, tally):
        if dry_run:
            outcomes = preview.outcomes(batch.records, batch.merge_within)
        else:
            outcomes = _write(store, batch)
        tally.count(batch.records, outcomes)
        if progress:
            progress(reading.position(), reading.total)
    if tally.whole and not dry_run:
        store.adopt([], tally.whole.last_ids)
    return tally.report(reading.name, dry_run)


@dataclass(slots=True)
class _Batch:
    """Records that are written together, all with the same merge window."""

    merge_within: int | None
    keep_ids: bool = False
    records: list[Record] = field(default_factory=list)
    work_sessions: list[WorkSession] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    def add(self, item: Record | WorkSession | Trace) -> None:
        if isinstance(item, Record):
            self.records.append(item)
        elif isinstance(item, Trace):
            self.traces.append(item)
        else:
            self.work_sessions.append(item)

    def is_full(self) -> bool:
        return len(self.records) + len(self.work_sessions) + len(self.traces) >= BATCH


def _write(store: Store, batch: _Batch) -> list[Outcome]:
    receipts = []
    if batch.records or batch.work_sessions:
        receipts = store.write(
            batch.records,
            batch.work_sessions,
            merge_within=batch.merge_within,
            keep_ids=batch.keep_ids,
        )
    if batch.traces:  # last: a forgotten work session may have records again
        store.adopt(batch.traces, {})
    return [receipt.outcome for receipt in receipts]


def _batches(reading: Reading, tally: "_Tally") -> Iterator[_Batch]:
    """The batches to write; everything else is counted by the tally."""
    batch = _Batch(None)
    for item in reading.items:
        if not isinstance(item, Record | WorkSession | Trace):
            tally.note(item)
            batch.keep_ids = tally.is_export
            continue
        window = _window(reading, item)
        if batch.is_full() or window != batch.merge_within:
            yield batch
            batch = _Batch(window, keep_ids=tally.is_export)
        batch.add(item)
    yield batch


def _window(reading: Reading, item: Record | WorkSession | Trace) -> int | None:
    return reading.merge_window(item) if isinstance(item, Record) else None


class _Tally:
    """Counts what happens to the items of one source."""

    def __init__(self) -> None:
        self.is_export = False
        self.whole: Whole | None = None
        self._outcomes: Counter[Outcome] = Counter()
        self._stored_kinds: Counter[Kind] = Counter()
        self._skipped: Counter[str] = Counter()
        self._unknown_fields: Counter[str] = Counter()
        self._refused = 0
        self._refusals: list[Refused] = []

    def note(self, item: Export | Whole | Refused | Skipped | UnknownFields) -> None:
        """Count an item that is not written."""
        if isinstance(item, Export):
            self.is_export = True
        elif isinstance(item, Whole):
            self.whole = item
        elif isinstance(item, Skipped):
            _count(self._skipped, item.reason)
        elif isinstance(item, UnknownFields):
            for name in item.fields:
                _count(self._unknown_fields, name[:MAX_NAME])
        else:
            self._refused += 1
            if len(self._refusals) < MAX_REFUSALS:
                self._refusals.append(item)

    def count(self, records: list[Record], outcomes: list[Outcome]) -> None:
        """Count the outcomes of one batch."""
        self._outcomes.update(outcomes)
        pairs = zip(records, outcomes, strict=True)
        stored = [record for record, outcome in pairs if outcome is Outcome.STORED]
        self._stored_kinds.update(map(kind_of, stored))

    def report(self, name: str, dry_run: bool) -> Report:
        """Everything counted."""
        return Report(
            name,
            dry_run,
            outcomes=dict(self._outcomes),
            stored_kinds=dict(self._stored_kinds),
            skipped=dict(self._skipped),
            refused=self._refused,
            refusals=tuple(self._refusals),
            unknown_fields=dict(self._unknown_fields),
        )


def _count(counts: Counter[str], name: str) -> None:
    if name in counts or len(counts) < MAX_NAMES:
        counts[name] += 1
    else:
        counts["others"] += 1


class _Preview:
    """Says what writing would do, as if the records previewed before had been written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[int, int] = {}
        self._times: dict[int, list[int]] = {}

    def outcomes(self, records: list[Record], merge_within: int | None) -> list[Outcome]:
        """What would happen to each of these records."""
        receipts = self._store.preview(records, merge_within=merge_within)
        return [
            self._outcome(record, receipt.outcome, merge_within)
            for record, receipt in zip(records, receipts, strict=True)
        ]

    def _outcome(self, record: Record, alone: Outcome, merge_within: int | None) -> Outcome:
        """The outcome of a record; `alone` is its outcome without the records previewed before."""
        if alone is Outcome.FORGOTTEN:
            return alone
        identity, content = hash((type(record), record.source, record.source_id)), hash(record)
        before = self._written.get(identity)
        outcome = alone
        if before is not None:
            outcome = Outcome.UNCHANGED if before == content else Outcome.UPDATED
        elif alone is Outcome.STORED and self._is_duplicate(record, merge_within):
            outcome = Outcome.MERGED
        if outcome is not Outcome.MERGED:
            self._written[identity] = content
        return outcome

    def _is_duplicate(self, record: Record, merge_within: int | None) -> bool:
        """Whether a record previewed before has the same content at about the same time."""
        if merge_within is None:
            return False
        what = hash((type(record), record.source, content_hash(record)))
        times = self._times.setdefault(what, [])
        created = record.created_at_epoch
        if any(abs(created - other) <= merge_within for other in times):
            return True
        times.append(created)
        return False
