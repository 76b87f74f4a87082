"""What happens to a store: batches of records, work sessions, and records that are forgotten."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from samples import DAY, NOW
from strategies import records, words

from memsvc.core.filters import FIELDS, Filter
from memsvc.core.ports.store import Receipt, Store
from memsvc.core.records import Kind, Record, Ref, WorkSession


@dataclass(frozen=True)
class Batch:
    """One call of `write`."""

    records: tuple[Record, ...]
    work_sessions: tuple[WorkSession, ...] = ()
    merge_within: int | None = None


@dataclass(frozen=True)
class Many:
    """Refs that are forgotten together."""

    refs: tuple[Ref, ...]


@dataclass(frozen=True)
class Rename:
    """Every record of a project and a work session gets another project and text."""

    project: str
    session_id: str
    text: str


Action = Batch | Ref | Many | Rename
"""A ref is forgotten."""

moments = st.sampled_from([NOW - 40 * DAY, NOW - DAY, NOW - 500, NOW])
work_sessions = st.builds(
    WorkSession,
    session_id=st.sampled_from(["s1", "s2"]),
    project=st.sampled_from(["api", "API", "shop"]),
    started_at_epoch=moments,
    completed_at_epoch=st.none() | moments,
    status=st.sampled_from(["active", "completed"]),
)
few_records = st.builds(
    lambda record, moment, title, same: _with_text(
        replace(record, created_at_epoch=moment), title if same else ""
    ),
    records,
    moments,
    words,
    st.booleans(),
)
"""Records that often share their moment, and what they say, with another."""
batches = st.builds(
    Batch,
    st.lists(few_records, max_size=4).map(tuple),
    st.lists(work_sessions, max_size=1).map(tuple),
    st.sampled_from([None, 0, DAY]),
)
refs = st.builds(Ref, st.sampled_from(list(Kind)), st.integers(1, 5))
many = st.builds(Many, st.lists(refs, max_size=4, unique=True).map(tuple))
renames = st.builds(
    Rename, st.sampled_from(["api", "shop"]), st.sampled_from(["", "s1", "s2"]), st.just("masked")
)
histories = st.lists(st.one_of(batches, batches, refs, many, renames), min_size=1, max_size=6)

VALUES = {
    "type": ["bugfix", "BUGFIX", "decision", "odd type", "none such"],
    "concept": ["payment", "Retry", "cache", "登录", "none such"],
    "project": ["api", "API", "shop", "docs", "", "none such"],
    "file": ["src", "main.py", "src/main.py", "*.ts", "s*", "a b", "docs/", "*.c", "100%_x"],
}
groups = st.lists(
    st.sampled_from(list(FIELDS)).flatmap(
        lambda name: st.tuples(
            st.just(name), st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3)
        )
    ),
    max_size=2,
).map(lambda found: tuple((name, tuple(values)) for name, values in found))
filters = st.builds(Filter, groups, st.none() | moments, st.none() | moments)


def _with_text(record: Record, text: str) -> Record:
    """The record as one that says nothing but this text, if there is one."""
    if not text:
        return record
    kept = ("project", "session_id", "created_at_epoch", "source", "source_id")
    plain = type(record)(**{name: getattr(record, name) for name in kept})
    names = {"Observation": "title", "Summary": "request", "Prompt": "prompt_text"}
    return replace(plain, **{names[type(record).__name__]: text})


def play(store: Store, action: Action) -> list[Receipt] | list[Ref] | int:
    """What a store answers to one action."""
    if isinstance(action, Ref):
        return store.forget(action)
    if isinstance(action, Many):
        return store.forget_all(action.refs)
    if isinstance(action, Rename):
        return _rename(store, action)
    return store.write(action.records, action.work_sessions, merge_within=action.merge_within)


def _rename(store: Store, action: Rename) -> list[Ref]:
    changes = [
        (record, replace(_with_text(record, action.text), id=record.id, project="masked"))
        for record in everything(store).values()
        if (record.project, record.session_id) == (action.project, action.session_id)
    ]
    sessions = [
        (session, replace(session, project="masked"))
        for session in store.work_sessions()
        if (session.project, session.session_id) == (action.project, action.session_id)
    ]
    return store.rewrite(changes, sessions)


def everything(store: Store) -> dict[Ref, Record]:
    """All that a store holds."""
    hits = store.page(list(Kind), Filter(), newest_first=False, limit=10_000, offset=0)
    return store.records(hit.ref for hit in hits)


def counted(store: Store, selection: Filter, **_: Any) -> list[object]:
    """Work sessions and statistics; which spelling of a name is shown is left open."""
    values = {
        (kind, name): {field.key(v): n for v, n in store.count_values(kind, name).items()}
        for kind in Kind
        for name, field in FIELDS.items()
    }
    found = [*store.projects(), *store.projects(until=selection.until)]
    projects = [(p.name.casefold(), p.last_at_epoch, p.counts) for p in found]
    projects.sort(key=str)
    entries = store.recent_work(selection, limit=9, most=2)
    work = {(each.session.project.casefold(), each.session.session_id): each for each in entries}
    days = list(store.days(NOW - 2 * DAY).items())
    return [values, projects, work, days, store.count_work_sessions(selection), store.economics()]
