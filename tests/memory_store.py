"""A store in plain dictionaries: both ports as simply as they can be kept, for tests to compare.

It takes the meaning of a filter from `filters.selects` and that of a query from `memory_text`; it
ranks and corrects crudely, because no port promises how that is done.
"""

import difflib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import memory_text
from memory_state import Key, State, work_key

from memsvc.answers.rows import read_tokens
from memsvc.core.dates import local_day
from memsvc.core.economics import Discovery, Economics, discovery_cost
from memsvc.core.filters import FIELDS, Filter, selects, value_groups
from memsvc.core.ports.store import Hit, Point, Project, Receipt, WorkEntry
from memsvc.core.ports.vectors import Change, Embedded, Pending, Vector
from memsvc.core.query import Query, parse
from memsvc.core.records import Kind, Record, Ref, WorkSession, kind_of


def _is_open(selection: Filter) -> bool:
    return selection.since is None and selection.until is None


def _place(hit: Hit) -> tuple[int, int, Kind]:
    return hit.created_at_epoch, hit.ref.id, hit.ref.kind


class MemoryStore:
    """The ports Store and VectorStore, in memory."""

    def __init__(self) -> None:
        self._latest, self._local, self._lock = State(), threading.local(), threading.RLock()
        self._name = uuid4().hex

    @property
    def _now(self) -> State:
        return getattr(self._local, "pinned", None) or self._latest

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        before = getattr(self._local, "pinned", None)
        self._local.pinned = self._now
        try:
            yield
        finally:
            self._local.pinned = before

    @contextmanager
    def _changing(self) -> Iterator[State]:
        with self._lock:
            state = self._latest.copied()
            yield state
            self._latest = state

    # -- writing ----------------------------------------------------------------------------------

    def generation(self) -> int:
        return self._now.generation

    def write(
        self,
        records: Iterable[Record],
        work_sessions: Iterable[WorkSession] = (),
        *,
        merge_within: int | None = None,
    ) -> list[Receipt]:
        with self._changing() as state:
            state.generation += 1
            written = [(state.dated(each), state.write(each, merge_within)) for each in records]
            for record, receipt in written:
                if receipt.ref:
                    state.touch(record)
            for session in work_sessions:
                state.write_work(session)
        return [receipt for _, receipt in written]

    def preview(
        self, records: Iterable[Record], *, merge_within: int | None = None
    ) -> list[Receipt]:
        return [self._now.judge(record, merge_within) for record in records]

    def forget(self, ref: Ref) -> bool:
        with self._changing() as state:
            state.generation += 1
            return state.forget(ref)

    # -- reading ----------------------------------------------------------------------------------

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        return {ref: self._now.records[ref] for ref in refs if ref in self._now.records}

    def times(self, refs: Iterable[Ref]) -> dict[Ref, int]:
        return {ref: record.created_at_epoch for ref, record in self.records(refs).items()}

    def _selected(self, kinds: Sequence[Kind], selection: Filter) -> list[Hit]:
        """What a filter selects, in the order of time."""
        found = [
            Hit(ref, record.created_at_epoch)
            for ref, record in self._now.records.items()
            if ref.kind in kinds and selects(selection, record)
        ]
        return sorted(found, key=_place)

    def page(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        *,
        newest_first: bool,
        limit: int,
        offset: int,
    ) -> list[Hit]:
        hits = self._selected(kinds, selection)
        return (hits[::-1] if newest_first else hits)[offset : offset + limit]

    def count(self, kind: Kind, selection: Filter) -> int:
        return len(self._selected([kind], selection))

    def selected_ids(self, kind: Kind, selection: Filter) -> list[int]:
        return [hit.ref.id for hit in self._selected([kind], selection)]

    def selected_among(self, kind: Kind, selection: Filter, ids: Sequence[int]) -> set[int]:
        return set(ids) & set(self.selected_ids(kind, selection))

    def neighbours(
        self,
        kinds: Sequence[Kind],
        selection: Filter,
        point: Point,
        *,
        before: bool,
        limit: int,
    ) -> list[Hit]:
        at, hits = (point.created_at_epoch, point.id, point.kind), self._selected(kinds, selection)
        if before:
            return [hit for hit in hits if _place(hit) < at][::-1][:limit][::-1]
        return [hit for hit in hits if _place(hit) > at][:limit]

    def count_values(self, kind: Kind, field: str) -> dict[str, int]:
        names: dict[str, str] = {}
        counts: Counter[str] = Counter()
        for record in (r for ref, r in self._now.records.items() if ref.kind is kind):
            carried = {FIELDS[field].key(v): v for v in FIELDS[field].values(record)}
            names, counts = carried | names, counts + Counter(carried.keys())
        return dict(
            sorted(
                ((names[key], n) for key, n in counts.items()), key=lambda each: (-each[1], each[0])
            )
        )

    def projects(self) -> list[Project]:
        found: dict[str, list[Record]] = {}
        for record in self._now.records.values():
            found.setdefault(record.project.casefold(), []).append(record)
        projects = [
            Project(
                held[0].project,
                {kind: sum(kind_of(each) is kind for each in held) for kind in Kind},
                max(each.created_at_epoch for each in held),
            )
            for held in found.values()
        ]
        return sorted(projects, key=lambda project: (-project.last_at_epoch, project.name))

    def days(self, since: int) -> dict[str, int]:
        hits = self._selected(list(Kind), Filter(since=since))
        return dict(sorted(Counter(local_day(h.created_at_epoch) for h in hits).items())[::-1])

    def economics(self) -> Economics:
        costs = {ref: read_tokens(record, ref) for ref, record in self._now.records.items()}
        made: list[Any] = [r for r in self._now.records.values() if kind_of(r) is Kind.OBSERVATION]
        known = [each for each in made if each.discovery_tokens > 0]
        found = sorted(
            Discovery(
                each.project,
                each.session_id,
                -1 if each.prompt_number is None else each.prompt_number,
                each.discovery_tokens,
                each.created_at_epoch,
            )
            for each in known
        )
        cost = sum(costs[Ref(Kind.OBSERVATION, each.id)] for each in known)
        return Economics(sum(costs.values()), cost, discovery_cost(found))

    def _work(self, selection: Filter) -> list[tuple[Key, WorkSession, int]]:
        """The work sessions that a filter selects, last worked on first."""
        held = {work_key(r) for r in self._now.records.values() if selects(selection, r)}
        wanted = [{value.casefold() for value in values} for _, values in selection.groups]
        if all(name == "project" for name, _ in selection.groups) and _is_open(selection):
            held |= {key for key in self._now.work if all(key[0] in names for names in wanted)}
        found = [(key, *self._now.work[key]) for key in held]
        return sorted(found, key=lambda each: (each[2], each[0][1]), reverse=True)

    def count_work_sessions(self, selection: Filter) -> int:
        return len(self._work(selection))

    def recent_work(self, selection: Filter, *, limit: int, most: int) -> list[WorkEntry]:
        selected = self._selected(list(Kind), selection)[::-1]
        entries = []
        for key, session, last in self._work(selection)[:limit]:
            inside = [hit for hit in selected if work_key(self._now.records[hit.ref]) == key]
            hits = {kind: [hit for hit in inside if hit.ref.kind is kind] for kind in Kind}
            counts = {kind: len(found) for kind, found in hits.items()}
            shown = {kind: found[:most] for kind, found in hits.items()}
            entries.append(WorkEntry(session, last, shown, counts))
        return entries

    # -- full text --------------------------------------------------------------------------------

    def _matching(self, kind: Kind, query: Query, selection: Filter) -> list[Hit]:
        """What matches, best first; newest first where there is nothing to rank by."""
        newest_first = self._selected([kind], selection)[::-1]
        records = self._now.records
        found = [h for h in newest_first if memory_text.matches(records[h.ref], query)]
        if query.only_excludes:
            return found
        ranked = [replace(h, relevance=memory_text.relevance(records[h.ref], query)) for h in found]
        return sorted(ranked, key=lambda h: (-h.relevance, -h.created_at_epoch, h.ref.id))

    def rank(self, kind: Kind, query: Query, selection: Filter, depth: int) -> list[Hit]:
        return self._matching(kind, query, selection)[:depth]

    def rank_among(self, kind: Kind, query: Query, ids: Sequence[int]) -> list[Hit]:
        return [hit for hit in self._matching(kind, query, Filter()) if hit.ref.id in ids]

    def count_matches(self, kind: Kind, query: Query, selection: Filter) -> int:
        return len(self._matching(kind, query, selection))

    def rest(
        self,
        kind: Kind,
        query: Query,
        selection: Filter,
        *,
        without: Sequence[int],
        limit: int,
        offset: int,
    ) -> list[Hit]:
        hits = self._matching(kind, query, selection)
        return [hit for hit in hits if hit.ref.id not in without][offset : offset + limit]

    def matches_by_time(
        self, kind: Kind, query: Query, selection: Filter, *, newest_first: bool, limit: int
    ) -> list[Hit]:
        hits = sorted(self._matching(kind, query, selection), key=_place, reverse=newest_first)
        return [replace(hit, relevance=0.0) for hit in hits[:limit]]

    def matches_among(
        self, kind: Kind, query: Query, selection: Filter, ids: Sequence[int]
    ) -> set[int]:
        return {hit.ref.id for hit in self._matching(kind, query, selection)} & set(ids)

    def matched_terms(self, ref: Ref, query: Query) -> dict[str, list[str]]:
        asked = [*memory_text.readings(query), *memory_text.required(query)]
        record = self._now.records[ref]
        found = {" ".join(each.words): memory_text.places(record, each) for each in asked}
        return {term: fields for term, fields in found.items() if fields}

    def coverage(self, query: Query, ref: Ref) -> float:
        return memory_text.coverage(self._now.records[ref], query)

    def suggest(self, kind: Kind, query: Query) -> list[str]:
        held = (record for ref, record in self._now.records.items() if ref.kind is kind)
        known = memory_text.vocabulary(held)
        terms = (term.text.lower() for term in (*query.words, *query.required))
        absent = [term for term in terms if not self.count_matches(kind, parse(term), Filter())]
        return [near for term in absent for near in difflib.get_close_matches(term, known, 1, 0.8)]

    def check(self) -> None:
        """It can always be read."""

    def close(self) -> None:
        """Nothing is open."""

    # -- vectors ----------------------------------------------------------------------------------

    def store_name(self) -> str:
        return self._name

    def rebuilds(self) -> int:
        return self._now.rebuilds

    def ask_rebuild(self) -> None:
        with self._changing() as state:
            state.rebuilds += 1

    def queue_others(self, fingerprint: str) -> None:
        with self._changing() as state:
            for ref, record in state.records.items():
                is_kept = state.vectors.get(ref, ("",))[0] == fingerprint
                if not is_kept and ref not in state.pending:
                    state.pending[ref] = state.next(), record.created_at_epoch

    def pending(self, limit: int) -> list[Pending]:
        queued = self._now.pending.items()
        waiting = sorted((moment, ref.id, ref.kind, n) for ref, (n, moment) in queued)[::-1]
        return [Pending(n, Ref(kind, id)) for _, id, kind, n in waiting[:limit]]

    def count_pending(self) -> int:
        return len(self._now.pending)

    def keep_vectors(self, done: Sequence[tuple[Pending, Vector]], fingerprint: str) -> None:
        with self._changing() as state:
            for begun, vectors in done:
                if state.pending.get(begun.ref, (0,))[0] == begun.sequence:
                    del state.pending[begun.ref]
                    state.vectors[begun.ref] = fingerprint, vectors.copy()
                    state.changes[begun.ref] = state.next()

    def vectors(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> dict[int, Vector]:
        kept = {id: self._now.vectors.get(Ref(kind, id), ("", None)) for id in ids}
        return {id: vectors for id, (name, vectors) in kept.items() if name == fingerprint}

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        later = sorted((n, ref) for ref, n in self._now.changes.items() if n > position)
        return [Change(n, ref, self._embedded(ref, fingerprint)) for n, ref in later[:limit]]

    def _embedded(self, ref: Ref, fingerprint: str) -> Embedded | None:
        vectors = self.vectors(ref.kind, [ref.id], fingerprint)
        if not vectors:
            return None
        record = self._now.records[ref]
        return Embedded(ref, record.created_at_epoch, value_groups(record), vectors[ref.id])

    def count_changes(self, position: int) -> int:
        return sum(sequence > position for sequence in self._now.changes.values())
