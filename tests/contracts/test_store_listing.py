"""What every store promises of lists: pages, counts, neighbours, values, work sessions."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from adapters import Compare
from histories import Action, counted, filters, histories, play
from hypothesis import given
from hypothesis import strategies as st
from profiles import HALF
from samples import DAY, NOW, TIE

from memsvc.core.economics import Economics
from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import Hit, Origin, Point, Store, Title
from memsvc.core.records import Kind, Observation, Prompt, Record, Ref, Summary, WorkSession

some_kinds = st.lists(st.sampled_from(list(Kind)), min_size=1, unique=True)


def made(*moments: int, **given: Any) -> list[Record]:
    """A record of each kind at each moment, so that id 1 is of the first."""
    return [
        record(source="t", source_id=str(number), created_at_epoch=moment, **given)
        for number, moment in enumerate(moments)
        for record in (Summary, Prompt, Observation)
    ]


def refs(hits: Iterable[Hit]) -> list[str]:
    return [str(hit.ref) for hit in hits]


@HALF
@given(
    history=histories,
    selection=filters,
    kinds=some_kinds,
    newest_first=st.booleans(),
    limit=st.integers(0, 4),
    offset=st.integers(0, 4),
)
def test_after_the_same_history_every_list_is_the_same(
    compared: Compare, history: list[Action], selection: Filter, **asked: Any
) -> None:
    with compared() as (opened, memory):
        for action in history:
            assert play(opened.store, action) == play(memory, action)
        for ask in (_selected, _beside, counted):
            assert ask(opened.store, selection, **asked) == ask(memory, selection, **asked)


def _selected(store: Store, selection: Filter, kinds: list[Kind], **how: Any) -> list[object]:
    ids = [sorted(store.selected_ids(kind, selection)) for kind in Kind]
    among = [store.selected_among(kind, selection, [1, 3, 99]) for kind in Kind]
    counts = [store.count(kind, selection) for kind in Kind]
    return [store.page(kinds, selection, **how), ids, among, counts]


def _beside(
    store: Store, selection: Filter, kinds: list[Kind], limit: int, newest_first: bool, **_: Any
) -> list[object]:
    """The neighbours of every record, and of places where there is none."""
    hits = store.page(list(Kind), EVERYTHING, newest_first=True, limit=6, offset=0)
    points = [Point(hit.created_at_epoch, hit.ref.id, hit.ref.kind) for hit in hits]
    return [
        store.neighbours(kinds, selection, point, before=newest_first, limit=limit)
        for point in (*points, Point(NOW - DAY), Point(NOW, 3, Kind.PROMPT))
    ]


def test_records_stand_in_the_order_of_time_then_of_ids_then_of_kinds(store: Store) -> None:
    store.write(made(TIE, NOW - 9 * DAY, TIE))
    ordered = ["2", "P2", "S2", "1", "P1", "S1", "3", "P3", "S3"]
    for newest_first in (True, False):
        pages = [
            store.page(list(Kind), EVERYTHING, newest_first=newest_first, limit=4, offset=at)
            for at in (0, 4, 8, 12)
        ]
        assert [len(page) for page in pages] == [4, 4, 1, 0]
        found = [ref for page in pages for ref in refs(page)]
        assert found == (ordered[::-1] if newest_first else ordered)
    for place, hit in enumerate(
        store.page(list(Kind), EVERYTHING, newest_first=False, limit=9, offset=0)
    ):
        point = Point(hit.created_at_epoch, hit.ref.id, hit.ref.kind)
        sides = [
            store.neighbours(list(Kind), EVERYTHING, point, before=before, limit=2)
            for before in (True, False)
        ]
        assert list(map(refs, sides)) == [
            ordered[max(0, place - 2) : place],
            ordered[place + 1 : place + 3],
        ]


def test_both_bounds_of_time_are_inclusive(store: Store) -> None:
    store.write(made(NOW - 1, NOW, NOW + 1))
    for since, until, count in ((NOW, NOW, 1), (NOW, None, 2), (None, NOW - 1, 1), (None, 0, 0)):
        assert store.count(Kind.PROMPT, Filter((), since, until)) == count
        assert store.count_work_sessions(Filter((), since, until)) == min(1, count)


def test_values_are_counted_by_kind_most_used_first_in_one_spelling(store: Store) -> None:
    carried = [("Beta",), ("beta", "BETA", "alpha"), ("gamma", "beta"), ("alpha",)]
    store.write(
        Observation(source="t", source_id=str(n), concepts=concepts, files_read=("./a//b.py",))
        for n, concepts in enumerate(carried)
    )
    counts = store.count_values(Kind.OBSERVATION, "concept")
    assert list(counts.items()) == [("Beta", 3), ("alpha", 2), ("gamma", 1)]
    assert store.count_values(Kind.SESSION, "concept") == {}
    assert list(store.count_values(Kind.OBSERVATION, "file").values()) == [4]


def test_projects_are_listed_last_worked_on_first(store: Store) -> None:
    store.write(
        [
            Observation(source="t", source_id="1", project="old", created_at_epoch=NOW - DAY),
            Prompt(source="t", source_id="1", project="OLD", created_at_epoch=NOW - 2 * DAY),
            Prompt(source="t", source_id="2", project="new", created_at_epoch=NOW),
        ]
    )
    new, old = store.projects()
    assert (new.name, new.last_at_epoch, old.last_at_epoch) == ("new", NOW, NOW - DAY)
    assert old.counts == {Kind.OBSERVATION: 1, Kind.SESSION: 0, Kind.PROMPT: 1}


def test_a_date_after_the_bound_is_no_work_on_a_project(store: Store) -> None:
    moments = {"ahead": (NOW + DAY,), "both": (NOW - DAY, NOW + 9 * DAY), "now": (NOW,)}
    store.write(
        Observation(source="t", source_id=f"{name}{moment}", project=name, created_at_epoch=moment)
        for name, made_at in moments.items()
        for moment in made_at
    )
    found = [(project.name, project.last_at_epoch) for project in store.projects(until=NOW)]
    assert found == [("now", NOW), ("both", NOW - DAY), ("ahead", NOW + DAY)]
    assert [project.name for project in store.projects()] == ["both", "ahead", "now"]


def test_a_date_after_the_bound_is_no_work_on_a_work_session(store: Store) -> None:
    given_ = {"both": (NOW - DAY, NOW + 9 * DAY), "now": (NOW - 5,), "ahead": (NOW + DAY,)}
    for name, moments in given_.items():
        store.write(
            Prompt(source="t", source_id=f"{name}{m}", session_id=name, created_at_epoch=m)
            for m in moments
        )
    empty = [
        WorkSession(session_id=f"empty {at}", started_at_epoch=NOW + at) for at in (-DAY // 2, DAY)
    ]
    store.write([], empty)
    bound = Filter(until=NOW)
    entries = store.recent_work(bound, limit=9, most=9)
    assert [(each.session.session_id, each.last_at_epoch) for each in entries] == [
        ("now", NOW - 5),
        (f"empty {-DAY // 2}", NOW - DAY // 2),
        ("both", NOW - DAY),
    ]
    assert entries[2].counts[Kind.PROMPT] == 1
    assert store.recent_work(bound, limit=2, most=9) == entries[:2]
    assert store.count_work_sessions(bound) == 3


def test_days_are_local_and_the_newest_comes_first(
    store: Store, zone: Callable[[str], None]
) -> None:
    zone("Pacific/Auckland")
    store.write(made(NOW - DAY, NOW, NOW - 5 * DAY))
    assert list(store.days(NOW - 2 * DAY).items()) == [("2026-11-09", 3), ("2026-11-08", 3)]


def test_a_discovery_of_several_records_is_learned_once(store: Store) -> None:
    assert store.economics() == Economics(0, 0, 0)
    store.write(made(NOW))
    read = store.economics().read
    store.write(made(NOW, NOW + 5, NOW + 9000, project="x")[2::3])
    store.write(
        Observation(source="t", source_id=f"d{n}", created_at_epoch=NOW + n, discovery_tokens=700)
        for n in range(3)
    )
    found = store.economics()
    assert (found.learned, found.read > read > 0, 0 < found.known < found.read) == (700, True, True)


SESSION = WorkSession(
    session_id="s1",
    project="API",
    started_at_epoch=NOW - 3 * DAY,
    completed_at_epoch=NOW - DAY,
    status="completed",
)


def test_a_work_session_spans_its_records_and_lists_the_newest(store: Store) -> None:
    store.write(made(NOW - 9 * DAY, NOW - 5, NOW, project="api", session_id="s1"), [SESSION])
    (entry,) = store.recent_work(EVERYTHING, limit=9, most=2)
    assert entry.last_at_epoch == NOW
    assert (entry.session.started_at_epoch, entry.session.status) == (NOW - 9 * DAY, "completed")
    assert refs(entry.hits[Kind.PROMPT]) == ["P3", "P2"]
    assert entry.counts == dict.fromkeys(Kind, 3)


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        (EVERYTHING, ["s3", "s2", "s1"]),
        (Filter((("project", ("Api",)),)), ["s3", "s1"]),
        (Filter((("project", ("api", "shop")),)), ["s3", "s2", "s1"]),
        (Filter((("type", ("bugfix",)),)), ["s2"]),
        (Filter((("type", ("bugfix",)), ("project", ("api",)))), []),
        (Filter(since=NOW - 5), ["s2"]),
    ],
)
def test_work_sessions_are_those_that_hold_what_is_selected(
    store: Store, selection: Filter, found: list[str]
) -> None:
    """A work session without records belongs to its project, and to no other filter."""
    empty = WorkSession(session_id="s3", project="api", started_at_epoch=NOW + 1)
    store.write(made(NOW - DAY, project="api", session_id="s1"), [empty])
    store.write(
        [
            Observation(
                source="u",
                source_id=kind,
                type=kind,
                project="shop",
                session_id="s2",
                created_at_epoch=NOW,
            )
            for kind in ("bugfix", "change")
        ]
    )
    entries = store.recent_work(selection, limit=9, most=9)
    assert [entry.session.session_id for entry in entries] == found
    assert store.recent_work(selection, limit=1, most=9) == entries[:1]
    assert store.count_work_sessions(selection) == len(found)
    if ("type", ("bugfix",)) in selection.groups:
        assert all(entry.counts[Kind.OBSERVATION] == 1 for entry in entries)


def test_records_and_times_leave_out_what_is_not_there(store: Store) -> None:
    store.write(made(NOW))
    asked = [Ref(Kind.PROMPT, 1), Ref(Kind.PROMPT, 2), Ref(Kind.OBSERVATION, 1)]
    assert store.times(asked) == dict.fromkeys([asked[0], asked[2]], NOW)
    assert set(store.records(asked)) == {asked[0], asked[2]}
    assert store.records([]) == store.times([]) == {}


def test_the_newest_record_that_a_family_of_sources_knows_by_an_id_tells_its_project(
    store: Store,
) -> None:
    known = [
        ("git:shop", "c1", "shop"),
        ("git:storefront", "c1", "storefront"),
        ("git:shop", "c2", "shop"),
        ("gitlab", "c3", "gitlab"),
        ("git", "c4", "git"),
        ("zip:shop", "c5", "zip"),
    ]
    store.write(
        Observation(title=f"{source} {id}", source=source, source_id=id, project=project)
        for source, id, project in known
    )
    store.write([Prompt(prompt_text="p", source="git:p", source_id="c6", project="p")])
    found = [store.project_from(Kind.OBSERVATION, "git", f"c{n}") for n in range(1, 7)]
    assert found == ["storefront", "shop", None, None, None, None]
    store.forget(Ref(Kind.OBSERVATION, 2))
    assert store.project_from(Kind.OBSERVATION, "git", "c1") == "shop"


def test_titles_are_the_first_text_of_a_record_with_its_project(store: Store) -> None:
    store.write(
        [
            Observation(title="A title", project="shop", source="t", source_id="1"),
            Summary(request="A request", source="t", source_id="1"),
            Prompt(prompt_text="A prompt", project="Api", source="t", source_id="1"),
        ]
    )
    refs = [Ref(kind, 1) for kind in Kind]
    assert store.titles([*refs, Ref(Kind.PROMPT, 2)]) == {
        refs[0]: Title("A title", "shop"),
        refs[1]: Title("A request", ""),
        refs[2]: Title("A prompt", "Api"),
    }
    assert store.titles([]) == {}


def test_origins_are_work_sessions_and_lengths_of_texts(store: Store) -> None:
    mine = {"project": "Shop", "session_id": "s1", "source": "t", "source_id": "1"}
    store.write(
        [
            Observation(title="Café", narrative="open", facts=("one", "two"), **mine),
            Summary(request="do it", notes="done", **mine),
            Prompt(prompt_text="do it", source="t", source_id="1"),
        ]
    )
    refs = [Ref(kind, 1) for kind in Kind]
    assert store.origins([*refs, Ref(Kind.PROMPT, 2)]) == {
        refs[0]: Origin("Shop", "s1", len("Café") + len("open") + len('["one", "two"]')),
        refs[1]: Origin("Shop", "s1", len("do it") + len("done")),
        refs[2]: Origin("", "", len("do it")),
    }
    assert store.origins([]) == {}
