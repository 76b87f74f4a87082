"""Meaning beside words: what it finds, where filters hold, and that full text never depends on it.

The model of these tests knows words alone; "billed" means "charged" to it, "customers" "users".
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import pytest
from click.testing import CliRunner, Result
from fake_semantic import DIMENSION, FailingIndex, WordEmbedder, indexed, semantic_over, settle
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pages import every_page, get, refs_of, rows_of
from profiles import FEWER
from samples import DAY, HOUR, NOW, RECORDS, fill, numbered
from workers import Worker, wait_until

from memsvc.adapters.indexes.exact import ExactIndex
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.answers.budget import fit
from memsvc.answers.page import Page
from memsvc.answers.text import write_matches
from memsvc.application.semantic.indexer import Factories
from memsvc.application.semantic.worker import SemanticWorker
from memsvc.application.services import SWITCHED_OFF, Services
from memsvc.configuration.bootstrap import build_semantic, build_store
from memsvc.configuration.settings import load_settings
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedder, SemanticSearch
from memsvc.core.query import Query
from memsvc.core.records import Kind, Observation, Prompt, Record, Ref, Summary
from memsvc.core.semantic.cosines import rank_all
from memsvc.core.tokens import count_tokens
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.cli import operations as commands
from memsvc.entrypoints.http.app import create_app
from memsvc.entrypoints.worker_process import await_worker_index

CHARGED: tuple[Record, ...] = (
    Observation(
        title="charged alpha",
        type="bugfix",
        concepts=("gotcha",),
        files_read=("src/pay/a.py",),
        project="shop",
        created_at_epoch=NOW - HOUR,
    ),
    Observation(
        title="charged beta",
        type="decision",
        concepts=("pattern",),
        files_modified=("lib/b.py",),
        project="api",
        created_at_epoch=NOW - 100 * DAY,
    ),
    Summary(
        request="charged gamma",
        files_edited=("src/pay/c.py",),
        project="shop",
        created_at_epoch=NOW - 2 * HOUR,
    ),
    Prompt(prompt_text="charged delta", project="api", created_at_epoch=NOW - 200 * DAY),
    Observation(title="lexer grammar", type="bugfix", project="shop", created_at_epoch=NOW - HOUR),
    Prompt(prompt_text="write the guide", project="shop", created_at_epoch=NOW),
)
"""Records that mean "billed" without saying it, and two that do not."""


def client_over(store: SqliteStore, semantic: SemanticSearch | None) -> FlaskClient:
    missing = "" if semantic else SWITCHED_OFF
    return create_app(Services(store, lambda: NOW, semantic, missing)).test_client()


@pytest.fixture(scope="module")
def charged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """The routes over records that only meaning finds."""
    store = open_store(tmp_path_factory.mktemp("charged") / "memsvc.db")
    store.write(numbered(CHARGED))
    yield client_over(store, indexed(store))
    store.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at once."""
    monkeypatch.setattr("memsvc.application.semantic.indexer.RETRY_SECONDS", 0.02)
    monkeypatch.setattr("memsvc.application.semantic.worker.IDLE_SECONDS", 0.005)


# -- what is found --------------------------------------------------------------------------------

FOUND = {
    "/api/search": (["1", "S1"], ["2", "P1"]),
    "/api/search/observations": (["1"], ["2"]),
    "/api/search/sessions": (["S1"], []),
    "/api/search/prompts": ([], ["P1"]),
}


@pytest.mark.parametrize("path", FOUND)
def test_a_record_without_any_word_of_the_query_is_found(charged: FlaskClient, path: str) -> None:
    page = get(charged, path, query="billed")
    recent, older = FOUND[path]
    assert page["strategy"] == "hybrid"
    assert sorted(refs_of(page)) == sorted(recent + older)
    assert {row["ref"] for row in rows_of(page) if row.get("older")} == set(older)
    assert page["window"] == {"days": 90, "older_matches": len(older)}
    assert page["total"] == len(refs_of(page))


@pytest.mark.parametrize(
    ("path", "given_", "refs"),
    [
        ("by-type", {"type": "bugfix"}, ["1"]),
        ("by-type", {"type": "BUGFIX,decision"}, ["1", "2"]),
        ("by-concept", {"concept": "pattern"}, ["2"]),
        ("by-file", {"filePath": "src/pay"}, ["1", "S1"]),
        ("by-file", {"filePath": "b.py"}, ["2"]),
    ],
)
def test_within_what_a_filter_selects_meaning_ranks(
    charged: FlaskClient, path: str, given_: dict[str, str], refs: list[str]
) -> None:
    page = get(charged, f"/api/search/{path}", query="billed", **given_)
    assert page["strategy"] == "hybrid"
    assert sorted(refs_of(page)) == sorted(refs)
    assert "window" not in page


FILTERS = [
    ({"project": "shop"}, ["1", "S1"]),
    ({"project": "API"}, ["2", "P1"]),
    ({"type": "bugfix"}, ["1"]),
    ({"concepts": "gotcha,pattern"}, ["1", "2"]),
    ({"files": "src/pay"}, ["1", "S1"]),
    ({"files": "*.py", "project": "shop"}, ["1", "S1"]),
    ({"days": "30"}, ["1", "S1"]),
    ({"days": "150"}, ["1", "2", "S1"]),
    ({"dateStart": "150d", "dateEnd": "50d"}, ["2"]),
    ({"query": "billed project:api"}, ["2", "P1"]),
    ({"query": "billed type:decision file:lib"}, ["2"]),
]


@pytest.mark.parametrize("exact", [True, False], ids=["compared", "by the index"])
@pytest.mark.parametrize(("given_", "refs"), FILTERS)
def test_filters_hold_for_what_is_found_by_meaning(
    charged: FlaskClient,
    monkeypatch: pytest.MonkeyPatch,
    given_: dict[str, str],
    refs: list[str],
    exact: bool,
) -> None:
    monkeypatch.setattr(
        "memsvc.application.semantic.neighbours.MAX_COMPARED", 1_000 if exact else -1
    )
    page = get(charged, "/api/search", **{"query": "billed", **given_})
    assert sorted(refs_of(page)) == sorted(refs)
    assert page["total"] == len(refs)


def test_recent_context_with_a_query_finds_by_meaning(charged: FlaskClient) -> None:
    page = get(charged, "/api/context/recent", query="billed")
    assert (refs_of(page), page["strategy"]) == (["1", "2"], "temporal")
    page = get(charged, "/api/context/recent", query="billed", project="api")
    assert refs_of(page) == ["2"]


def test_a_timeline_turns_around_the_record_that_is_meant(charged: FlaskClient) -> None:
    page = get(charged, "/api/timeline/by-query", query="billed alpha")
    assert page["anchor"]["ref"] == "1"
    choices = get(charged, "/api/timeline/by-query", query="billed", mode="interactive")
    assert sorted(refs_of(choices)) == ["1", "2", "P1", "S1"]
    assert choices["strategy"] == "hybrid"


@pytest.mark.parametrize(
    ("query", "refs"),
    [
        ('"billed"', []),
        ('"charged alpha"', ["1"]),
        ("billed -alpha", []),
        ("charged -alpha", ["2", "P1", "S1"]),
        ("charged -type:bugfix", ["2", "P1", "S1"]),
    ],
)
def test_what_must_or_must_not_stand_as_such_holds(
    charged: FlaskClient, query: str, refs: list[str]
) -> None:
    page = get(charged, "/api/search", query=query, days="all")
    assert sorted(refs_of(page)) == refs
    assert page["total"] == len(refs)


@pytest.mark.parametrize("query", ["!!!", "type:bugfix", "-charged", "\0"])
def test_a_query_without_words_is_not_for_meaning(charged: FlaskClient, query: str) -> None:
    assert get(charged, "/api/search", query=query)["strategy"] != "hybrid"


@pytest.mark.parametrize("order", ["date_desc", "date_asc"])
def test_an_order_of_time_is_for_words_alone(charged: FlaskClient, order: str) -> None:
    page = get(charged, "/api/search", query="billed", orderBy=order)
    assert (refs_of(page), page["total"]) == ([], 0)


def test_records_that_say_it_come_before_those_that_mean_it(semantic_client: FlaskClient) -> None:
    page = get(semantic_client, "/api/search/observations", query="double charge", days="all")
    assert set(refs_of(page)[:2]) == {"1", "17"}
    assert page["strategy"] == "hybrid"


def test_an_unknown_word_that_means_nothing_is_answered_with_the_nearest_known(
    semantic_client: FlaskClient,
) -> None:
    page = get(semantic_client, "/api/search/observations", query="ledgr", days="all")
    assert page["results"] == []
    assert "ledger" in page["did_you_mean"]


QUERIES = st.lists(
    st.sampled_from(
        ["billed", "charged", "payment", "users", "customers", "retry", "ledger", "guide", "worker"]
    ),
    min_size=1,
    max_size=4,
    unique=True,
).map(" ".join)


@given(query=QUERIES, days=st.sampled_from(["all", "30", "90", ""]))
def test_both_parts_and_recency_add_up_to_the_score(
    semantic_client: FlaskClient, query: str, days: str
) -> None:
    given_ = {"query": query, "explain": "1", "limit": 100, **({"days": days} if days else {})}
    page = get(semantic_client, "/api/search", **given_)
    scores = [row.get("score", 0.0) for row in page["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for row in page["results"]:
        if "explain" in row:
            parts = [row["explain"][name] for name in ("lexical", "semantic", "recency")]
            assert sum(parts) == pytest.approx(row["score"], abs=1e-9)
            assert min(parts) >= -1e-4


def test_a_hit_is_explained_by_words_and_by_meaning(semantic_client: FlaskClient) -> None:
    page = get(semantic_client, "/api/search/observations", query="double charge", explain=1)
    parts = page["results"][0]["explain"]
    assert parts["lexical"] > 0 < parts["semantic"]
    assert f"semantic {parts['semantic']}" in parts["line"]


def test_a_hit_by_meaning_alone_says_so(charged: FlaskClient) -> None:
    row = get(charged, "/api/search/observations", query="billed", explain=1)["results"][0]
    assert row["explain"]["lexical"] == pytest.approx(0, abs=1e-9)
    assert row["explain"]["terms"] == {}
    assert row["explain"]["line"].startswith("no words | ")


# -- pages ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """More records than are ranked as candidates: some say it, some mean it, some neither."""
    store = open_store(tmp_path_factory.mktemp("crowd") / "memsvc.db")
    store.write(numbered(_crowd()))
    yield client_over(store, indexed(store))
    store.close()


def _crowd() -> Iterator[Record]:
    for number in range(260):
        said = ("billed", "charged", "billed charged", "parser")[number % 4]
        text = f"{said} {('users', 'customers', 'ledger')[number % 3]} n{number % 50}"
        when = NOW - number % 70 * 3 * DAY - number % 7 * HOUR
        place: dict[str, Any] = {"created_at_epoch": when, "project": ("shop", "api")[number % 2]}
        yield Observation(title=text, type=("bugfix", "decision")[number % 5 > 2], **place)
        if number % 4 == 1:
            yield Prompt(prompt_text=f"why {text}", **place)
            yield Summary(request=text, files_read=(f"src/{number % 3}.py",), **place)


CROWD_QUERIES = st.sampled_from(
    ["billed", "customers", "billed users", "ledger billed -n3", '"charged users"', "parser", "n7"]
)
CROWD_FILTERS = st.sampled_from(
    [{}, {"project": "shop"}, {"type": "bugfix"}, {"days": "all"}, {"days": "60"}, {"files": "src"}]
)


@FEWER
@given(query=CROWD_QUERIES, filters=CROWD_FILTERS, limit=st.integers(7, 100))
def test_pages_of_any_size_give_the_same_sequence_and_the_total(
    crowd: FlaskClient, query: str, filters: dict[str, str], limit: int
) -> None:
    given_ = {"query": query, **filters}
    whole = every_page(crowd, "/api/search", **given_, limit=100)
    pages = every_page(crowd, "/api/search", **given_, limit=limit)
    rows = [row for page in pages for row in rows_of(page)]
    refs = [row["ref"] for row in rows]
    assert refs == [ref for page in whole for ref in refs_of(page)]
    assert len(refs) == len(set(refs))
    assert {page["total"] for page in pages} == {len(refs)}
    assert {page["strategy"] for page in pages} == {"hybrid"}


@FEWER
@given(query=CROWD_QUERIES, limit=st.integers(20, 100))
def test_older_matches_are_those_marked_over_all_pages(
    crowd: FlaskClient, query: str, limit: int
) -> None:
    pages = every_page(crowd, "/api/search/observations", query=query, limit=limit)
    older = [row for page in pages for row in rows_of(page) if row.get("older")]
    assert {page["window"]["older_matches"] for page in pages} == {len(older)}


@FEWER
@given(query=CROWD_QUERIES, filters=CROWD_FILTERS)
def test_scores_never_rise_over_all_pages(
    crowd: FlaskClient, query: str, filters: dict[str, str]
) -> None:
    pages = every_page(crowd, "/api/search", query=query, limit=50, **filters)
    scores = [row.get("score", 0.0) for page in pages for row in rows_of(page)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_every_full_text_match_is_in_the_hybrid_answer(crowd: FlaskClient) -> None:
    given_ = {"query": "billed users", "limit": 100}
    matches = every_page(crowd, "/api/search", **given_, orderBy="date_desc")
    hybrid = every_page(crowd, "/api/search", **given_, days="all")
    assert {r for p in matches for r in refs_of(p)} <= {r for p in hybrid for r in refs_of(p)}


def test_a_recent_record_is_not_crowded_out_by_older_ones_that_are_nearer(
    own_store: SqliteStore,
) -> None:
    old = [Observation(title=f"charged n{n}", created_at_epoch=NOW - 200 * DAY) for n in range(130)]
    recent = Observation(title="charged users ledger", created_at_epoch=NOW - DAY)
    own_store.write(numbered([*old, recent]))
    client = client_over(own_store, indexed(own_store))
    pages = every_page(client, "/api/search/observations", query="billed", limit=100)
    assert "131" in [ref for page in pages for ref in refs_of(page)]
    assert {page["total"] for page in pages} == {101}
    assert pages[0]["window"]["older_matches"] == 100


class Covering(SqliteStore):
    """A store that says how much of a query its best match holds, and of which it was asked."""

    share = 0.0

    def coverage(self, query: Query, ref: Ref) -> float:
        self.asked = ref
        return self.share


def test_full_text_weighs_more_if_its_best_match_holds_all_words(own_store: SqliteStore) -> None:
    titles = ["charged", "billed users", "billed", "payment billed ledger cache"]
    own_store.write(numbered(Observation(title=title, created_at_epoch=NOW) for title in titles))
    store = Covering(own_store.connections)
    client = client_over(store, indexed(store))
    lexical = []
    for share in (0.0, 0.5, 1.0):
        store.share = share
        row = get(client, "/api/search/observations", query="billed users", explain=1)["results"][0]
        assert (row["ref"], store.asked) == ("2", Ref(Kind.OBSERVATION, 2))
        lexical.append(row["explain"]["lexical"])
    assert lexical == sorted(set(lexical))


def test_of_two_equal_records_the_one_in_good_company_leads(own_store: SqliteStore) -> None:
    """The newer one would lead; the older shares its work session with the best match."""
    found = [("lexer notes", "s1"), ("lexer notes", "s2"), ("lexer grammar rule", "s1")]
    own_store.write(
        numbered(
            Observation(title=title, project="shop", session_id=session, created_at_epoch=NOW - age)
            for age, (title, session) in zip((3 * DAY, 2 * DAY, 3 * DAY), found, strict=True)
        )
    )
    client = client_over(own_store, indexed(own_store))
    page = get(client, "/api/search/observations", query="lexer grammar rule")
    assert refs_of(page) == ["3", "1", "2"]


# -- the semantic route ---------------------------------------------------------------------------


def test_similarity_is_one_over_one_plus_the_distance(charged: FlaskClient) -> None:
    page = get(charged, "/api/search/semantic", query="billed delta lexer", limit=100)
    first = page["results"][0]
    assert page["strategy"] == "semantic"
    assert first["ref"] == "P1"
    model = WordEmbedder()
    sought = model.embed("billed delta lexer")
    expected = {
        text: 1 / (1 + float(numpy.linalg.norm(sought - model.embed(text))))
        for text in ("lexer grammar", "charged delta")
    }
    told = {row["title"]: row["similarity"] for row in page["results"]}
    assert {text: told[text] for text in expected} == pytest.approx(expected, abs=1e-3)
    assert list(told.values()) == sorted(told.values(), reverse=True)


def test_the_nearest_of_all_kinds_come_up_to_the_limit_and_nothing_that_is_not_near(
    charged: FlaskClient,
) -> None:
    found = refs_of(get(charged, "/api/search/semantic", query="billed", limit=100))
    assert sorted(found) == ["1", "2", "P1", "S1"]
    assert refs_of(get(charged, "/api/search/semantic", query="billed", limit=3)) == found[:3]


@pytest.mark.parametrize("path", ["/api/search", "/api/search/semantic"])
def test_what_is_near_to_nothing_finds_nothing_by_meaning(charged: FlaskClient, path: str) -> None:
    page = get(charged, path, query="wombat burrow")
    assert (page["results"] if path.endswith("semantic") else refs_of(page)) == []
    if path.endswith("semantic"):
        assert "similar enough" in page["notice"]


class Noisy(ExactIndex):
    """An index in which every record is a little similar to everything."""

    def nearest(self, *asked: Any) -> list[tuple[int, float]]:
        return [(id, 0.45) for id, _ in super().nearest(*asked)]


@pytest.mark.parametrize("path", ["/api/search/observations", "/api/search/semantic"])
def test_a_query_that_the_model_knows_no_word_of_finds_only_what_is_very_similar(
    own_store: SqliteStore, path: str
) -> None:
    own_store.write(numbered(CHARGED))
    semantic = semantic_over(own_store, index=Noisy(DIMENSION))
    settle(semantic)
    client = client_over(own_store, semantic)
    assert refs_of(get(client, path, query="wombat burrow"))
    assert refs_of(get(client, path, query="what is w0mbat b9rrow")) == []


@pytest.mark.parametrize(("days", "refs"), [(1, ["1", "S1"]), (150, ["1", "2", "S1"])])
def test_days_back_bound_the_nearest(charged: FlaskClient, days: int, refs: list[str]) -> None:
    page = get(charged, "/api/search/semantic", query="billed", days_back=days, limit=len(refs))
    assert sorted(refs_of(page)) == refs


def text_of(client: FlaskClient, path: str, **given_: object) -> str:
    response = client.get(path, query_string=given_, headers={"Accept": "text/markdown"})
    assert response.status_code == 200
    return response.get_data(as_text=True)


def test_the_nearest_as_text_are_a_numbered_list_with_match_percent_and_day(
    charged: FlaskClient, zone: Callable[[str], None]
) -> None:
    zone("UTC")
    path, asked = "/api/search/semantic", {"query": "billed delta", "limit": 4}
    page = get(charged, path, **asked)
    header, *rows, closing = text_of(charged, path, **asked).splitlines()
    assert header.startswith("3 of 3 · semantic · ")
    assert closing == f"Read: memsvc read {','.join(refs_of(page)[:3])}"
    assert rows[0] == "1. 100% 2026-04-22 P1 prompt api: charged delta (whole)"
    percents = [f"{row['similarity']:.0%}" for row in page["results"]]
    assert [row.split()[:2] for row in rows] == [
        [f"{number}.", percent] for number, percent in enumerate(percents, 1)
    ]


def test_the_nearest_in_full_are_whole_records_as_everywhere(charged: FlaskClient) -> None:
    text = text_of(charged, "/api/search/semantic", query="billed alpha", format="full", limit=1)
    assert "\n### #1 bugfix " in text
    assert "\n- src/pay/a.py\n" in text
    assert "\nsimilarity: " in text


def test_no_title_breaks_its_row_of_the_list(own_store: SqliteStore) -> None:
    title = "| billed \x1b\t\xa0 2. 99% x"
    own_store.write(numbered([Observation(title=title, created_at_epoch=NOW)]))
    text = text_of(client_over(own_store, indexed(own_store)), "/api/search/semantic", query="x")
    (row,) = text.splitlines()[1:-1]
    assert re.search(r" #1 discovery \| billed � 2\. 99% x \(whole\)$", row)


@given(budget=st.integers(100, 300), form=st.sampled_from(["index", "full"]))
def test_the_list_keeps_to_a_budget_down_to_the_ref_alone(budget: int, form: str) -> None:
    row = {"ref": "7", "kind": "observation", "created_at_epoch": NOW, "title": "字" * 200}
    rows = tuple({**row, "similarity": 0.5, "read_tokens": 40, "id": id} for id in range(9))
    page = Page(echo={"query": "billed"}, rows=rows, total=9, format=form, strategy="semantic")
    text = fit(page, budget, write_matches)
    assert count_tokens(text) <= budget
    assert re.search(r"^(1\.|###) .*#7 ", text, re.M)


def test_while_meaning_is_not_there_the_semantic_route_answers_from_full_text_and_says_so(
    broken: tuple[FlaskClient, FlaskClient, str],
) -> None:
    degraded, plain, sentence = broken
    asked = {"query": "payment retry type:bugfix", "limit": 3}
    page = get(degraded, "/api/search/semantic", **asked)
    assert (page["strategy"], page["degraded"]) == ("fulltext", sentence)
    expected = get(plain, "/api/search", **{**asked, "query": "payment retry"}, days="all")
    assert refs_of(page) == refs_of(expected) != []
    text = text_of(degraded, "/api/search/semantic", **asked)
    assert text.startswith(f"{page['count']} of {page['count']} · fulltext · ")
    assert f"degraded: {sentence}" in text


# -- when it does not work ------------------------------------------------------------------------

ASKED = [
    ("/api/search", {"query": "payment retry"}),
    ("/api/search/observations", {"query": "payment", "days": "all", "explain": "1"}),
    ("/api/search/sessions", {"query": "checkout"}),
    ("/api/search/prompts", {"query": "charged"}),
    ("/api/search/by-type", {"type": "bugfix", "query": "timeout"}),
    ("/api/search/by-concept", {"concept": "gotcha", "query": "charge"}),
    ("/api/search/by-file", {"filePath": "src/payments", "query": "retry"}),
    ("/api/context/recent", {"query": "payment"}),
    ("/api/timeline/by-query", {"query": "payment", "mode": "interactive"}),
]


def _loading(store: SqliteStore) -> SemanticSearch:
    fill(store)
    return semantic_over(store)


def _behind(store: SqliteStore) -> SemanticSearch:
    """An open index, and nothing in it yet."""
    semantic = semantic_over(store)
    semantic.step()
    fill(store)
    return semantic


def _failing(store: SqliteStore) -> SemanticSearch:
    fill(store)
    semantic = semantic_over(store, index=FailingIndex(1_000))
    settle(semantic)
    return semantic


def _off(store: SqliteStore) -> None:
    """Nothing at all: the user does not want it."""
    fill(store)


def test_no_question_is_embedded_while_the_index_is_not_asked(own_store: SqliteStore) -> None:
    embedder = WordEmbedder()
    semantic = semantic_over(own_store, embedder)
    semantic.step()  # the index is open, and all records still wait
    fill(own_store)
    page = get(client_over(own_store, semantic), "/api/search", query="wombat burrow")
    semantic.stop()  # whatever was begun is done by now
    assert page["degraded"].startswith("Still indexing")
    assert "wombat burrow" not in embedder.texts


BROKEN = [
    (_loading, "The semantic index is loading; try again in a moment."),
    (_behind, f"Still indexing: {len(RECORDS)} records are pending."),
    (_failing, "The index is not well; let it rest."),
    (_off, SWITCHED_OFF),
]


@pytest.fixture(params=BROKEN, ids=lambda broken: broken[0].__name__[1:])
def broken(
    request: pytest.FixtureRequest, own_store: SqliteStore
) -> tuple[FlaskClient, FlaskClient, str]:
    """The routes with a semantic search that does not work, those without any, and why."""
    build, sentence = request.param
    semantic = build(own_store)
    plain = create_app(Services(own_store, lambda: NOW)).test_client()
    return client_over(own_store, semantic), plain, sentence


def test_full_text_answers_the_same_and_says_what_it_lacks(
    broken: tuple[FlaskClient, FlaskClient, str],
) -> None:
    degraded, plain, sentence = broken
    for path, given_ in ASKED:
        for _ in range(2):
            page = get(degraded, path, **given_)
            assert page.pop("degraded") == sentence
            expected = get(plain, path, **given_)
            page.pop("tokens", None), expected.pop("tokens", None)
            assert page == expected


def test_text_says_what_the_answer_lacks_too(
    broken: tuple[FlaskClient, FlaskClient, str],
) -> None:
    degraded, _, sentence = broken
    text = degraded.get("/api/search?query=payment&render=text").get_data(as_text=True)
    assert sentence in text


def test_readiness_is_honest_and_the_worker_ready(
    broken: tuple[FlaskClient, FlaskClient, str],
) -> None:
    degraded, _, sentence = broken
    get(degraded, "/api/search", query="payment")
    told = get(degraded, "/api/readiness")
    assert told["ready"]
    assert (told["parts"]["semantic"]["ok"], told["parts"]["semantic"]["detail"]) == (
        False,
        sentence,
    )


def test_readiness_counts_what_waits_until_all_is_indexed(own_store: SqliteStore) -> None:
    fill(own_store)
    semantic = semantic_over(own_store)
    client = client_over(own_store, semantic)
    counts = [get(client, "/api/readiness")["parts"]["semantic"]["waiting"]]
    while semantic.step():
        counts.append(get(client, "/api/readiness")["parts"]["semantic"]["waiting"])
    assert counts[0] == len(RECORDS)
    assert counts == sorted(counts, reverse=True)
    told = get(client, "/api/readiness")["parts"]["semantic"]
    assert (told["ok"], told["detail"], told["waiting"]) == (True, "all records are indexed", 0)


def _told(number: int, title: str) -> Observation:
    """A record that says more than its lead, the older the higher its number."""
    return Observation(
        title=title, narrative=f"{'.' * 200} end{number}", created_at_epoch=NOW - number * HOUR
    )


def test_titles_are_found_by_meaning_while_the_rest_waits(own_store: SqliteStore) -> None:
    own_store.write(numbered(_told(n, "charged users") for n in range(20)))
    semantic = semantic_over(own_store)
    semantic.step()
    client = client_over(own_store, semantic)
    page = get(client, "/api/search/observations", query="billed", limit=20)
    assert (page["strategy"], len(refs_of(page))) == ("hybrid", 20)
    assert "degraded" not in page
    told = get(client, "/api/readiness")["parts"]["semantic"]
    assert (told["ok"], told["waiting"]) == (True, 20)
    assert told["detail"] == "20 records are indexed by title only so far."


def test_records_that_wait_are_not_pushed_behind_those_that_are_embedded(
    own_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older half waits; as full text alone has them, so they stay."""
    monkeypatch.setattr("memsvc.application.semantic.index_sync.MAX_LEADS", 10)
    said = ["ledger retry users", "ledger retry", "ledger", "parser"]
    own_store.write(numbered(_told(n, f"{said[n % 4]} n{n}") for n in range(20)))
    semantic = semantic_over(own_store)
    semantic.step()
    client, plain = client_over(own_store, semantic), client_over(own_store, None)
    asked = {"query": "ledger retry users", "days": "all", "limit": 20}
    waiting = {str(id) for id in semantic.unknown_among(Kind.OBSERVATION, range(1, 21))}
    assert waiting == {str(id) for id in range(11, 21)}
    page = get(client, "/api/search/observations", **asked)
    assert page["degraded"] == "10 records are not in the semantic index yet."
    best = {ref for ref in refs_of(page)[:5]}
    assert best == set(refs_of(get(plain, "/api/search/observations", **asked))[:5])
    assert best & waiting


def test_a_record_is_found_by_its_words_at_once_and_by_its_meaning_after_a_step(
    own_store: SqliteStore,
) -> None:
    fill(own_store)
    semantic = indexed(own_store)
    client = client_over(own_store, semantic)
    client.post("/api/observations", json={"title": "zebra charged twice", "id": "z"})
    said = get(client, "/api/search/observations", query="zebra")
    assert (said["count"], said["strategy"]) == (1, "hybrid")
    assert said["degraded"] == "1 record is not in the semantic index yet."
    new = said["results"][0]["ref"]
    assert new not in refs_of(get(client, "/api/search/observations", query="billed"))
    settle(semantic)
    assert new in refs_of(get(client, "/api/search/observations", query="billed"))
    assert "degraded" not in get(client, "/api/search/observations", query="zebra")


def test_a_forgotten_record_is_not_found_by_meaning_even_before_the_index_knows(
    own_store: SqliteStore,
) -> None:
    own_store.write(numbered(CHARGED))
    semantic = indexed(own_store)
    client = client_over(own_store, semantic)
    assert client.delete("/api/observation/1").status_code == 200
    for _ in range(2):
        for path in ("/api/search/observations", "/api/search/semantic"):
            assert "1" not in refs_of(get(client, path, query="billed"))
        settle(semantic)


def test_an_index_that_fails_is_opened_again_without_a_restart(
    own_store: SqliteStore, hasty: None
) -> None:
    fill(own_store)
    index = FailingIndex(3)
    semantic = semantic_over(own_store, index=index)
    client = client_over(own_store, semantic)
    semantic.start()
    try:
        seen = _until_hybrid(client)
    finally:
        semantic.stop()
    assert "The index is not well; let it rest." in seen
    assert index.failures == 0


def _until_hybrid(client: FlaskClient) -> set[str]:
    """Search until meaning has its say; what the answers before lacked."""
    seen: set[str] = set()

    def answered() -> bool:
        page = get(client, "/api/search", query="payment")
        seen.add(page.get("degraded", ""))
        return bool(page["strategy"] == "hybrid")

    wait_until(answered)
    return seen


@dataclass
class Absent:
    """Parts that are not there at first: neither the model nor, after it, the index."""

    model_failures: int
    index_failures: int
    asked: list[str] = field(default_factory=list)

    def load(self) -> Embedder:
        self.asked.append("model")
        if self.asked.count("model") <= self.model_failures:
            raise SemanticUnavailable("The model is not there; install it.")
        return WordEmbedder()

    def open(self, embedder: Embedder, name: str) -> ExactIndex:
        self.asked.append("index")
        if self.asked.count("index") <= self.index_failures:
            raise OSError("no space left")
        return ExactIndex(DIMENSION)


def test_a_model_and_an_index_that_come_later_are_taken_up_without_a_restart(
    own_store: SqliteStore, hasty: None
) -> None:
    fill(own_store)
    absent = Absent(2, 2)
    semantic = SemanticWorker(
        own_store, SqliteVectors(own_store.connections), Factories(absent.load, absent.open)
    )
    client = client_over(own_store, semantic)
    semantic.start()
    try:
        seen = _until_hybrid(client)
    finally:
        semantic.stop()
    assert absent.asked == ["model"] * 3 + ["index"] * 3
    assert any("install it" in each or "no space left" in each for each in seen)


class Unreadable(ExactIndex):
    """An index whose files cannot be read until it is cleared."""

    cleared = False

    def position(self) -> int:
        if not self.cleared:
            raise SemanticUnavailable("The files are damaged.")
        return super().position()

    def clear(self) -> None:
        super().clear()
        self.cleared = True


def test_an_index_that_cannot_be_read_is_made_anew(own_store: SqliteStore) -> None:
    fill(own_store)
    semantic = semantic_over(own_store, index=Unreadable(DIMENSION))
    settle(semantic)
    assert get(client_over(own_store, semantic), "/api/readiness")["parts"]["semantic"]["ok"]


class Panic(BaseException):
    """What Rust throws when its code gives up: no Exception."""


class Panicking(Unreadable):
    """An index in native code that gives up until it is cleared, and once in a search."""

    searched = False

    def position(self) -> int:
        if not self.cleared:
            raise Panic("called unwrap on an Err value")
        return super().position()

    def nearest(self, *asked: Any) -> list[tuple[int, float]]:
        if not self.searched:
            self.searched = True
            raise Panic("called unwrap on an Err value")
        return super().nearest(*asked)


def test_a_panic_in_native_code_ends_neither_the_indexing_nor_an_answer(
    own_store: SqliteStore, hasty: None
) -> None:
    fill(own_store)
    index = Panicking(DIMENSION)
    semantic = semantic_over(own_store, index=index)
    client = client_over(own_store, semantic)
    semantic.start()
    try:
        seen = _until_hybrid(client)
    finally:
        semantic.stop()
    assert index.searched
    assert "The semantic index cannot be used (called unwrap on an Err value)." in seen


def test_a_rebuild_empties_the_index_and_fills_it_without_embedding_again(
    own_store: SqliteStore,
) -> None:
    fill(own_store)
    model, index = WordEmbedder(), ExactIndex(DIMENSION)
    semantic = semantic_over(own_store, model, index)
    settle(semantic)
    texts, vectors = len(model.texts), index.count()
    before = semantic.nearest(Kind.OBSERVATION, "payment", 20, Filter())
    texts = len(model.texts)
    semantic.ask_rebuild()
    settle(semantic)
    assert (len(model.texts), index.count()) == (texts, vectors)
    assert semantic.nearest(Kind.OBSERVATION, "payment", 20, Filter()) == before
    assert semantic.report()["rebuilds"] == 1


class Watched(ExactIndex):
    """An index that notes what semantic search says of itself while it is emptied."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.semantic: SemanticWorker | None = None
        self.told: list[dict[str, Any]] = []

    def clear(self) -> None:
        super().clear()
        if self.semantic:
            self.told.append(self.semantic.report())


def test_nobody_takes_an_emptied_index_for_a_full_one(own_store: SqliteStore) -> None:
    fill(own_store)
    index = Watched()
    semantic = semantic_over(own_store, index=index)
    settle(semantic)
    index.semantic = semantic
    semantic.ask_rebuild()
    settle(semantic)
    (told,) = index.told
    assert (told["ok"], told["waiting"], told["rebuilds"]) == (False, len(RECORDS), 0)


def test_cosines_lie_between_minus_1_and_1_and_ties_fall_by_id() -> None:
    vector = WordEmbedder().embed("payment retry ledger")
    rounded = numpy.stack([vector, vector]).astype(numpy.float16).astype(numpy.float32)
    found = rank_all({id: rounded for id in (5, 3, 9, 1)}, vector)
    assert [id for id, _ in found] == [1, 3, 5, 9]
    assert all(-1 <= cosine <= 1 for _, cosine in found)
    assert rank_all({}, vector) == []


# -- the command line -----------------------------------------------------------------------------

ITEMS: list[dict[str, Any]] = [
    {"id": number, "title": title, "created_at_epoch": NOW - number * HOUR}
    for number, title in enumerate(
        (
            "Fixed the double charge at checkout",
            "Users cannot log in after the token expires",
            "The cache is read before the file",
            "Split the parser in two",
            "Moved the guide to the docs folder",
        )
    )
]


def run(home: Path, semantic: str, *words: str, port: str = "1") -> Result:
    environment = {"MEMSVC_HOME": str(home), "MEMSVC_SEMANTIC": semantic, "MEMSVC_PORT": port}
    return CliRunner().invoke(cli.memsvc, words, env=environment)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder with a store of a few records that nothing has embedded yet."""
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, ITEMS)))
    result = run(tmp_path / "home", "off", "import", "jsonl", str(tmp_path / "items.jsonl"))
    assert result.exit_code == 0, result.output
    return tmp_path / "home"


def ranking(home: Path, semantic: str) -> Sequence[tuple[int, float]]:
    """What is nearest to a question, by the index as the command left it."""
    given_ = {"MEMSVC_HOME": str(home), "MEMSVC_SEMANTIC": semantic}
    configured = load_settings(given_)
    store = build_store(configured)
    search = build_semantic(configured, store)
    assert search
    try:
        while search.step():
            pass
        return search.nearest(Kind.OBSERVATION, "customers were billed twice", 5, Filter())
    finally:
        search.stop()
        store.close()


@pytest.mark.parametrize("semantic", ["exact", "sqlite-vec"])
def test_index_without_a_worker_embeds_here_and_a_rebuild_ranks_the_same(
    filled: Path, semantic: str
) -> None:
    first = run(filled, semantic, "index")
    assert (first.exit_code, first.stdout) == (0, "All records are in the semantic index.\n")
    before = ranking(filled, semantic)
    assert before[0][0] == 1
    assert len(before) == len(ITEMS)
    again = run(filled, semantic, "index", "--rebuild")
    assert again.exit_code == 0, again.output
    assert ranking(filled, semantic) == before


def test_index_with_nothing_to_do_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "exact", "index")
    assert (result.exit_code, result.stdout) == (0, "All records are in the semantic index.\n")


@pytest.mark.parametrize("flags", [[], ["--rebuild"]])
def test_index_of_what_is_switched_off_is_an_error(tmp_path: Path, flags: list[str]) -> None:
    result = run(tmp_path, "off", "index", *flags)
    assert result.exit_code == commands.FAILED
    assert (
        result.stderr
        == "memsvc: Semantic search is switched off; unset MEMSVC_SEMANTIC to use it.\n"
    )


def test_index_with_a_worker_waits_for_it_and_a_rebuild_ranks_the_same(
    live_semantic: Worker,
) -> None:
    worker = live_semantic
    assert worker.post("/api/observations", ITEMS).ok
    result = run(worker.home, "chroma", "index", port=worker.port)
    assert result.exit_code == 0, result.output
    before = _semantic_rows(worker)
    assert before[0][0] == "1"
    result = run(worker.home, "chroma", "index", "--rebuild", port=worker.port)
    assert result.exit_code == 0, result.output
    assert _semantic_rows(worker) == before
    assert worker.get("/api/readiness").json()["parts"]["semantic"]["rebuilds"] == 1


@dataclass
class Answer:
    """What a worker says of its semantic part."""

    semantic: dict[str, Any]

    def json(self) -> Any:
        return {"parts": {"semantic": self.semantic}}


def test_a_worker_that_gets_nowhere_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Answer({"ok": False, "waiting": 7, "detail": "The model is not there; install it."})
    monkeypatch.setattr("memsvc.entrypoints.worker_process.ask_worker", lambda *_: stuck)
    monkeypatch.setattr("memsvc.entrypoints.worker_process.MAX_STALL", 0.1)
    waiting = await_worker_index(load_settings({"MEMSVC_HOME": str(tmp_path)}))
    assert next(waiting) == 7
    with pytest.raises(SemanticUnavailable, match="install it"):
        next(waiting)


def _semantic_rows(worker: Worker) -> list[tuple[str, float]]:
    rows = worker.get("/api/search/semantic", query="customers were billed twice").json()
    return [(row["ref"], row["similarity"]) for row in rows["results"]]
