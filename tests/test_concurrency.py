"""Many readers and writers at one moment, in the store and over HTTP."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from samples import NOW, fill, named, new_store, services_over
from threads import at_once
from workers import PATIENCE

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.store import Outcome
from memsvc.core.query import parse
from memsvc.core.records import Kind, Observation, Prompt, Record, Ref, Summary, WorkSession
from memsvc.entrypoints.http.app import create_app

SIZE = 6
"""Records of one batch."""

ROUNDS = 8
FIRST = Ref(Kind.OBSERVATION, 1)
MARMOTS = parse("marmot")


def batch(name: str, version: int = 0) -> list[Observation]:
    text = f"version {version} of a marmot"
    return [named(f"{name}-{number}", narrative=text, project=name) for number in range(SIZE)]


class Writers:
    """Counts those that still write, so that readers know when to stop."""

    def __init__(self, count: int) -> None:
        self._left, self._lock = count, threading.Lock()

    @property
    def at_work(self) -> bool:
        return self._left > 0

    @contextmanager
    def one(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._left -= 1

    def turns(self) -> Iterator[None]:
        """One turn for as long as anyone writes, and one more for the end."""
        while self.at_work:
            yield
        yield


def test_no_reader_sees_half_a_batch_and_the_generation_never_falls(own_store: SqliteStore) -> None:
    writers = Writers(3)

    def write(name: str) -> None:
        with writers.one():
            for version in range(ROUNDS):
                own_store.write(batch(name, version))

    def read() -> None:
        before = 0
        for _ in writers.turns():
            assert own_store.count(Kind.OBSERVATION, EVERYTHING) % SIZE == 0
            assert own_store.count_matches(Kind.OBSERVATION, MARMOTS, EVERYTHING) % SIZE == 0
            with own_store.snapshot():
                generation = own_store.generation()
                found = own_store.records(
                    hit.ref for hit in own_store.rank(Kind.OBSERVATION, MARMOTS, EVERYTHING, 99)
                ).values()
                versions = {(record.project, record.narrative) for record in found}
                assert len(found) == SIZE * len(versions) == SIZE * len(dict(versions))
                assert own_store.generation() == generation >= before
            before = generation

    at_once(*(partial(write, f"p{number}") for number in range(3)), *[read] * 3)
    assert own_store.generation() >= 3 * ROUNDS
    assert own_store.count(Kind.OBSERVATION, EVERYTHING) == 3 * SIZE


def test_who_broke_off_has_left_nothing_to_those_that_write_meanwhile(
    own_store: SqliteStore,
) -> None:
    def broken(name: str) -> Iterator[Record]:
        yield from batch(name)
        raise EOFError

    def write(number: int) -> None:
        for turn in range(ROUNDS):
            if number % 2:
                own_store.write(batch(f"{number}-{turn}"))
            else:
                with pytest.raises(EOFError):
                    own_store.write(broken(f"{number}-{turn}"))

    at_once(*(partial(write, number) for number in range(4)))
    projects = {project.name for project in own_store.projects()}
    assert projects == {f"{number}-{turn}" for number in (1, 3) for turn in range(ROUNDS)}
    assert own_store.count(Kind.OBSERVATION, EVERYTHING) == 2 * ROUNDS * SIZE


@pytest.mark.parametrize(
    ("texts", "later"), [(["same"] * 6, Outcome.UNCHANGED), (list("abcdef"), Outcome.UPDATED)]
)
def test_writers_of_one_source_id_store_it_once(
    own_store: SqliteStore, texts: list[str], later: Outcome
) -> None:
    for turn in range(ROUNDS):
        given = [named(f"{turn}", narrative=text) for text in texts]
        receipts = at_once(*(partial(own_store.write, [record]) for record in given))
        outcomes = Counter(receipt.outcome for (receipt,) in receipts)
        assert outcomes == {Outcome.STORED: 1, later: len(texts) - 1}
        assert {receipt.ref for (receipt,) in receipts} == {Ref(Kind.OBSERVATION, turn + 1)}
    assert own_store.count(Kind.OBSERVATION, EVERYTHING) == ROUNDS


def test_writers_that_say_the_same_are_merged_into_the_first(own_store: SqliteStore) -> None:
    for turn in range(ROUNDS):
        first = named(f"{turn}")
        twins = [
            replace(first, source_id=f"{turn}-{n}", created_at_epoch=NOW + n) for n in range(6)
        ]
        receipts = at_once(*(partial(own_store.write, [twin], merge_within=9) for twin in twins))
        outcomes = Counter(receipt.outcome for (receipt,) in receipts)
        assert outcomes == {Outcome.STORED: 1, Outcome.MERGED: 5}
        assert {receipt.ref for (receipt,) in receipts} == {Ref(Kind.OBSERVATION, turn + 1)}


def test_ids_given_out_at_once_are_all_different(own_store: SqliteStore) -> None:
    written = at_once(*(partial(own_store.write, batch(f"p{number}")) for number in range(6)))
    assert sorted(receipt.ref.id for each in written for receipt in each if receipt.ref) == list(
        range(1, 6 * SIZE + 1)
    )


def test_what_is_forgotten_while_it_is_updated_is_forgotten(own_store: SqliteStore) -> None:
    for turn in range(ROUNDS):
        ref = Ref(Kind.OBSERVATION, turn + 1)
        before, after = (named(f"{turn}", narrative=f"a marmot {word}") for word in ("old", "new"))
        assert own_store.write([before])[0].ref == ref
        updated, gone = at_once(
            lambda after=after: own_store.write([after])[0].outcome,
            lambda ref=ref: own_store.forget(ref),
        )
        assert gone
        assert updated in (Outcome.UPDATED, Outcome.FORGOTTEN)
        assert own_store.records([ref]) == {}
        assert own_store.count_matches(Kind.OBSERVATION, MARMOTS, EVERYTHING) == 0
        assert own_store.write([after])[0].outcome is Outcome.FORGOTTEN


def test_only_one_of_many_forgets_a_record(own_store: SqliteStore) -> None:
    own_store.write(batch("p"))
    for number in range(1, SIZE + 1):
        ref = Ref(Kind.OBSERVATION, number)
        assert Counter(at_once(*[partial(own_store.forget, ref)] * 5)) == {True: 1, False: 4}


def test_a_work_session_spans_all_records_written_to_it_at_once(own_store: SqliteStore) -> None:
    def write(number: int) -> None:
        record = Prompt(
            prompt_text=f"{number}",
            session_id="s",
            source="t",
            source_id=f"{number}",
            created_at_epoch=NOW + number,
        )
        own_store.write([record], [WorkSession(session_id="s", started_at_epoch=NOW + number)])

    at_once(*(partial(write, number) for number in range(8)))
    (entry,) = own_store.recent_work(EVERYTHING, limit=9, most=0)
    assert (entry.session.started_at_epoch, entry.last_at_epoch) == (NOW, NOW + 7)
    assert entry.counts[Kind.PROMPT] == 8


def test_a_snapshot_stays_the_same_while_others_write_and_forget(own_store: SqliteStore) -> None:
    fill(own_store)
    begun, changed = (threading.Barrier(2, timeout=PATIENCE) for _ in range(2))

    def state() -> list[object]:
        page = own_store.page(list(Kind), EVERYTHING, newest_first=True, limit=99, offset=0)
        return [
            own_store.generation(),
            own_store.records(hit.ref for hit in page),
            [own_store.count(kind, EVERYTHING) for kind in Kind],
            own_store.count_matches(Kind.OBSERVATION, parse("payment"), EVERYTHING),
            own_store.rank(Kind.OBSERVATION, parse("payment"), EVERYTHING, 99),
            own_store.count_values(Kind.OBSERVATION, "type"),
            own_store.projects(),
            own_store.recent_work(EVERYTHING, limit=9, most=9),
        ]

    def read() -> None:
        with own_store.snapshot():
            before = state()
            begun.wait()
            changed.wait()
            assert state() == before
        assert all(now != then for now, then in zip(state(), before, strict=True))

    def write() -> None:
        begun.wait()
        made = [named(f"payment {n}", project="shop", session_id="new") for n in range(2)]
        own_store.write([*made, Summary(source_id="new"), Prompt(source_id="new")])
        own_store.forget(FIRST)
        state()  # as others see it, so that it is cached
        changed.wait()

    at_once(read, write)


class Interrupted(SqliteStore):
    """A store in which something happens just after a thread has learnt the generation."""

    meanwhile: Callable[[], object] | None = None

    def generation(self) -> int:
        found = super().generation()
        if happen := self.meanwhile:
            self.meanwhile = None
            happen()
        return found


@pytest.mark.parametrize(
    ("ask", "before"),
    [
        (lambda store: store.count(Kind.OBSERVATION, EVERYTHING), 0),
        (lambda store: store.count_matches(Kind.OBSERVATION, MARMOTS, EVERYTHING), 0),
        (lambda store: store.count_values(Kind.OBSERVATION, "project"), {}),
        (lambda store: store.projects(), []),
        (lambda store: store.days(0), {}),
    ],
)
def test_a_cached_answer_is_that_of_its_generation(
    tmp_path: Path, ask: Callable[[SqliteStore], object], before: object
) -> None:
    new_store(tmp_path / "memsvc.db").close()
    store = Interrupted(new_store(tmp_path / "memsvc.db").connections)
    with store.snapshot():
        store.generation()  # the snapshot begins with the first read
        store.meanwhile = lambda: store.write(batch("p"))
        at_once(partial(ask, store))
        assert ask(store) == before
    assert ask(store) != before
    store.close()


@pytest.fixture
def app(own_store: SqliteStore) -> Flask:
    return create_app(services_over(own_store))


def observation(name: str, **given: Any) -> dict[str, Any]:
    return {"title": f"a marmot {name}", "source": "t", "source_id": name, **given}


SEARCH = "/api/search/observations?query=marmot&limit=100&days=all"


def test_answers_are_of_one_moment_and_an_etag_belongs_to_one_answer(app: Flask) -> None:
    writers, bodies, lock = Writers(3), dict[str, bytes](), threading.Lock()

    def write(name: str) -> None:
        client = app.test_client()
        with writers.one():
            for turn in range(ROUNDS):
                known = client.get(SEARCH).headers["ETag"]
                sent = [observation(f"{name}-{turn}-{n}", project=name) for n in range(SIZE)]
                assert client.post("/api/observations", json=sent).status_code == 201
                seen = client.get(SEARCH, headers={"If-None-Match": known})
                assert seen.status_code == 200
                own = client.get(f"/api/search?project={name}&limit=1").get_json()
                assert own["total"] == SIZE * (turn + 1)

    def read() -> None:
        client, known, total = app.test_client(), "", 0
        for _ in writers.turns():
            answer = client.get(SEARCH, headers={"If-None-Match": known})
            if answer.status_code == 304:
                assert answer.headers["ETag"] == known
                continue
            page, known = answer.get_json(), answer.headers["ETag"]
            with lock:
                assert bodies.setdefault(known, answer.get_data()) == answer.get_data()
            assert page["total"] % SIZE == 0
            assert page["total"] >= total
            assert len(page["results"]) == min(100, page["total"])
            total = page["total"]

    at_once(*(partial(write, f"p{number}") for number in range(3)), *[read] * 3)
    client = app.test_client()
    last = client.get(SEARCH)
    assert last.get_json()["total"] == 3 * ROUNDS * SIZE
    again = {tag: client.get(SEARCH, headers={"If-None-Match": tag}) for tag in bodies}
    assert {tag for tag, each in again.items() if each.status_code == 304} <= {last.headers["ETag"]}


def test_a_source_id_posted_by_many_at_once_is_one_record(app: Flask) -> None:
    def post(number: int) -> dict[str, Any]:
        sent = [observation("one"), observation(f"own-{number}")]
        answer = app.test_client().post("/api/observations", json=sent)
        assert answer.status_code == 201
        return answer.get_json()

    answers = at_once(*(partial(post, number) for number in range(6)))
    shared, own = ([each["results"][place] for each in answers] for place in (0, 1))
    assert Counter(each["outcome"] for each in shared) == {"stored": 1, "unchanged": 5}
    assert len({each["ref"] for each in shared}) == 1
    assert len({each["ref"] for each in own}) == 6


def test_of_many_that_delete_a_record_one_is_told_that_it_was_there(app: Flask) -> None:
    app.test_client().post("/api/observations", json=observation("one"))
    codes = at_once(*[lambda: app.test_client().delete("/api/observation/1").status_code] * 6)
    assert Counter(codes) == {200: 1, 404: 5}
    assert app.test_client().get(SEARCH).get_json()["total"] == 0


def test_statistics_count_the_same_records_everywhere_while_others_write(app: Flask) -> None:
    writers = Writers(2)

    def write(name: str) -> None:
        client = app.test_client()
        with writers.one():
            for turn in range(ROUNDS):
                sent = [observation(f"{name}-{turn}-{n}", project=name) for n in range(SIZE)]
                assert client.post("/api/observations", json=sent).status_code == 201

    def read() -> None:
        for _ in writers.turns():
            told = app.test_client().get("/api/stats").get_json()
            total = told["kinds"]["observations"]
            assert total % SIZE == 0
            assert sum(told["projects"].values()) == sum(told["types"].values()) == total

    at_once(partial(write, "a"), partial(write, "b"), read, read)


def test_a_filtered_count_of_one_moment_agrees_with_its_page(own_store: SqliteStore) -> None:
    writers, selection = Writers(1), Filter((("project", ("a",)),))

    def write() -> None:
        with writers.one():
            for turn in range(ROUNDS):
                own_store.write([named(f"{turn}-{n}", project="ab"[n % 2]) for n in range(SIZE)])
                own_store.forget(Ref(Kind.OBSERVATION, turn * SIZE + 1))

    def read() -> None:
        for _ in writers.turns():
            with own_store.snapshot():
                hits = own_store.page(
                    [Kind.OBSERVATION], selection, newest_first=True, limit=999, offset=0
                )
                assert len(hits) == own_store.count(Kind.OBSERVATION, selection)
                assert len(own_store.records(hit.ref for hit in hits)) == len(hits)

    at_once(write, read, read)
