"""`max_tokens` bounds the whole answer, in every format, whatever is stored and asked."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from samples import DAY, NOW, numbered, services_over
from strategies import plain_queries, queries

from memsvc.adapters.sqlite.store import open_store
from memsvc.answers.budget import CLIPPED, clip, fit
from memsvc.answers.page import Page, with_own_cost
from memsvc.core.records import Observation, Prompt, Record, Summary
from memsvc.core.tokens import count_tokens
from memsvc.entrypoints.http.app import create_app

CJK = "登录令牌过期后用户会被登出。" * 80
LATIN = "the payment retry reads the ledger, the cache and the parser. " * 40


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """Records from a few words to 100 kB, in Latin and Chinese."""
    opened = open_store(tmp_path_factory.mktemp("heavy") / "memsvc.db")
    opened.write(numbered(_heavy()))
    yield create_app(services_over(opened)).test_client()
    opened.close()


def _heavy() -> Iterator[Record]:
    texts = ["payment retry", "cache guide " * 30, LATIN, CJK, f"{LATIN}{CJK}" * 12]
    for number in range(18):
        text = texts[number % len(texts)]
        place: dict[str, Any] = {
            "project": f"project {number % 3}",
            "session_id": f"work-{number % 4}",
            "created_at_epoch": NOW - number * 9 * DAY,
        }
        names = tuple(f"src/深い/{text[:20].strip()}/{part}.py" for part in range(number % 9 * 8))
        yield Observation(
            title=text[: 40 * (number % 7 + 1)],
            subtitle=text[:500],
            narrative=text,
            facts=(text[:3000],) * (number % 4),
            concepts=("gotcha", "登录" * 50),
            files_read=names,
            **place,
        )
        yield Summary(request=text[:200], learned=text, notes=text, files_edited=names, **place)
        yield Prompt(prompt_text=text, **place)


BUDGETS = st.one_of(st.integers(100, 400), st.integers(100, 20_000))
COMMON = {
    "max_tokens": BUDGETS,
    "format": st.sampled_from(["index", "full"]),
    "render": st.sampled_from(["json", "text"]),
    "limit": st.integers(1, 100),
    "explain": st.sampled_from(["0", "1"]),
}
SEARCHES = st.sampled_from(
    [
        ("/api/search", {}),
        ("/api/search/observations", {}),
        ("/api/search/sessions", {}),
        ("/api/search/prompts", {}),
        ("/api/search/by-type", {"type": "discovery"}),
        ("/api/search/by-type", {"type": "no-such-type-" * 40}),
        ("/api/search/by-concept", {"concept": "gotcha"}),
        ("/api/search/by-file", {"filePath": "src"}),
        ("/api/search/by-file", {"filePath": "*"}),
    ]
)
QUERIES = st.one_of(plain_queries, queries.filter(str.strip), st.just("payment 登录 " * 180))


@given(search=SEARCHES, query=QUERIES, common=st.fixed_dictionaries(COMMON))
def test_a_search_never_costs_more_than_its_budget(
    heavy: FlaskClient,
    search: tuple[str, dict[str, str]],
    query: str,
    common: dict[str, Any],
) -> None:
    path, own = search
    response = heavy.get(path, query_string={"query": query, **own, **common})
    assert response.status_code == 200
    assert count_tokens(response.get_data(as_text=True)) <= common["max_tokens"]


REFS = st.lists(
    st.builds(
        lambda letter, number: f"{letter}{number}",
        st.sampled_from(["", "S", "P"]),
        st.integers(1, 200),
    ),
    min_size=1,
    max_size=300,
)


@given(refs=REFS, budget=BUDGETS, render=st.sampled_from(["json", "text"]))
def test_a_batch_never_costs_more_than_its_budget(
    heavy: FlaskClient, refs: list[str], budget: int, render: str
) -> None:
    given_ = {"ids": ",".join(refs), "max_tokens": budget, "render": render}
    response = heavy.get("/api/observations/batch", query_string=given_)
    assert response.status_code == 200
    assert count_tokens(response.get_data(as_text=True)) <= budget


@pytest.mark.parametrize("accept", ["application/json", "text/markdown"])
@pytest.mark.parametrize("budget", [None, 100, 150, 300, 700, 5000])
def test_the_session_start_page_keeps_to_a_stated_budget(
    heavy: FlaskClient, accept: str, budget: int | None
) -> None:
    given_ = {"max_tokens": budget} if budget else {}
    response = heavy.get("/api/context/inject", query_string=given_, headers={"Accept": accept})
    assert count_tokens(response.get_data(as_text=True)) <= (budget or 1500)


@given(search=SEARCHES, query=plain_queries, common=st.fixed_dictionaries(COMMON))
def test_every_answer_to_a_query_that_matches_holds_a_record_and_leads_on_to_the_rest(
    heavy: FlaskClient,
    search: tuple[str, dict[str, str]],
    query: str,
    common: dict[str, Any],
) -> None:
    path, own = search
    page = heavy.get(
        path, query_string={"query": query, **own, **common, "render": "json"}
    ).get_json()
    assert (page["count"] > 0) == (page["total"] > 0)
    more = page["count"] < page["total"]
    assert page["next_offset"] == (page["count"] if more else None)


def _matches(page: Any) -> list[str]:
    """The refs of the rows of a page and of the twins that they name."""
    return [ref for row in page["results"] for ref in (row["ref"], *row.get("twins", ()))]


def test_cut_pages_partition_the_matches_as_whole_ones_do(heavy: FlaskClient) -> None:
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = heavy.get(
            f"/api/search?query=payment&limit=100&max_tokens=900&offset={offset}"
        ).get_json()
        found += _matches(page)
        offset = page["next_offset"]
    whole = heavy.get("/api/search?query=payment&limit=100").get_json()
    assert found[:100] == _matches(whole)
    assert len(found) == len(set(found)) == whole["total"]


@pytest.mark.parametrize("render", ["json", "text"])
def test_a_record_that_does_not_fit_is_clipped_and_says_so(heavy: FlaskClient, render: str) -> None:
    path = "/api/observations/batch?ids=15,S3&max_tokens=600"
    text = heavy.get(f"{path}&render={render}").get_data(as_text=True)
    assert CLIPPED.strip() in text
    assert count_tokens(text) > 250


def test_a_budget_uses_what_it_is_given(heavy: FlaskClient) -> None:
    """A cut page is the longest one that fits: one row more would not."""
    path = "/api/search?query=payment&limit=100"
    page = heavy.get(f"{path}&max_tokens=1500").get_json()
    longer = heavy.get(f"{path}&limit={page['count'] + 1}".replace("limit=100&", "")).get_json()
    assert 0 < page["count"] < 100
    assert longer["tokens"]["this"] > 1500


def test_a_long_query_does_not_push_the_answer_out(heavy: FlaskClient) -> None:
    page = heavy.get(
        "/api/search", query_string={"query": "payment " * 250, "max_tokens": 1000}
    ).get_json()
    assert page["count"] > 0
    assert page["query"].endswith(CLIPPED)


@pytest.mark.parametrize("budget", [0, 99, -1, 1_000_001, "many"])
def test_a_budget_nothing_fits_into_is_refused(heavy: FlaskClient, budget: object) -> None:
    response = heavy.get("/api/search/prompts", query_string={"query": "x", "max_tokens": budget})
    assert response.status_code == 400
    assert "max_tokens" in response.get_json()["errors"]


@pytest.mark.parametrize("around", [0, 380, 3_980, 39_980])
def test_an_answer_of_any_length_states_its_own_cost(around: int) -> None:
    for length in range(around, around + 60):
        text = with_own_cost(lambda this, length=length: f"{this} {'x' * length}")
        assert int(text.split(" ")[0]) == count_tokens(text)


@pytest.mark.parametrize(
    ("value", "clipped"),
    [
        ("x" * (40 + len(CLIPPED)), "x" * (40 + len(CLIPPED))),
        ("x" * (41 + len(CLIPPED)), "x" * 40 + CLIPPED),
        (["a"], ["a"]),
        (["a", "b"], ["a", CLIPPED]),
        ([], []),
        ({"a": "y" * 99, "b": [1]}, {"a": "y" * 40 + CLIPPED, "b": [1]}),
        ([{"a": "y" * 99}], [{"a": "y" * 40 + CLIPPED}]),
        (12345, 12345),
        (None, None),
    ],
)
def test_texts_and_lists_are_cut_and_say_so(value: Any, clipped: Any) -> None:
    assert clip(value, 40) == clipped


class Writer:
    """Writes pages as texts of any size, and remembers which it was asked for."""

    def __init__(self, *, per_row: int, least: int = 0) -> None:
        self.per_row, self.least, self.pages = per_row, least, list[Page]()

    def __call__(self, page: Page) -> str:
        self.pages.append(page)
        return "x" * 4 * (self.least + self.per_row * len(page.rows))


def page_of(rows: int) -> Page:
    row = {"ref": "1", "kind": "observation", "created_at_epoch": NOW, "title": "t" * 9000}
    return Page(
        echo={"query": "q" * 5000, "short": "12345678", "long": "123456789", "limit": 3},
        rows=tuple(row | {"ref": str(number)} for number in range(rows)),
        notes={"hint": "h" * 5000},
        requested=("0", "1", "2", "3"),
        total=9,
    )


@pytest.mark.parametrize("budget", [None, 300])
def test_a_page_that_fits_exactly_is_left_as_it_is(budget: int | None) -> None:
    write, page = Writer(per_row=100), page_of(3)
    assert fit(page, budget, write) == "x" * 1200
    assert write.pages == [page]


@pytest.mark.parametrize("fitting", range(1, 9))
def test_as_many_rows_are_shown_as_fit(fitting: int) -> None:
    write = Writer(per_row=100)
    assert fit(page_of(9), 100 * fitting, write) == "x" * 400 * fitting
    shown = write.pages[-1]
    assert [row["ref"] for row in shown.rows] == [str(number) for number in range(fitting)]
    assert shown.echo["query"] == "q" * 50 * fitting + CLIPPED
    assert shown.notes["hint"] == "h" * 50 * fitting + CLIPPED


def test_what_never_fits_becomes_smaller_and_smaller_down_to_a_stub() -> None:
    write = Writer(per_row=100, least=10**6)
    fit(page_of(3), 1000, write)
    whole, *counted = write.pages[:3]
    assert [len(whole.rows), *(len(each.rows) for each in counted)] == [3, 2, 1]
    cuts = [4000 >> step for step in range(12)]
    first, second, rest = write.pages[3:15], write.pages[15:27], write.pages[27:]
    for pages in (first, second):
        assert all(len(page.rows) == 1 and page.rows[0]["ref"] == "0" for page in pages)
        assert [page.rows[0]["title"] for page in pages] == ["t" * cut + CLIPPED for cut in cuts]
    stub, short, brief = rest
    assert stub.rows == (
        {"ref": "0", "kind": "observation", "created_at_epoch": NOW, "title": CLIPPED},
    )
    assert (short.rows, brief.rows) == ((), ())
    for page in (*first, short):
        assert page.echo["query"] == "q" * 500 + CLIPPED
        assert page.notes == {"hint": "h" * 500 + CLIPPED}
        assert page.requested == ("0", "1", "2", "3")
    for page in (*second, stub, brief):
        assert page.echo == {"query": "q" * 8 + "…", "long": "12345678…"} | {
            "short": "12345678",
            "limit": "",
        }
        assert (page.notes, page.requested) == ({}, ("0", "1"))


def test_a_page_without_rows_loses_its_notes_in_the_end() -> None:
    write = Writer(per_row=0, least=1001)
    fit(page_of(0), 1000, write)
    assert [bool(page.notes) for page in write.pages] == [True, True, False]
