"""Takes private parts and secrets out of what is stored already."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from memsvc.core.filters import EVERYTHING
from memsvc.core.ports.masking import Mask
from memsvc.core.ports.store import Store
from memsvc.core.privacy.preparing import Prepared, prepare_record, prepare_work_session
from memsvc.core.records import Kind, Prompt, Record, Ref, WorkSession, kind_of

BATCH: Final = 500
"""Records of one step; those of it that change are overwritten in one transaction."""

MAX_TRIES: Final = 3
"""How often a record is looked at again because another program changed it meanwhile."""

Progress = Callable[[int, int], None]
"""Called with the number of records done, and of all."""


@dataclass(slots=True)
class Scrubbing:
    """What was found and, unless it was a dry run, taken out.

    `records` are those that changed, `forgotten` those of which nothing was left; `secrets` counts
    by kind.
    """

    dry_run: bool
    scanned: int = 0
    records: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    private: int = 0
    secrets: Counter[str] = field(default_factory=Counter)
    work_sessions: int = 0
    forgotten_names: int = 0
    backups: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        """Whether there was anything to take out."""
        return bool(self.records or self.forgotten or self.work_sessions or self.forgotten_names)

    def count(self, prepared: Iterable[Prepared[Record]]) -> None:
        """Count what was in these records."""
        for each in prepared:
            self.private += each.private
            self.secrets.update(each.secrets)

    def as_json(self) -> dict[str, Any]:
        """The report, for programs."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**named, "secrets": dict(self.secrets)}


def scrub(
    store: Store, mask: Mask, *, dry_run: bool = False, progress: Progress | None = None
) -> Scrubbing:
    """Take private parts and secrets out of a store; with `dry_run` only tell what there is."""
    done = Scrubbing(dry_run)
    refs = [Ref(kind, id) for kind in Kind for id in store.selected_ids(kind, EVERYTHING)]
    try:
        _scrub_work_sessions(store, mask, done)
        for start in range(0, len(refs), BATCH):
            _scrub_records(store, mask, refs[start : start + BATCH], done)
            done.scanned = min(start + BATCH, len(refs))
            if progress:
                progress(done.scanned, len(refs))
        if not dry_run:
            done.forgotten_names = store.rename_forgotten(lambda text: _name(text, mask))
    finally:
        if done.found and not dry_run:
            store.sweep()
    return done


def _scrub_work_sessions(store: Store, mask: Mask, done: Scrubbing) -> None:
    pairs: list[tuple[WorkSession, WorkSession]] = []
    for session in store.work_sessions():
        kept = prepare_work_session(session, mask).item
        if kept and kept != session:
            pairs.append((session, kept))
    done.work_sessions = len(pairs)
    if pairs and not done.dry_run:
        store.rewrite(work_sessions=pairs)


def _scrub_records(store: Store, mask: Mask, refs: list[Ref], done: Scrubbing) -> None:
    """Scrub these records; one that another program changes meanwhile is looked at again."""
    for _ in range(MAX_TRIES):
        found = {_ref(record): (record, each) for record, each in _found(store, mask, refs)}
        changes = {ref: (record, each.item) for ref, (record, each) in found.items() if each.item}
        emptied = [ref for ref in found if ref not in changes]
        if not found:
            return
        rewritten = list(changes) if done.dry_run else store.rewrite(changes.values())
        if emptied and not done.dry_run:
            store.forget_all(emptied)
        done.records += map(str, rewritten)
        done.forgotten += map(str, emptied)
        done.count(found[ref][1] for ref in (*rewritten, *emptied))
        refs = [ref for ref in changes if ref not in rewritten]


def _found(store: Store, mask: Mask, refs: list[Ref]) -> Iterator[tuple[Record, Prepared[Record]]]:
    for record in store.records(refs).values():
        prepared = prepare_record(record, mask)
        if prepared.item != record:
            yield record, prepared


def _ref(record: Record) -> Ref:
    return Ref(kind_of(record), record.id)


def _name(text: str, mask: Mask) -> str:
    """The source id by which a forgotten record is known if it is imported again."""
    prepared = prepare_record(replace(Prompt(), source_id=text), mask).item
    return prepared.source_id if prepared else text
