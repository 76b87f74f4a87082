"""What full-text search finds, in which order, and what it says about it."""

import contextlib
import itertools
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.adapters.sqlite.fulltext import ranking as fulltext
from memsvc.adapters.sqlite.fulltext import spelling
from memsvc.adapters.sqlite.fulltext.explaining import matched_terms
from memsvc.adapters.sqlite.fulltext.index_words import tag
from memsvc.adapters.sqlite.fulltext.search import Frequencies, Scope, TextSearch
from memsvc.adapters.sqlite.store import open_store
from memsvc.core.query import parse
from memsvc.core.records import Kind, Observation, Prompt, Summary

Ask = Callable[..., TextSearch]

WORDS = [
    *("cache", "lock", "index", "schema", "worker", "queue"),
    *("token", "retry", "commit", "branch", "merge", "parser"),
]


def observation(number: int, title: str, **given: object) -> Observation:
    return Observation(
        source="test",
        source_id=str(number),
        title=title,
        created_at_epoch=number * 1_000,
        **given,  # type: ignore[arg-type]
    )


def many_observations() -> list[Observation]:
    """Three hundred records of common words, drawn so that rare and frequent ones occur."""
    draw = random.Random(7)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
    return [
        observation(
            number,
            " ".join(draw.choices(WORDS, weights, k=4)),
            narrative=" ".join(draw.choices(WORDS, weights, k=draw.randint(5, 40))),
            project=draw.choice(["shop", "api"]),
        )
        for number in range(100, 400)
    ]


FEW = [
    observation(1, "getUserById returned null for soft-deleted accounts", type="bugfix"),
    observation(2, "Notes of the day", narrative="The parser was slow. A database lock was held."),
    observation(3, "Database lock in the migration", narrative="Fixed by a shorter transaction."),
    observation(4, "Lock files", narrative="A file that says who uses the database."),
    observation(5, "Locking and databases", narrative="A talk."),
    observation(6, "数据库连接池大小定为二十", narrative="压测显示", project="shop"),
    observation(7, "Moved the start-up", files_modified=("src/services/worker-service.ts",)),
    observation(8, "Authentication middleware extracted", project="shop", facts=("It is pure.",)),
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Searches over a few records with meaning."""
    yield from searches(tmp_path_factory.mktemp("few") / "memsvc.db", FEW)


TITLES = list(itertools.islice(itertools.product(WORDS[:4], repeat=4), 0, None, 7))
"""Titles of four words each, in which some words come more often than in others."""


@pytest.fixture(scope="module")
def ask_titles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Searches over records that differ in the words of their titles alone; #1 has the first."""
    observations = [observation(n, " ".join(title)) for n, title in enumerate(TITLES, 1)]
    yield from searches(tmp_path_factory.mktemp("titles") / "memsvc.db", observations)


@pytest.fixture(scope="module")
def ask_many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Searches over enough records to page through."""
    yield from searches(tmp_path_factory.mktemp("many") / "memsvc.db", many_observations())


def searches(path: Path, observations: list[Observation]) -> Iterator[Ask]:
    store = open_store(path)
    store.write(
        [
            *observations,
            Summary(source="test", source_id="1", request="Make the lock shorter", learned="WAL"),
            Prompt(source="test", source_id="1", prompt_text="why does the lock fail?"),
        ]
    )
    store.close()
    frequencies = Frequencies()
    with contextlib.closing(sqlite3.connect(path)) as connection:

        def search(text: str, kind: Kind = Kind.OBSERVATION, **given: object) -> TextSearch:
            return TextSearch(connection, kind, parse(text), frequencies, 1, **given)  # type: ignore[arg-type]

        yield search


def ids(search: TextSearch) -> list[int]:
    return [hit.ref.id for hit in fulltext.rank(search, 100)]


def test_records_with_the_words_together_in_the_title_come_first(ask: Ask) -> None:
    assert ids(ask("database lock")) == [3, 5, 4, 2]


def test_words_in_the_form_asked_for_come_before_their_relatives(ask: Ask) -> None:
    assert ids(ask("locking databases"))[0] == 5


def test_every_kind_is_searched_in_its_own_table(ask: Ask) -> None:
    assert len(ids(ask("lock", Kind.SESSION))) == 1
    assert len(ids(ask("lock", Kind.PROMPT))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUser", [1]),
        ("连接池", [6]),
        ("worker-service.ts", [7]),
        ("src/services", [7]),
        ("title:lock", [5, 4, 3]),
        ('"database lock"', [3, 2]),
        ("lock -talk -file", [3, 2]),
        ("auth*", [8]),
        ("nowhere", []),
        ("???", []),
        ("", []),
    ],
)
def test_the_query_language_is_kept(ask: Ask, text: str, expected: list[int]) -> None:
    assert sorted(ids(ask(text))) == sorted(expected)
    assert fulltext.count(ask(text)) == len(expected)


def test_only_exclusions_mean_everything_else_newest_first(ask: Ask) -> None:
    assert ids(ask("-lock")) == [8, 7, 6, 1]
    assert fulltext.count(ask("-lock")) == 4
    assert ids(ask("-type:bugfix -lock")) == [8, 7, 6]


def test_tags_of_the_scope_must_hold(ask: Ask) -> None:
    shop = Scope(tags=((tag("project", "shop"),),))
    assert sorted(ids(ask("authentication lock 连接", scope=shop))) == [6, 8]
    assert ids(ask("lock", scope=shop)) == []
    assert ids(ask("-authentication", scope=shop)) == [6]
    assert fulltext.count(ask("-authentication", scope=shop)) == 1


def test_the_condition_of_the_scope_must_hold(ask: Ask) -> None:
    recent = Scope(condition="record.created_at_epoch >= ?", parameters=(4_000,))
    assert sorted(ids(ask("lock", scope=recent))) == [4, 5]
    assert fulltext.count(ask("lock", scope=recent)) == 2
    assert ids(ask("-lock", scope=recent)) == [8, 7, 6]


def test_relevance_is_comparable_between_queries(ask: Ask) -> None:
    (perfect, *_) = fulltext.rank(ask("Database lock in the migration"), 10)
    (partial, *_) = fulltext.rank(ask("lock nowhere nothing never"), 10)
    assert 0.7 < perfect.relevance <= 1
    assert partial.relevance < 0.4


def test_matches_come_in_the_order_of_time_when_asked(ask: Ask) -> None:
    newest = fulltext.by_time(ask("lock"), newest_first=True, limit=2)
    oldest = fulltext.by_time(ask("lock"), newest_first=False, limit=2, offset=1)
    assert [hit.ref.id for hit in newest] == [5, 4]
    assert [hit.ref.id for hit in oldest] == [3, 4]


def test_matched_terms_say_where_a_record_matches(ask: Ask) -> None:
    found = matched_terms(ask('lock talk "database lock" nowhere'), [2])[2]
    assert found == {"lock": ["narrative"], "database lock": ["narrative"]}
    found = matched_terms(ask("getUser title:null"), [1])[1]
    assert found == {"getuser": ["parts"], "get user": ["parts"], "null": ["title"]}


def test_words_of_other_records_are_suggested_for_mistyped_ones(ask: Ask) -> None:
    assert spelling.suggest(ask("authentcation")) == ["authentication"]
    assert spelling.suggest(ask("datbase lokc")) == ["database", "lock"]
    assert spelling.suggest(ask("databsae*"))[0] == "database"
    assert spelling.suggest(ask("lock")) == []
    assert spelling.suggest(ask("zzzzzz")) == []


QUERIES = st.lists(st.sampled_from([*WORDS, "-lock", '"cache lock"', "nowhere", "the"]), max_size=6)


@given(QUERIES.map(" ".join), st.integers(1, 60), st.integers(1, 50))
def test_pages_beyond_the_candidates_neither_repeat_nor_skip(
    ask_many: Ask, text: str, depth: int, page: int
) -> None:
    search = ask_many(text)
    candidates = fulltext.rank(search, depth)
    found, without = list(candidates), [hit.ref.id for hit in candidates]
    for offset in range(0, fulltext.count(search), page):
        found += fulltext.rest(search, without=without, limit=page, offset=offset)
    assert len({hit.ref for hit in found}) == len(found) == fulltext.count(search)
    relevances = [each.relevance for each in found]
    assert all(0 <= relevance <= 1 for relevance in relevances)


@given(QUERIES.map(" ".join))
def test_the_most_relevant_record_comes_first(ask_many: Ask, text: str) -> None:
    relevances = [each.relevance for each in fulltext.rank(ask_many(text), 100)]
    assert relevances == sorted(relevances, reverse=True)


@given(st.lists(st.sampled_from(WORDS[:4]), min_size=1, max_size=3, unique=True))
def test_the_more_a_record_says_of_the_query_the_more_relevant_it_is(
    ask_titles: Ask, asked: list[str]
) -> None:
    """All else is equal: how often each word stands in the title, and which stand together."""
    found = fulltext.rank(ask_titles(" ".join(asked)), len(TITLES))
    assert {hit.ref.id for hit in found} == {
        number for number, title in enumerate(TITLES, 1) if set(title) & set(asked)
    }
    said = {hit: _said(TITLES[hit.ref.id - 1], asked) for hit in found}
    for one, other in itertools.permutations(found, 2):
        if said[one] == said[other]:
            assert one.relevance == other.relevance
        elif _says_all(said[one], said[other]):
            assert one.relevance > other.relevance


def _said(title: Sequence[str], asked: Sequence[str]) -> Counter[object]:
    """How often a title says each word of a query, and whether it says two as they follow there."""
    together = set(itertools.pairwise(title)) & set(itertools.pairwise(asked))
    return Counter([word for word in title if word in asked]) + Counter(together)


def _says_all(one: Counter[object], other: Counter[object]) -> bool:
    return all(one[each] >= other[each] for each in other)


def test_rare_words_first_finds_the_same_best_records(
    ask_many: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = ask_many("parser merge cache lock index")
    exact = ids(search)[:10]
    monkeypatch.setattr(fulltext, "MAX_RARE", 150)
    rare, common = fulltext._split(search, list(search.idfs))
    assert rare
    assert common
    assert len(set(exact) & set(ids(search)[:10])) >= 8


def test_a_narrow_scope_is_searched_whole_whatever_the_words(
    ask_many: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fulltext, "MAX_RARE", 10)
    narrow = Scope(condition="record.id <= 20")
    search = ask_many("parser cache lock", scope=narrow)
    assert len(ids(search)) == fulltext.count(search)


def test_frequencies_are_counted_again_when_the_store_has_changed(tmp_path: Path) -> None:
    with contextlib.closing(open_store(tmp_path / "memsvc.db")) as store:
        store.write([observation(1, "lock")])
        with contextlib.closing(sqlite3.connect(tmp_path / "memsvc.db")) as connection:
            frequencies = Frequencies()
            count = frequencies.of(connection, Kind.OBSERVATION, '"lock"', 1)
            store.write([observation(2, "lock")])
            same = frequencies.of(connection, Kind.OBSERVATION, '"lock"', 1)
            after = frequencies.of(connection, Kind.OBSERVATION, '"lock"', 2)
    assert (count, same, after) == (1, 1, 2)
