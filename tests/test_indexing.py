"""Records to vectors, vectors to the index, whatever happens in between."""

import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from fake_semantic import DIMENSION, WordEmbedder, semantic_over, settle
from hypothesis import given
from hypothesis import strategies as st
from profiles import FEWER
from samples import DAY, NOW, named, new_store
from strategies import records
from workers import PATIENCE

from memsvc.adapters.indexes.exact import ExactIndex
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.semantic.index_sync import (
    MAX_LEADS,
    MAX_RECORDS,
    Model,
    apply_some,
    embed_record,
    embed_some,
)
from memsvc.application.semantic.indexer import Factories
from memsvc.application.semantic.worker import SemanticWorker
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Vector
from memsvc.core.records import Kind, Observation, Record, Ref

FIRST = Ref(Kind.OBSERVATION, 1)


class Interrupted(WordEmbedder):
    """A model during whose first text something else happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def embed(self, text: str) -> Vector:
        if not self.texts:
            self._meanwhile()
        return super().embed(text)


class Forgetful(ExactIndex):
    """An index that ends before it notes where it stands, the first time."""

    ended = False

    def advance(self, position: int) -> None:
        if not self.ended:
            self.ended = True
            raise SemanticUnavailable("ended")
        super().advance(position)


@pytest.fixture
def index() -> ExactIndex:
    return ExactIndex(DIMENSION)


@pytest.fixture
def model() -> WordEmbedder:
    return WordEmbedder()


def catch_up(vectors: SqliteVectors, model: WordEmbedder, index: ExactIndex) -> None:
    while embed_some(vectors, Model(model)) + apply_some(vectors, index, model.fingerprint):
        pass


def nearest(
    index: ExactIndex, model: WordEmbedder, text: str, selection: Filter | None = None
) -> list[int]:
    found = index.nearest(Kind.OBSERVATION, model.embed(text), 10, selection or Filter())
    return [id for id, _ in found]


def told(number: int) -> Observation:
    """A record that says more than its lead, the older the higher its number."""
    return named(f"title{number}", NOW - number * DAY, narrative="word " * 40 + f"end{number}")


def test_all_leads_come_first_newest_first_and_only_some_per_step(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder
) -> None:
    own_store.write([told(number) for number in range(MAX_LEADS + MAX_RECORDS + 1)])
    assert embed_some(vectors, Model(model)) == MAX_LEADS
    assert vectors.count_unknown() == MAX_RECORDS + 1
    assert not any("end" in text for text in model.texts)
    assert any("title0" in text for text in model.texts)
    assert embed_some(vectors, Model(model)) == MAX_RECORDS + 1
    assert (vectors.count_unknown(), vectors.count_pending()) == (0, MAX_LEADS + MAX_RECORDS + 1)
    assert embed_some(vectors, Model(model)) == MAX_RECORDS
    assert {f"end{number}" for number in range(MAX_RECORDS)} <= set(" ".join(model.texts).split())


def test_a_few_new_records_are_embedded_whole_at_once(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder
) -> None:
    own_store.write([told(number) for number in range(MAX_RECORDS)])
    assert embed_some(vectors, Model(model)) == MAX_RECORDS
    assert vectors.count_pending() == 0


def test_a_record_that_its_lead_says_whole_is_embedded_once(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder
) -> None:
    own_store.write([named(f"title{number}") for number in range(MAX_RECORDS + 1)])
    assert embed_some(vectors, Model(model)) == MAX_RECORDS + 1
    assert (vectors.count_pending(), len(model.texts)) == (0, MAX_RECORDS + 1)
    kept = vectors.vectors(Kind.OBSERVATION, [1], model.fingerprint)
    assert numpy.allclose(kept[1], embed_record(model, named("title0")), atol=1e-3)


def test_after_all_steps_nothing_of_a_lead_is_left(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder, index: ExactIndex
) -> None:
    whole = {number + 1: told(number) for number in range(MAX_LEADS)}
    own_store.write(whole.values())
    catch_up(vectors, model, index)
    kept = vectors.vectors(Kind.OBSERVATION, list(whole), model.fingerprint)
    assert all(
        numpy.allclose(kept[id], embed_record(model, record), atol=1e-3)
        for id, record in whole.items()
    )
    assert index.count() == sum(map(len, kept.values()))


def test_who_stops_in_the_middle_keeps_what_is_done(
    own_store: SqliteStore,
    vectors: SqliteVectors,
    model: WordEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own_store.write([named("a"), named("b"), named("c")])
    monkeypatch.setattr("memsvc.application.semantic.index_sync.MAX_BATCH", 0)
    stopping = Model(model, stopped=lambda: len(model.texts) == 2)
    assert embed_some(vectors, stopping) == 2
    assert vectors.count_pending() == 1


class Together(WordEmbedder):
    """Gives no vector before two texts are being embedded at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.both = threading.Barrier(2, timeout=PATIENCE)

    def embed(self, text: str) -> Vector:
        self.both.wait()
        return super().embed(text)


def test_the_threads_of_a_pool_embed_at_the_same_time(
    own_store: SqliteStore, vectors: SqliteVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsvc.application.semantic.index_sync.MAX_BATCH", 0)
    own_store.write([named(name) for name in ("payment", "parser")])
    with ThreadPoolExecutor(2) as pool:
        assert embed_some(vectors, Model(Together(), pool)) == 2
    kept = vectors.vectors(Kind.OBSERVATION, [1, 2], WordEmbedder().fingerprint)
    alone = {
        id: embed_record(WordEmbedder(), named(n)) for id, n in ((1, "payment"), (2, "parser"))
    }
    assert all(numpy.allclose(kept[id], alone[id], atol=1e-3) for id in (1, 2))


def test_nothing_to_do_is_nothing_done(
    vectors: SqliteVectors, model: WordEmbedder, index: ExactIndex
) -> None:
    assert embed_some(vectors, Model(model)) == 0
    assert apply_some(vectors, index, model.fingerprint) == 0


def test_a_record_changed_while_it_is_embedded_waits_and_gets_the_new_vectors(
    own_store: SqliteStore, vectors: SqliteVectors, index: ExactIndex
) -> None:
    own_store.write([named("payment")])
    changed = replace(named("payment"), title="parser")
    embed_some(vectors, Model(Interrupted(lambda: own_store.write([changed]))))
    assert vectors.vectors(Kind.OBSERVATION, [1], WordEmbedder().fingerprint) == {}
    catch_up(vectors, WordEmbedder(), index)
    (kept,) = vectors.vectors(Kind.OBSERVATION, [1], WordEmbedder().fingerprint).values()
    assert numpy.allclose(kept, embed_record(WordEmbedder(), changed), atol=1e-3)


def test_a_record_forgotten_while_it_is_embedded_leaves_nothing(
    own_store: SqliteStore, vectors: SqliteVectors, index: ExactIndex
) -> None:
    own_store.write([named("payment")])
    embed_some(vectors, Model(Interrupted(lambda: own_store.forget(FIRST))))
    catch_up(vectors, WordEmbedder(), index)
    assert vectors.vectors(Kind.OBSERVATION, [1], WordEmbedder().fingerprint) == {}
    assert (index.count(), vectors.count_pending()) == (0, 0)


def test_every_text_is_embedded_once_for_a_record(model: WordEmbedder) -> None:
    embed_record(model, Observation(title="same", narrative="word " * 300))
    assert len(model.texts) == len(set(model.texts))


def test_the_index_follows_a_new_date_without_new_vectors(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder, index: ExactIndex
) -> None:
    own_store.write([named("payment")])
    catch_up(vectors, model, index)
    texts = len(model.texts)
    own_store.write([named("payment", NOW - 9 * DAY)])
    catch_up(vectors, model, index)
    assert len(model.texts) == texts
    assert nearest(index, model, "payment", Filter(since=NOW - DAY)) == []
    assert nearest(index, model, "payment", Filter(until=NOW - DAY)) == [1]


def test_the_index_follows_an_edit_and_holds_nothing_of_what_was(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder, index: ExactIndex
) -> None:
    own_store.write([named("payment", narrative="long " * 200)])
    catch_up(vectors, model, index)
    assert index.count() == 4
    own_store.write([named("payment", narrative="short")])
    catch_up(vectors, model, index)
    assert index.count() == 1


def test_the_index_follows_forgetting(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder, index: ExactIndex
) -> None:
    own_store.write([named("payment"), named("parser")])
    catch_up(vectors, model, index)
    own_store.forget(FIRST)
    catch_up(vectors, model, index)
    assert nearest(index, model, "payment") == [2]


def test_changes_are_followed_in_small_pieces_in_order(
    own_store: SqliteStore,
    vectors: SqliteVectors,
    model: WordEmbedder,
    index: ExactIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memsvc.application.semantic.index_sync.MAX_CHANGES", 3)
    own_store.write([named(f"n{number}") for number in range(8)])
    embed_some(vectors, Model(model))
    positions = [0]
    while apply_some(vectors, index, model.fingerprint):
        positions.append(index.position())
    assert positions == sorted(set(positions))
    assert (len(positions), index.count()) == (4, 8)


def test_who_ends_before_noting_where_it_stands_follows_the_same_again(
    own_store: SqliteStore, vectors: SqliteVectors, model: WordEmbedder
) -> None:
    index = Forgetful(DIMENSION)
    own_store.write([named("payment"), named("parser")])
    embed_some(vectors, Model(model))
    with pytest.raises(SemanticUnavailable, match="ended"):
        apply_some(vectors, index, model.fingerprint)
    assert (index.position(), index.count()) == (0, 2)
    assert apply_some(vectors, index, model.fingerprint) == 2
    assert index.count() == 2


def test_another_model_embeds_all_anew_and_never_mixes(own_store: SqliteStore) -> None:
    own_store.write([named("payment"), named("parser")])
    settle(semantic_over(own_store, WordEmbedder("one")))
    other = WordEmbedder("other")
    again = semantic_over(own_store, other)
    again.step()
    settle(again)
    vectors = SqliteVectors(own_store.connections)
    assert vectors.vectors(Kind.OBSERVATION, [1, 2], f"{DIMENSION}-one") == {}
    assert len(vectors.vectors(Kind.OBSERVATION, [1, 2], other.fingerprint)) == 2
    assert len(other.texts) == 2


def test_a_model_that_comes_back_embeds_nothing_that_it_knows(own_store: SqliteStore) -> None:
    own_store.write([named("payment")])
    settle(semantic_over(own_store, WordEmbedder()))
    again = WordEmbedder()
    settle(semantic_over(own_store, again))
    assert again.texts == []


STEPS = st.one_of(
    st.lists(records, min_size=1, max_size=4),
    st.builds(Ref, st.sampled_from(list(Kind)), st.integers(1, 4)),
    st.sampled_from(["embed", "follow"]),
)


@FEWER
@given(steps=st.lists(STEPS, max_size=14))
def test_after_any_history_the_index_holds_exactly_what_the_records_say(
    steps: list[list[Record] | Ref | str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = new_store(Path(folder) / "memsvc.db")
        vectors, model, index = (
            SqliteVectors(store.connections),
            WordEmbedder(),
            ExactIndex(DIMENSION),
        )
        for step in steps:
            _take(step, store, vectors, model, index)
        catch_up(vectors, model, index)
        expected = {ref: embed_record(model, record) for ref, record in _all(store)}
        assert _kept(vectors, model) == {ref: len(rows) for ref, rows in expected.items()}
        assert index.count() == sum(map(len, expected.values()))
        for ref, rows in expected.items():
            found = dict(index.nearest(ref.kind, rows[0], 1_000, Filter()))
            assert found[ref.id] == pytest.approx(1, abs=2e-3)
        store.close()


def _take(
    step: list[Record] | Ref | str,
    store: SqliteStore,
    vectors: SqliteVectors,
    model: WordEmbedder,
    index: ExactIndex,
) -> None:
    if step == "embed":
        embed_some(vectors, Model(model))
    elif step == "follow":
        apply_some(vectors, index, model.fingerprint)
    elif isinstance(step, Ref):
        store.forget(step)
    else:
        store.write([each for each in step if not isinstance(each, str)])


def _all(store: SqliteStore) -> Iterator[tuple[Ref, Record]]:
    for kind in Kind:
        refs = [Ref(kind, id) for id in store.selected_ids(kind, Filter())]
        yield from store.records(refs).items()


def _kept(vectors: SqliteVectors, model: WordEmbedder) -> dict[Ref, int]:
    """How many vectors each record has, those of records that are gone too."""
    return {
        Ref(kind, id): len(rows)
        for kind in Kind
        for id, rows in vectors.vectors(kind, range(1, 200), model.fingerprint).items()
    }


class Counting(WordEmbedder):
    """Notes which threads embed; gives no vector before as many as expected do so at once."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self._all = threading.Barrier(at_once, timeout=PATIENCE)
        self.threads: set[str] = set()

    def embed(self, text: str) -> Vector:
        self.threads.add(threading.current_thread().name)
        self._all.wait()
        return super().embed(text)


@pytest.mark.parametrize(("searched", "at_once"), [(False, 2), (True, 1)])
def test_embedding_leaves_a_thread_to_searches_while_somebody_searches(
    own_store: SqliteStore, monkeypatch: pytest.MonkeyPatch, searched: bool, at_once: int
) -> None:
    monkeypatch.setattr("memsvc.application.semantic.index_sync.MAX_BATCH", 0)
    monkeypatch.setattr("memsvc.application.semantic.indexer.QUIET_SECONDS", PATIENCE)
    own_store.write([named("payment"), named("parser")])
    model = Counting(at_once)
    factories = Factories(lambda: model, lambda *_: ExactIndex(DIMENSION))
    semantic = SemanticWorker(
        own_store, SqliteVectors(own_store.connections), factories, threads=1, quiet_threads=2
    )
    if searched:
        semantic.prepare("lexer")
    semantic.step()
    semantic.stop()
    assert len(model.threads) == at_once
