"""What every store promises of full text: which records match. How well is its own affair."""

from typing import Any

import pytest
from adapters import Compare
from histories import Action, filters, histories, play
from hypothesis import given
from hypothesis import strategies as st
from profiles import HALF
from samples import DAY, NOW
from strategies import WORDS

from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.naming.commits import Commit
from memsvc.core.ports.store import Hit, Store
from memsvc.core.query import Query, parse
from memsvc.core.ranking.wordings import united
from memsvc.core.records import Kind, Observation, Prompt, Ref, Summary

OBSERVATION = Kind.OBSERVATION


def titled(number: int, title: str, **given: Any) -> Observation:
    made = {"source": "t", "source_id": str(number), "created_at_epoch": NOW + number}
    return Observation(title=title, **made | given)


HASH = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"

MEMORIES = [
    titled(
        1,
        "The parser failed at once",
        narrative="A retry of the whole import helped in the deployment of payments.",
    ),
    titled(
        2,
        "Payment: retry after a timeout",
        facts=("The import fails.",),
        type="bugfix",
        project="Api",
    ),
    titled(3, "getUserById in SessionStoreV2", files_read=("src/worker-service.ts",)),
    titled(4, "修复登录问题", narrative="登录令牌过期。", concepts=("Gotcha",)),
    titled(5, "令牌 登录 Redis连接", created_at_epoch=NOW - DAY),
    titled(6, "A naïve café menu in C++ and .NET", subtitle="for snake_case_names"),
    titled(7, "Reverted in abc1234", narrative="It broke f00dcafe99.", source_id=HASH),
    titled(8, "Cherry-picked", source_id="a1b2c3d0", source="git:other"),
    titled(9, "Released v1.20a9", narrative="Closes #1025.", author="Zoë van Houten"),
    Summary(request="Fail early", notes="The parser", source="t", source_id="1"),
    Prompt(prompt_text="why does the parser fail?", source="t", source_id="1"),
]


@pytest.fixture
def filled(store: Store) -> Store:
    store.write(MEMORIES)
    return store


def found(store: Store, text: str, selection: Filter = EVERYTHING) -> set[int]:
    return {hit.ref.id for hit in store.rank(OBSERVATION, parse(text), selection, 100)}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("parser timeout", {1, 2}),
        ("PARSER", {1}),
        *((form, {1, 2}) for form in ("fail", "fails", "failing", "failed", "FAILED")),
        ("retries", {1, 2}),
        ("the parser", {1}),
        ("the", {1, 2}),
        ("nothing", set()),
        ('"retry of the whole"', {1}),
        ('"whole retry"', set()),
        ('"import failed" parser', {2}),
        ("title:retry", {2}),
        ("title:retry parser", {2}),
        ("pars* time*", {1, 2}),
        ("title:time*", {2}),
        ("getuserby*", {3}),
        ("wa* pay*", {1, 2}),
        ("deploy*", {1}),
        ("deploym*", {1}),
        ("import -timeout", {1}),
        ('import -"retry of"', {2}),
        ("import -fail*", set()),
        ("-import", {3, 4, 5, 6, 7, 8, 9}),
        ("-title:retry", {1, 3, 4, 5, 6, 7, 8, 9}),
        ("-type:BUGFIX import", {1}),
        ("-file:worker-service.ts", {1, 2, 4, 5, 6, 7, 8, 9}),
        ("getUserById", {3}),
        ("user", {3}),
        ("session_store", {3}),
        ("sessionstore", {3}),
        ('"user by id"', {3}),
        ("worker-service.ts", {3}),
        ("service", {3}),
        ("naive cafe", {6}),
        ("NAÏVE", {6}),
        ("c++", {6}),
        (".net", {6}),
        ("snakeCase", {6}),
        ("登录", {4, 5}),
        ("录", {4, 5}),
        ("登录令牌", {4, 5}),
        ('"登录令牌"', {4}),
        ('"登录"', {4, 5}),
        ('"令牌"', {4, 5}),
        ("-令牌", {1, 2, 3, 6, 7, 8, 9}),
        ("连接", {5}),
        ("redis", {5}),
        ("?!", set()),
        ("", set()),
        ("type:bugfix", set()),
        ("a1b2c3d", {7, 8}),
        ("A1B2C3D4E", {7}),
        (HASH, {7}),
        (f'"{HASH}"', {7}),
        (f"https://example.org/commit/{HASH}", {7}),
        ("a1b2c3d0" + "f" * 32, {8}),
        ("a1b2c3d -reverted", {8}),
        ('a1b2c3d "reverted in"', {7}),
        ('"a1b2c3d" "a1b2c3d0"', {8}),
        ("title:a1b2c3d", set()),
        ("a1b2c3", set()),
        ("abc1234", {7}),
        ("abc1234" + "0" * 33, {7}),
        ("f00dcafe", {7}),
        ("f00dcafe99", {7}),
        ("f00dcafe98 cafe99", set()),
        ("abc 1234 f 00 99", set()),
        ("1.20a9", {9}),
        ("v1.20a9", {9}),
        ('"1.20a9"', set()),
        ("#1025", {9}),
        ("gh-1025", {9}),
        ("houten", {9}),
        ("author:ZOE", {9}),
        ('author:"zoë Houten" parser', {9}),
        ("author:hout*", {9}),
        ("author:hout", set()),
        ("author:released", set()),
        ("parser timeout author:payment", set()),
        ("payment released -author:zoë", {1, 2}),
        ("title:houten", set()),
    ],
)
def test_a_query_matches_what_the_query_language_says(
    filled: Store, text: str, ids: set[int]
) -> None:
    assert found(filled, text) == ids
    assert filled.count_matches(OBSERVATION, parse(text), EVERYTHING) == len(ids)


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        (Filter((("project", ("api", "x")),)), {2}),
        (Filter((("type", ("BugFix",)),)), {2}),
        (Filter((("concept", ("gotcha",)),)), {4}),
        (Filter((("file", ("worker-service.ts", "*.py")),)), {3}),
        (Filter((("file", ("src",)), ("type", ("bugfix",)))), set()),
        (Filter(since=NOW), {1, 2, 3, 4, 6, 7, 8, 9}),
        (Filter(until=NOW), {5}),
        (Filter((("project", ("api",)),), until=NOW + 2), {2}),
    ],
)
@pytest.mark.parametrize("text", ["parser retry user 登录 café a1b2c3d v1.20a9", "-nothing"])
def test_a_query_matches_within_a_filter_only(
    filled: Store, selection: Filter, ids: set[int], text: str
) -> None:
    assert found(filled, text, selection) == ids
    assert filled.matches_among(OBSERVATION, parse(text), selection, range(20)) == ids


def test_several_wordings_match_what_any_of_them_matches(filled: Store) -> None:
    parts = ['"import failed"', "café -user", "title:retry parser", "nowhere"]
    alone = set().union(*(found(filled, part) for part in parts))
    whole = united([parse(part) for part in parts])
    assert alone == {2, 6}
    assert {hit.ref.id for hit in filled.rank(OBSERVATION, whole, EVERYTHING, 100)} == alone
    assert filled.count_matches(OBSERVATION, whole, EVERYTHING) == len(alone)
    assert filled.matches_among(OBSERVATION, whole, EVERYTHING, range(9)) == alone
    in_time = filled.matches_by_time(OBSERVATION, whole, EVERYTHING, newest_first=False, limit=9)
    assert [hit.ref.id for hit in in_time] == [2, 6]
    nothing = united([parse("nowhere"), parse("neither")])
    assert filled.rank(OBSERVATION, nothing, EVERYTHING, 100) == []


def test_every_kind_is_searched_by_itself(filled: Store) -> None:
    for kind, text in ((Kind.SESSION, "title:early"), (Kind.PROMPT, "title:parser")):
        assert [hit.ref for hit in filled.rank(kind, parse(text), EVERYTHING, 9)] == [Ref(kind, 1)]
        assert filled.count_matches(kind, parse("retry"), EVERYTHING) == 0


def test_a_record_that_holds_more_of_a_query_in_its_title_comes_first(store: Store) -> None:
    others = [titled(n, "Notes of the day", narrative="cache") for n in range(20)]
    store.write([*others, titled(90, "cache", narrative="lock"), titled(91, "cache lock")])
    hits = store.rank(OBSERVATION, parse("cache lock"), EVERYTHING, 100)
    assert [hit.ref.id for hit in hits][:2] == [22, 21]
    assert len({hit.relevance for hit in hits[:3]}) == 3
    assert [hit.ref.id for hit in hits[2:]] == list(range(20, 0, -1))


def test_the_commit_that_a_hash_names_comes_before_what_mentions_it(store: Store) -> None:
    mentions = [titled(n, f"a1b2c3d a1b2c3d {HASH}") for n in range(5)]
    store.write([*mentions, titled(-99, "Fix", source_id=HASH)])
    for text in ("a1b2c3d", HASH, f"why a1b2c3d mentions {HASH}"):
        hits = store.rank(OBSERVATION, parse(text), EVERYTHING, 100)
        assert [(hit.ref.id, hit.relevance, hit.named) for hit in hits][:1] == [(6, 1.0, True)]
        assert not any(hit.named for hit in hits[1:])
        assert store.coverage(parse(text), Ref(OBSERVATION, 6)) == 1
    assert store.matched_terms(OBSERVATION, [6], parse(HASH)) == {6: {HASH: ["source_id"]}}


@pytest.mark.parametrize(
    ("hash", "ids"),
    [("a1b2c3d", [8, 7]), ("a1b2c3d4", [7]), (HASH, [7]), ("a1b2c3d0" + "f" * 32, [8])],
)
def test_the_observations_of_a_commit_are_known_by_its_hash(
    filled: Store, hash: str, ids: list[int]
) -> None:
    filled.write([Prompt(prompt_text="a", source="t", source_id=HASH)])
    assert filled.commits(Commit(hash)) == [Ref(OBSERVATION, id) for id in ids]


def test_a_source_id_that_is_a_number_or_a_word_is_no_commit_unless_it_is_a_full_hash(
    store: Store,
) -> None:
    ids = ["1234567", "defaced", "1234567" * 5 + "12345", "a1b2c3d-x", "a1b2c3"]
    store.write([titled(0, "Fix", source_id=each) for each in ids])
    assert store.commits(Commit("1234567")) == [Ref(OBSERVATION, 3)]
    assert store.commits(Commit("1234567" + "8" * 33)) == store.commits(Commit("defaced")) == []
    assert store.commits(Commit("a1b2c3d")) == []


def test_matched_terms_name_the_fields_that_hold_a_word_or_phrase(filled: Store) -> None:
    query = parse('RETRY imports cache "after a timeout"')
    assert filled.matched_terms(OBSERVATION, [2], query)[2] == {
        "retry": ["title"],
        "imports": ["facts"],
        "after a timeout": ["title"],
    }
    found = filled.matched_terms(OBSERVATION, [1, 3], parse("service user cache"))
    assert found[3] == {"service": ["files"], "user": ["parts"]}
    assert filled.matched_terms(OBSERVATION, [1], parse("cache")) == {1: {}}


@pytest.mark.parametrize("query", ["serv* retr*", "serv* title:retr*"])
def test_matched_terms_name_the_fields_that_hold_a_prefix(filled: Store, query: str) -> None:
    terms = filled.matched_terms(OBSERVATION, [2, 3], parse(query))
    fields = {id: sorted(*found.values()) for id, found in terms.items()}
    assert fields == {2: ["title"], 3: ["files"]}


def test_coverage_is_the_share_of_the_words_that_a_record_holds(filled: Store) -> None:
    def covered(text: str) -> float:
        return filled.coverage(parse(text), Ref(OBSERVATION, 1))

    assert covered("parser import") == pytest.approx(1)
    assert 0 < covered("parser timeout café") < covered("parser timeout") < 1
    assert 0 < covered("parser nowhere") < 1
    assert covered("timeout") == covered("nowhere") == 0


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("parsr", ["parser"]),
        ("timoeut nowhere", ["timeout"]),
        ("parser retry", []),
        ("zzzzqqqq", []),
        ("-parsr", []),
        ("", []),
    ],
)
def test_words_that_occur_are_suggested_for_those_that_do_not(
    filled: Store, text: str, near: list[str]
) -> None:
    assert filled.suggest(OBSERVATION, parse(text)) == near


plain = st.sampled_from([*WORDS, "retries", "tokens", "user", "store", "录", "main", "the", "docs"])
items = st.one_of(
    plain,
    plain,
    plain.map("-{}".format),
    plain.map("title:{}".format),
    st.lists(plain, min_size=2, max_size=2).map('"{0[0]} {0[1]}"'.format),
    st.sampled_from(
        ["pay*", "time*", "-ch*", "title:ca*", "getUser*", "-type:bugfix", "-file:src"]
    ),
    st.sampled_from(["author:zoe", "-author:payment", "v1.2", "van"]),
    st.sampled_from(["-concept:payment,cache", "-project:api", "C++", "main.py"]),
)
queries = st.lists(items, min_size=1, max_size=4).map(" ".join).map(parse)
wordings = st.lists(queries.filter(lambda query: query.searchable), min_size=2, max_size=4)
asked = st.one_of(queries, wordings.map(united))


@HALF
@given(
    history=histories,
    query=asked,
    selection=filters,
    depth=st.integers(0, 3),
    newest_first=st.booleans(),
)
def test_the_same_records_match_in_every_store_however_one_asks(
    compared: Compare,
    history: list[Action],
    query: Query,
    selection: Filter,
    depth: int,
    newest_first: bool,
) -> None:
    with compared() as (opened, memory):
        for action in history:
            assert play(opened.store, action) == play(memory, action)
        for kind in Kind:
            by_time = memory.matches_by_time(
                kind, query, selection, newest_first=newest_first, limit=99
            )
            for store in (opened.store, memory):
                check_agreement(store, kind, query, selection, by_time, depth, newest_first)
                check_terms(store, memory, query, by_time)


def check_agreement(
    store: Store,
    kind: Kind,
    query: Query,
    selection: Filter,
    by_time: list[Hit],
    depth: int,
    newest_first: bool,
) -> None:
    """Every way to ask for matches finds these, each once."""
    times = {hit.ref: hit.created_at_epoch for hit in by_time}
    ids = [ref.id for ref in times]
    asked_for = kind, query, selection
    how = {"newest_first": newest_first, "limit": depth}
    assert store.matches_by_time(*asked_for, **how) == by_time[:depth]
    assert store.count_matches(*asked_for) == len(ids)
    assert store.matches_among(*asked_for, [*ids, 77]) == set(ids)
    assert store.matches_among(*asked_for, ids[:1]) == set(ids[:1])
    best = store.rank(*asked_for, depth)
    ranked = [hit.ref.id for hit in best]
    rest = [
        hit
        for offset in range(0, len(ids) + 1, 2)
        for hit in store.rest(*asked_for, without=ranked, limit=2, offset=offset)
    ]
    among = store.rank_among(kind, query, [*ids, 77])
    assert len(best) == min(depth, len(ids))
    for hits in (best + rest, among):
        assert sorted(hit.ref.id for hit in hits) == sorted(ids)
        assert {hit.ref: hit.created_at_epoch for hit in hits} == times
    for hits in (best, rest, among):
        falling = [hit.relevance for hit in hits]
        assert all(0 <= relevance <= 1 for relevance in falling)
        assert falling == sorted(falling, reverse=True)


def check_terms(store: Store, memory: Store, query: Query, hits: list[Hit]) -> None:
    for ref in (hit.ref for hit in hits):
        assert 0 <= store.coverage(query, ref) <= 1 + 1e-9
        if not any(term.prefix for term in (*query.words, *query.required)):
            of_it = ref.kind, [ref.id], query
            assert store.matched_terms(*of_it) == memory.matched_terms(*of_it)
