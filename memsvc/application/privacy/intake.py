"""The one way into the store: everything is prepared here before it is written."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memsvc.core.ports.masking import Mask
from memsvc.core.ports.store import Outcome, Receipt, Store
from memsvc.core.privacy.preparing import Prepared, prepare_record, prepare_work_session
from memsvc.core.records import Record, WorkSession


@dataclass(frozen=True, slots=True)
class Intake:
    """Records and work sessions that are to be stored, prepared.

    `originals` are the records as they were given; `masked` counts the secrets by kind.
    """

    originals: tuple[Record, ...]
    prepared: tuple[Prepared[Record], ...]
    work_sessions: tuple[WorkSession, ...]
    masked: Counter[str] = field(default_factory=Counter)


def prepare(records: Iterable[Record], work_sessions: Iterable[WorkSession], mask: Mask) -> Intake:
    """These records and work sessions as they may be stored."""
    originals = tuple(records)
    prepared = tuple(prepare_record(record, mask) for record in originals)
    sessions = [prepare_work_session(session, mask) for session in work_sessions]
    masked = Counter(kind for each in prepared for kind in each.secrets)
    masked.update(kind for each in sessions for kind in each.secrets)
    kept = tuple(each.item for each in sessions if each.item is not None)
    return Intake(originals, prepared, kept, masked)


def write(
    store: Store, intake: Intake, *, merge_within: int | None = None, keep_ids: bool = False
) -> list[Receipt]:
    """Store what was prepared and say what became of each record, in their order."""
    fates = _fates(store, intake, merge_within)
    left = _left(intake, fates)
    written = store.write(left, intake.work_sessions, merge_within=merge_within, keep_ids=keep_ids)
    receipts = iter(written)
    return [Receipt(fate, None) if fate else next(receipts) for fate in fates]


def preview(store: Store, intake: Intake, *, merge_within: int | None = None) -> list[Receipt]:
    """What `write` would answer for each record by itself."""
    fates = _fates(store, intake, merge_within)
    receipts = iter(store.preview(_left(intake, fates), merge_within=merge_within))
    return [Receipt(fate, None) if fate else next(receipts) for fate in fates]


def _left(intake: Intake, fates: list[Outcome | None]) -> list[Record]:
    pairs = zip(intake.prepared, fates, strict=True)
    return [each.item for each, fate in pairs if each.item is not None and fate is None]


def _fates(store: Store, intake: Intake, merge_within: int | None) -> list[Outcome | None]:
    """What becomes of the records that are not to be written; None for the others."""
    pairs = list(zip(intake.originals, intake.prepared, strict=True))
    changed = [given for given, each in pairs if each.item is not None and each.item != given]
    # what was forgotten before secrets were masked is known by what it was then
    known = iter(store.preview(changed, merge_within=merge_within)) if changed else iter(())
    return [_fate(given, each, known) for given, each in pairs]


def _fate(given: Record, each: Prepared[Record], known: Iterator[Receipt]) -> Outcome | None:
    if each.item is None:
        return Outcome.PRIVATE
    if each.item == given:
        return None
    return Outcome.FORGOTTEN if next(known).outcome is Outcome.FORGOTTEN else None
