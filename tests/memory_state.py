"""What a store in memory holds, and what a write does to it."""

import copy
from dataclasses import dataclass, field, replace

from memsvc.core.dates import now_ms
from memsvc.core.ports.store import Outcome, Receipt
from memsvc.core.ports.vectors import Vector
from memsvc.core.records import Kind, Record, Ref, WorkSession, content_hash, kind_of

Key = tuple[str, ...]


@dataclass
class State:
    """All that is stored; a write works on a copy."""

    generation: int = 0
    sequence: int = 0
    rebuilds: int = 0
    records: dict[Ref, Record] = field(default_factory=dict)
    last_id: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    forgotten: dict[Key, tuple[int, int]] = field(default_factory=dict)
    work: dict[Key, tuple[WorkSession, int]] = field(default_factory=dict)
    forgotten_work: set[Key] = field(default_factory=set)
    pending: dict[Ref, tuple[int, int]] = field(default_factory=dict)
    changes: dict[Ref, int] = field(default_factory=dict)
    vectors: dict[Ref, tuple[str, Vector]] = field(default_factory=dict)

    def copied(self) -> "State":
        return State(**{name: copy.copy(value) for name, value in vars(self).items()})

    def next(self) -> int:
        self.sequence += 1
        return self.sequence

    def known(self, record: Record) -> Record | None:
        return next((r for r in self.records.values() if _key(r) == _key(record)), None)

    def dated(self, record: Record) -> Record:
        known = None if record.created_at_epoch else self.known(record)
        moment = record.created_at_epoch or (known.created_at_epoch if known else now_ms())
        return replace(record, created_at_epoch=moment)

    def judge(self, record: Record, merge_within: int | None) -> Receipt:
        """What writing a record would do."""
        kind, record = kind_of(record), self.dated(record)
        if _key(record) in self.forgotten:
            return Receipt(Outcome.FORGOTTEN, None)
        if known := self.known(record):
            same = known == replace(record, id=known.id)
            return Receipt(Outcome.UNCHANGED if same else Outcome.UPDATED, Ref(kind, known.id))

        if merge_within is None:
            return Receipt(Outcome.STORED, None)
        if any(_is_twin(record, key, *it, merge_within) for key, it in self.forgotten.items()):
            return Receipt(Outcome.FORGOTTEN, None)
        twins = [
            (each.created_at_epoch, each.id)
            for each in self.records.values()
            if _is_twin(record, _key(each), content_hash(each), each.created_at_epoch, merge_within)
        ]
        if not twins:
            return Receipt(Outcome.STORED, None)
        return Receipt(Outcome.MERGED, Ref(kind, min(twins)[1]))

    def write(self, record: Record, merge_within: int | None) -> Receipt:
        record, receipt = self.dated(record), self.judge(record, merge_within)
        if receipt.outcome is Outcome.STORED:
            self.last_id[kind_of(record)] += 1
            receipt = replace(receipt, ref=Ref(kind_of(record), self.last_id[kind_of(record)]))
        if receipt.ref and receipt.outcome in (Outcome.STORED, Outcome.UPDATED):
            self.put(receipt.ref, replace(record, id=receipt.ref.id))
        return receipt

    def put(self, ref: Ref, record: Record) -> None:
        before = self.records.get(ref)
        self.records[ref] = record
        if before:
            self.changes[ref] = self.next()
            self.drop_empty_work(before)
        if not before or content_hash(before) != content_hash(record):
            self.pending[ref] = self.next(), record.created_at_epoch

    def touch(self, record: Record) -> None:
        """The work session of a record exists and spans its time."""
        key, moment = work_key(record), record.created_at_epoch
        new = WorkSession(
            session_id=record.session_id,
            project=record.project,
            started_at_epoch=moment,
            status="unknown",
        )
        known, last = self.work.get(key, (new, moment))
        first = min(known.started_at_epoch, moment)
        self.work[key] = replace(known, started_at_epoch=first), max(last, moment)

    def write_work(self, session: WorkSession) -> None:
        key = work_key(session)
        if key not in self.work and key in self.forgotten_work:
            return
        ended = session.completed_at_epoch
        new = session, session.started_at_epoch if ended is None else ended
        known, last = self.work.get(key, new)
        self.work[key] = (
            replace(
                session,
                project=known.project,
                started_at_epoch=min(known.started_at_epoch, session.started_at_epoch),
                completed_at_epoch=known.completed_at_epoch if ended is None else ended,
            ),
            last,
        )

    def forget(self, ref: Ref) -> bool:
        record = self.records.pop(ref, None)
        if record is None:
            return False
        self.pending.pop(ref, None)
        self.vectors.pop(ref, None)
        self.changes[ref] = self.next()
        self.forgotten[_key(record)] = content_hash(record), record.created_at_epoch
        self.forgotten_work.update(self.drop_empty_work(record))
        return True

    def drop_empty_work(self, record: Record) -> list[Key]:
        """Take out the work session of a record, or all of its project, if nothing is left."""
        key, held = work_key(record), set(map(work_key, self.records.values()))
        whole = key[0] not in {project for project, _ in held}
        emptied = [each for each in self.work if each[0] == key[0]] if whole else [key]
        emptied = [each for each in emptied if each in self.work and each not in held]
        for each in emptied:
            del self.work[each]
        return emptied


def _key(record: Record) -> Key:
    return str(kind_of(record)), record.source, record.source_id


def _is_twin(record: Record, key: Key, said: int, moment: int, within: int) -> bool:
    """Whether a record says the same as another of its source at about the same time."""
    is_near = abs(moment - record.created_at_epoch) <= within
    return key[:2] == _key(record)[:2] and said == content_hash(record) and is_near


def work_key(it: Record | WorkSession) -> Key:
    return it.project.casefold(), it.session_id
