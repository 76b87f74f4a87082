"""The ports Store and VectorStore in plain lists, for the contract tests to compare others with.

`filters.selects` says what a filter selects, and `memory_text` what a query matches. It ranks and
corrects crudely, because no port promises how that is done.
"""

import copy
import json
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import astuple, replace
from operator import attrgetter
from types import SimpleNamespace

from memory_text import asked, hashes_of, matched_terms, matches, nearest_words, relevance

from memsvc.answers.rows import read_tokens
from memsvc.core.dates import local_day, now_ms
from memsvc.core.economics import Discovery, Economics, discovery_cost
from memsvc.core.filters import EVERYTHING, FIELDS, Filter, selects, value_groups
from memsvc.core.limits import deadline
from memsvc.core.naming.commits import names_commit
from memsvc.core.ports.store import (
    WORK,
    Hit,
    Origin,
    Outcome,
    Project,
    Receipt,
    Title,
    Trace,
    WorkEntry,
)
from memsvc.core.ports.vectors import Change, Embedded, Pending
from memsvc.core.query import parse
from memsvc.core.records import (
    SHAPES,
    Kind,
    Prompt,
    Ref,
    WorkSession,
    content_hash,
    kind_of,
    work_hash,
)

source_of = attrgetter("__class__", "source", "source_id")
discovery_of = attrgetter(
    "project", "session_id", "prompt_number", "discovery_tokens", "created_at_epoch"
)


def work_of(it):
    return it.project.casefold(), it.session_id


def place(record):
    return record.created_at_epoch, record.id, kind_of(record)


def origin_of(record):
    texts = (getattr(record, name) for name in SHAPES[kind_of(record)].texts)
    stored = (each if isinstance(each, str) else json.dumps(each) for each in texts)
    return Origin(record.project, record.session_id, sum(map(len, stored)))


def hit_of(record):
    return Hit(Ref(kind_of(record), record.id), record.created_at_epoch)


class MemoryStore:
    """Reads look at `seen`: the store itself or, within a snapshot, a copy of it."""

    lock = threading.RLock()  # of the class, because a lock cannot be copied

    def __init__(self):
        self.seen, self.rows, self.sequence, self.rebuilt = self, [], 0, 0
        self.work = {}  # by `work_of`: (work session, last moment)
        self.traces, self.given_ids = {}, dict.fromkeys(Kind, 0)

    @contextmanager
    def snapshot(self):
        deadline.check()
        with self.lock:
            before, self.seen = self.seen, copy.deepcopy(self.seen)
            try:
                yield
            finally:
                self.seen = before

    def close(self): ...

    def check(self): ...

    def examine(self): ...

    def generation(self):
        return self.seen.sequence

    def _next(self):
        self.sequence += 1
        return self.sequence

    def write(self, records, work_sessions=(), *, merge_within=None, keep_ids=False):
        records = list(records)  # a source that breaks off has written nothing
        deadline.check()
        with self.lock:
            self._next()
            written = [self._put(record, merge_within, keep_ids) for record in records]
            for record in (record for record, receipt in written if receipt.ref):
                moment, made = record.created_at_epoch, {"session_id": record.session_id}
                made |= {"project": record.project, "status": "unknown"}
                self._span(WorkSession(**made, started_at_epoch=moment), moment)
            for given in work_sessions:
                trace = WORK, "", work_hash(given.project, given.session_id)
                if work_of(given) in self.work or trace not in self.traces:
                    ended, last = given.completed_at_epoch, given.last_at_epoch
                    self._span(given, last, status=given.status, ended=ended)
        return [receipt for _, receipt in written]

    def preview(self, records, *, merge_within=None):
        found = [copy.deepcopy(self.seen)._put(each, merge_within)[1] for each in records]
        return [replace(r, ref=None) if r.outcome is Outcome.STORED else r for r in found]

    def _put(self, record, within, keep_id=False):
        """Write a record; as it was dated, and what became of it."""
        kind = kind_of(record)
        rows = [row for row in self.rows if not row.is_forgotten]
        row = next((row for row in rows if source_of(row.record) == source_of(record)), None)
        first = row.record.created_at_epoch if row else now_ms()
        record = replace(record, created_at_epoch=record.created_at_epoch or first)

        def is_twin(other):
            apart = abs(other.created_at_epoch - record.created_at_epoch)
            same = other.source == record.source and content_hash(other) == content_hash(record)
            return within is not None and apart <= within and same

        twins = [] if row else [each for each in rows if is_twin(each.record)]
        if self._is_forgotten(record, None if row else within):
            return record, Receipt(Outcome.FORGOTTEN, None)
        if twins:
            return record, Receipt(Outcome.MERGED, min(twins, key=lambda r: place(r.record)).ref)
        given = self.given_ids[kind]
        own = keep_id and record.id > given
        ref = row.ref if row else Ref(kind, record.id if own else given + 1)
        record = replace(record, id=ref.id)
        if row and row.record == record:
            return record, Receipt(Outcome.UNCHANGED, ref)
        before = row and row.record
        if not row:
            row = SimpleNamespace(ref=ref, is_forgotten=False, changed=0, kept=("", None))
            self.rows.append(row)
            self.given_ids[kind] = ref.id
        row.record = record
        if not before or content_hash(before) != content_hash(record):
            row.waiting, row.moment = self._next(), record.created_at_epoch
            row.has_lead = False
        if before:
            row.changed = self._next()
            self._drop_empty_work(before)
        return record, Receipt(Outcome.UPDATED if before else Outcome.STORED, ref)

    def _is_forgotten(self, record, within):
        """Whether a trace keeps a record, or one that it would be merged into, away."""

        def says(trace):
            apart = abs(trace.created_at_epoch - record.created_at_epoch)
            same = trace.content_hash == content_hash(record) and within is not None
            return trace.source_id == record.source_id or (same and apart <= within)

        key = kind_of(record), record.source
        return any(says(trace) for trace in self.traces.values() if key == astuple(trace)[:2])

    def _span(self, session, moment, ended=None, **taken):
        """Let a work session exist, begin no later than this one, and last until a moment."""
        new = session, moment or session.completed_at_epoch or session.started_at_epoch
        known, last = self.work.get(work_of(session), new)
        taken["last_at_epoch"] = 0  # it stands beside the work session
        taken["started_at_epoch"] = min(known.started_at_epoch, session.started_at_epoch)
        taken["completed_at_epoch"] = known.completed_at_epoch if ended is None else ended
        self.work[work_of(session)] = replace(known, **taken), max(last, moment)

    def _drop_empty_work(self, record):
        """Remove the work session of a record, or all of its project, if no record is left."""
        held = {work_of(row.record) for row in self.rows if not row.is_forgotten}
        key, whole = work_of(record), record.project.casefold() not in dict(held)
        emptied = {
            each for each in self.work if each == key or (whole and each[0] == key[0])
        } - held
        self.work = {each: self.work[each] for each in self.work.keys() - emptied}
        return emptied

    def forget(self, ref):
        with self.lock:
            found = [row for row in self.rows if row.ref == ref and not row.is_forgotten]
            for row in found:
                row.is_forgotten, row.waiting, row.kept = True, 0, ("", None)
                row.changed = self._next()
                gone = row.record
                moment = gone.created_at_epoch
                self._leave(ref.kind, gone.source, gone.source_id, content_hash(gone), moment)
                for key in self._drop_empty_work(row.record):
                    self._leave(WORK, "", work_hash(*key))
            return bool(found)

    def forget_all(self, refs):
        with self.lock:
            return sum(map(self.forget, refs))

    def rewrite(self, records=(), work_sessions=()):
        with self.lock:
            self._next()
            for before, after in work_sessions:
                known, last = self.work.pop(work_of(before), (None, 0))
                taken = {"project": after.project, "session_id": after.session_id}
                if known and work_of(after) not in self.work:
                    renamed = replace(known, **taken, status=after.status)
                    self.work[work_of(after)] = renamed, last
            pairs = list(records)
            return [hit_of(after).ref for before, after in pairs if self._rewrite(before, after)]

    def _rewrite(self, before, after):
        held = [row for row in self.rows if not row.is_forgotten]
        row = next((row for row in held if row.record == before), None)
        if not row:
            return False
        if any(each is not row and source_of(each.record) == source_of(after) for each in held):
            row.is_forgotten, row.waiting = True, 0
            row.record = replace(before, source_id=f"dropped {row.ref}", source="")
        elif content_hash(before) != content_hash(after):
            row.record, row.waiting, row.moment = after, self._next(), after.created_at_epoch
            row.has_lead = False
        else:
            row.record = after
        row.kept, row.changed = ("", None), self._next()
        self._drop_empty_work(before)
        moment = after.created_at_epoch
        names = {"session_id": after.session_id, "project": after.project, "status": "unknown"}
        self._span(WorkSession(**names, started_at_epoch=moment), moment)
        return True

    def rename_forgotten(self, name):
        gone = [row for row in self.rows if row.is_forgotten]
        before = [row.record for row in gone]
        for row in gone:
            it = row.record
            row.record = replace(it, source=name(it.source), source_id=name(it.source_id))
        traces = list(self.traces.values())
        self.traces = {}
        for it in traces:
            self._leave(*astuple(replace(it, source=name(it.source), source_id=name(it.source_id))))
        return sum(row.record != record for row, record in zip(gone, before, strict=True))

    def sweep(self):
        self.rebuilt += 1
        return True

    def work_sessions(self):
        held = sorted(self.seen.work.items())
        return [replace(session, last_at_epoch=last) for _, (session, last) in held]

    def from_sources(self, kind, sources):
        return {record.id for record in self._selected([kind]) if record.source in sources}

    def project_from(self, kind, family, source_id):
        known = [
            record
            for record in self._selected([kind])
            if record.source.startswith(f"{family}:") and record.source_id == source_id
        ]
        return max(known, key=attrgetter("id")).project if known else None

    def _leave(self, *trace):
        self.traces.setdefault(trace[:3], Trace(*trace))

    def last_ids(self):
        return dict(self.seen.given_ids)

    def contents(self, selection):
        with self.snapshot():
            for key in sorted(self._work(selection)):
                session, last = self.seen.work[key]
                yield replace(session, last_at_epoch=last)
            for kind in Kind:
                yield from sorted(self._selected([kind], selection), key=attrgetter("id"))
            if selection == EVERYTHING:
                yield from sorted(self.seen.traces.values(), key=astuple)

    def adopt(self, traces, last_ids):
        held = {(kind_of(r), r.source, r.source_id) for r in self._selected()}
        with self.lock:
            for trace in traces:
                if (trace.kind, trace.source, trace.source_id) not in held:
                    self._leave(*astuple(trace))
            self.given_ids |= {k: max(id, self.given_ids[k]) for k, id in last_ids.items()}

    def records(self, refs):
        deadline.check()
        held = {row.ref: row.record for row in self.seen.rows if not row.is_forgotten}
        return {ref: held[ref] for ref in refs if ref in held}

    def titles(self, refs):
        held = self.records(refs)
        texts = {ref: getattr(held[ref], SHAPES[ref.kind].title) for ref in held}
        return {ref: Title(texts[ref], held[ref].project) for ref in held}

    def origins(self, refs):
        return {ref: origin_of(record) for ref, record in self.records(refs).items()}

    def times(self, refs):
        return {ref: record.created_at_epoch for ref, record in self.records(refs).items()}

    def _selected(self, kinds=Kind, selection=EVERYTHING):
        """The records that a filter selects, in the order of time."""
        deadline.check()
        held = [row.record for row in self.seen.rows if not row.is_forgotten]
        found = [each for each in held if kind_of(each) in kinds and selects(selection, each)]
        return sorted(found, key=place)

    def commits(self, commit):
        held = self._selected([Kind.OBSERVATION])[::-1]
        return [hit_of(r).ref for r in held if names_commit(commit.hash, r.source_id)]

    def page(self, kinds, selection, *, newest_first, limit, offset):
        found = self._selected(kinds, selection)[:: -1 if newest_first else 1]
        return list(map(hit_of, found[offset : offset + limit]))

    def count(self, kind, selection):
        return len(self._selected([kind], selection))

    def selected_ids(self, kind, selection):
        return [record.id for record in self._selected([kind], selection)]

    def selected_among(self, kind, selection, ids):
        return set(ids) & set(self.selected_ids(kind, selection))

    def neighbours(self, kinds, selection, point, *, before, limit):
        found, at = self._selected(kinds, selection), attrgetter("created_at_epoch", "id", "kind")
        earlier = [hit_of(record) for record in found if place(record) < at(point)]
        later = [hit_of(record) for record in found if place(record) > at(point)]
        return earlier[max(0, len(earlier) - limit) :] if before else later[:limit]

    def count_values(self, kind, field):
        key, values = FIELDS[field].key, FIELDS[field].values
        carried = [{key(value): value for value in values(r)} for r in self._selected([kind])]
        spelt = {folded: value for each in carried[::-1] for folded, value in each.items()}
        counts = Counter(folded for each in carried for folded in each)
        return {spelt[folded]: count for folded, count in counts.most_common()}

    def projects(self, until=None):
        counts = Counter((work_of(r)[0], kind_of(r)) for r in self._selected())
        later = [] if until is None else self._selected(selection=Filter(since=until + 1))
        order = [
            *later,
            *self._selected(selection=Filter(until=until)),
        ]  # last worked on at the end
        last = {}
        for record in order:
            last.pop(work_of(record)[0], None)
            last[work_of(record)[0]] = record
        return [
            Project(r.project, {kind: counts[key, kind] for kind in Kind}, r.created_at_epoch)
            for key, r in reversed(last.items())
        ]

    def days(self, since):
        newest = self._selected(selection=Filter(since=since))[::-1]
        return Counter(local_day(record.created_at_epoch) for record in newest)

    def economics(self):
        cost = {r: read_tokens(r, hit_of(r).ref) for r in self._selected()}
        known = [r for r in self._selected([Kind.OBSERVATION]) if r.discovery_tokens > 0]
        found = sorted((Discovery(*discovery_of(r)) for r in known), key=lambda d: str(d[:4]))
        return Economics(sum(cost.values()), sum(map(cost.get, known)), discovery_cost(found))

    def _work(self, selection):
        """The work sessions that a filter selects, last worked on first."""
        keys = set(map(work_of, self._selected(selection=selection)))
        if selection.since is None:  # one without records has its project and end only
            empty = {
                key: Prompt(project=key[0], created_at_epoch=last)
                for key, (_, last) in self.seen.work.items()
            }
            keys |= {key for key, prompt in empty.items() if selects(selection, prompt)}
        return sorted(keys, key=lambda key: (self._last_worked(key, selection), key[1]))[::-1]

    def _last_worked(self, key, selection):
        """When a work session was last worked on, as far as `until`."""
        _, last = self.seen.work[key]
        if selection.until is None or last <= selection.until:
            return last
        within = self._selected(selection=Filter(until=selection.until))
        return max(record.created_at_epoch for record in within if work_of(record) == key)

    def count_work_sessions(self, selection):
        return len(self._work(selection))

    def recent_work(self, selection, *, limit, most):
        entries, newest = [], self._selected(selection=selection)[::-1]
        for key in self._work(selection)[:limit]:
            inside = [record for record in newest if work_of(record) == key]
            hits = {k: [hit_of(each) for each in inside if kind_of(each) is k] for k in Kind}
            shown, counts = {k: hits[k][:most] for k in Kind}, {k: len(hits[k]) for k in Kind}
            last = self._last_worked(key, selection)
            entries.append(WorkEntry(self.seen.work[key][0], last, shown, counts))
        return entries

    def _matching(self, kind, query, selection=EVERYTHING):
        """What matches, best first; newest first where there is nothing to rank by."""
        found = [r for r in self._selected([kind], selection)[::-1] if matches(r, query)]
        hits = [
            replace(
                hit_of(record),
                relevance=relevance(record, query),
                named=bool(hashes_of(record, query)),
            )
            for record in found
        ]
        order = lambda hit: (not hit.named, -hit.relevance)  # noqa: E731
        return hits if query.only_excludes else sorted(hits, key=order)

    def rank(self, kind, query, selection, depth):
        return self._matching(kind, query, selection)[:depth]

    def rank_among(self, kind, query, ids):
        return [hit for hit in self._matching(kind, query) if hit.ref.id in ids]

    def count_matches(self, kind, query, selection):
        return len(self._matching(kind, query, selection))

    def rest(self, kind, query, selection, *, without, limit, offset):
        hits = self._matching(kind, query, selection)
        return [hit for hit in hits if hit.ref.id not in without][offset : offset + limit]

    def matches_by_time(self, kind, query, selection, *, newest_first, limit):
        found = [r for r in self._selected([kind], selection) if matches(r, query)]
        return list(map(hit_of, found[:: -1 if newest_first else 1][:limit]))

    def matches_among(self, kind, query, selection, ids):
        return {hit.ref.id for hit in self._matching(kind, query, selection)} & set(ids)

    def matched_terms(self, kind, ids, query):
        held = self.records([Ref(kind, id) for id in ids])
        return {ref.id: matched_terms(record, query) for ref, record in held.items()}

    def coverage(self, query, ref):
        record = self.records([ref])[ref]
        if hashes_of(record, query):
            return 1.0
        terms = {term.text for term in asked(query)}
        return len(self.matched_terms(ref.kind, [ref.id], query)[ref.id]) / max(1, len(terms))

    def suggest(self, kind, query):
        terms = [term.text.lower() for term in (*query.words, *query.required)]
        absent = [term for term in terms if not self._matching(kind, parse(term))]
        return nearest_words(self._selected([kind]), absent)

    def rebuilds(self):
        return self.seen.rebuilt

    def ask_rebuild(self):
        self.rebuilt += 1

    def queue_others(self, fingerprint):
        with self.lock:
            for row in self.rows:
                if row.kept[0] != f"{fingerprint}-lead":
                    row.has_lead = False
                if not (row.is_forgotten or row.waiting or row.kept[0] == fingerprint):
                    row.waiting, row.moment = self._next(), row.record.created_at_epoch

    def pending(self, limit):
        waiting = [row for row in self.seen.rows if row.waiting]
        waiting.sort(key=lambda row: (row.moment, row.ref.id, row.ref.kind), reverse=True)
        waiting.sort(key=lambda row: row.has_lead)
        return [Pending(row.waiting, row.ref, row.has_lead) for row in waiting[:limit]]

    def count_pending(self):
        return sum(row.waiting > 0 for row in self.seen.rows)

    def count_unknown(self):
        return sum(row.waiting > 0 and not row.has_lead for row in self.seen.rows)

    def keep_leads(self, done, fingerprint):
        begun = {pending.sequence: vectors.copy() for pending, vectors in done}
        with self.lock:
            for row in self._begun(begun):
                if not row.has_lead:
                    row.kept, row.has_lead = (f"{fingerprint}-lead", begun[row.waiting]), True
                    row.changed = self._next()

    def keep_vectors(self, done, fingerprint):
        begun = {pending.sequence: vectors.copy() for pending, vectors in done}
        with self.lock:
            for row in self._begun(begun):
                row.kept = fingerprint, begun[row.waiting]
                row.waiting, row.changed = 0, self._next()

    def _begun(self, sequences):
        """The records that still wait in these places, in this order."""
        waiting = {row.waiting: row for row in self.rows if row.waiting in sequences}
        return [waiting[sequence] for sequence in sequences if sequence in waiting]

    def vectors(self, kind, ids, fingerprint):
        known = fingerprint, f"{fingerprint}-lead"
        rows = [row for row in self.seen.rows if row.ref.kind is kind and row.ref.id in ids]
        return {row.ref.id: row.kept[1] for row in rows if row.kept[0] in known}

    def embedded_among(self, kind, ids, fingerprint):
        return set(self.vectors(kind, ids, fingerprint))

    def changes(self, position, limit, fingerprint):
        def embedded(row):
            known = row.ref, row.record.created_at_epoch, value_groups(row.record), row.kept[1]
            names = fingerprint, f"{fingerprint}-lead"
            return Embedded(*known) if row.kept[0] in names else None

        later = [row for row in self.seen.rows if row.changed > position]
        later.sort(key=attrgetter("changed"))
        return [Change(row.changed, row.ref, embedded(row)) for row in later[:limit]]

    def count_changes(self, position):
        return sum(row.changed > position for row in self.seen.rows)
