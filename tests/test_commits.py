"""Commits by their hash, as an agent asks for them: in a search, to read, around it."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_semantic import indexed
from flask.testing import FlaskClient
from pages import matches_of
from samples import DAY, NOW
from workers import Worker

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.application.services import Services
from memsvc.core.records import Observation
from memsvc.entrypoints.cli.main import memsvc
from memsvc.entrypoints.http.app import create_app

FIX = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"
PORT = "a1b2c3d0e5f60718293a4b5c6d7e8f9012345678"
NUMERIC = "1234567890123456789012345678901234567890"


def commit(hash: str, title: str, *, project: str = "shop", days: int = 400, **given: Any) -> Any:
    made = {"source": f"git:{project}", "source_id": hash, "created_at_epoch": NOW - days * DAY}
    return Observation(title=title, project=project, **made | given)


def mention(number: int, narrative: str) -> Observation:
    made = {"source": "api", "source_id": f"m{number}", "created_at_epoch": NOW - 1000}
    return Observation(title="Looked into a1b2c3d", narrative=narrative, **made)


HISTORY = [
    commit(FIX, "Fix rounding of totals"),
    commit(PORT, "Port the fix of totals"),
    commit(NUMERIC, "A hash of digits alone"),
    commit("f00d" * 10, "Shared", project="api"),
    commit("f00d" * 10, "Shared", project="fork"),
    *(mention(n, f"It broke in {FIX[:10]}, fixed by deadbeef1 and a lot of words.") for n in "abc"),
    mention(9, "It has 1 2 3 a b c d and deadbeef2."),
]


@pytest.fixture(params=["full text", "semantic"])
def asked(own_store: SqliteStore, request: pytest.FixtureRequest) -> FlaskClient:
    """The routes over a history, with and without semantic search."""
    own_store.write(HISTORY)
    semantic = indexed(own_store) if request.param == "semantic" else None
    return create_app(Services(own_store, lambda: NOW, semantic)).test_client()


@pytest.fixture
def get(asked: FlaskClient) -> Callable[..., Any]:
    def get(path: str, status: int = 200, **given: Any) -> Any:
        response = asked.get(path, query_string=given)
        assert response.status_code == status, response.get_data(as_text=True)
        return response.get_json()

    return get


def titles(body: Any) -> list[str]:
    return [row["title"] for row in body["results"]]


@pytest.mark.parametrize("path", ["/api/search/observations", "/api/search"])
@pytest.mark.parametrize(
    "query", [FIX, FIX[:8], FIX.upper()[:12], f"commit {FIX[:9]}", f"why did {FIX[:8]} break it?"]
)
def test_a_hash_finds_its_old_commit_before_recent_records_that_mention_it(
    get: Callable[..., Any], path: str, query: str
) -> None:
    body = get(path, query=query)
    assert titles(body)[0] == "Fix rounding of totals"
    assert body["results"][0]["older"]
    assert "Looked into a1b2c3d" in titles(body)


def test_an_abbreviation_of_two_commits_finds_both(get: Callable[..., Any]) -> None:
    body = get("/api/search/observations", query="a1b2c3d")
    assert set(titles(body)[:2]) == {"Fix rounding of totals", "Port the fix of totals"}
    assert body["total"] == 6
    assert body["results"][0]["score"] == 1


@pytest.mark.parametrize("order", ["date_asc", "date_desc", "relevance"])
def test_totals_and_pages_count_the_commit_once(get: Callable[..., Any], order: str) -> None:
    given = {"query": "a1b2c3d totals", "orderBy": order, "limit": 1}
    total = get("/api/search/observations", **given)["total"]
    assert total >= 6
    pages = [get("/api/search/observations", **given, offset=n) for n in range(total + 1)]
    ids = [ref for page in pages for ref in matches_of(page)]
    assert len(ids) == len(set(ids)) == total


def test_filters_hold_for_a_commit_too(get: Callable[..., Any]) -> None:
    for given in ({"project": "api"}, {"dateStart": "30d"}, {"type": "decision"}):
        assert "Fix rounding of totals" not in titles(get("/api/search", query=FIX, **given))
    found = get("/api/search/observations", query="f00df00d", project="fork")
    assert (found["project"], found["count"]) == ("fork", 1)
    assert (
        titles(get("/api/search/observations", query=f"{FIX} -rounding"))[0]
        != titles(get("/api/search/observations", query=FIX))[0]
    )


def test_a_hash_in_a_text_is_one_word(get: Callable[..., Any]) -> None:
    found = get("/api/search/observations", query="deadbeef1")
    assert found["total"] == 3
    assert get("/api/search/observations", query="deadbeef")["total"] == 0
    assert get("/api/search/observations", query="deadbeef1" + "0" * 31)["total"] == 3
    assert get("/api/search/observations", query="deadbee9")["did_you_mean"] == []


def test_explain_says_that_the_commit_is_the_records_own(get: Callable[..., Any]) -> None:
    first = get("/api/search/observations", query=FIX, explain=1)["results"][0]
    assert first["explain"]["terms"] == {FIX: ["source_id"]}


@pytest.mark.parametrize("name", [FIX, FIX[:8], FIX[:8].upper(), NUMERIC[:9], NUMERIC, "f00df00"])
def test_a_record_is_read_by_the_hash_of_its_commit(get: Callable[..., Any], name: str) -> None:
    record = get(f"/api/observation/{name}")
    assert record["source_id"].startswith(name.lower())
    rows = get("/api/observations/batch", ids=f"{name},3")["results"]
    assert rows[0]["source_id"] == record["source_id"]


def test_an_ambiguous_hash_is_told_with_its_candidates(get: Callable[..., Any]) -> None:
    problem = get("/api/observation/a1b2c3d", status=400)
    for told in ("a1b2c3d names 2 commits", FIX[:12], PORT[:12], "Port the fix", "more digits"):
        assert told in problem["detail"]
    body = get("/api/observations/batch", ids="a1b2c3d,1")
    assert body["missing"] == ["a1b2c3d"]
    assert "a1b2c3d names 2 commits" in body["notice"]
    assert titles(body) == ["Fix rounding of totals"]


def test_a_hash_that_no_record_has_is_told(get: Callable[..., Any]) -> None:
    problem = get("/api/observation/abcdef1", status=404)
    assert "No record has the commit abcdef1" in problem["detail"]
    body = get("/api/observations/batch", ids="abcdef1")
    assert body["missing"] == ["abcdef1"]
    assert "No record has the commit abcdef1" in body["notice"]


def test_digits_are_a_ref_first(own_store: SqliteStore, own_client: FlaskClient) -> None:
    own_store.write([commit(NUMERIC, "By hash")])
    own_store.write([Observation(id=1234567, title="By ref", source_id="x")], keep_ids=True)
    titles = [
        own_client.get(f"/api/observation/{name}").get_json()["title"]
        for name in ("1234567", "12345678")
    ]
    assert titles == ["By ref", "By hash"]


def test_what_is_neither_a_number_nor_a_hash_is_refused(get: Callable[..., Any]) -> None:
    for name in ("abc", "xyz1234", "0", "a1b2c3"):
        detail = get(f"/api/observation/{name}", status=400)["detail"]
        assert "the hash of a commit (7 digits or more)" in detail
    assert "a commit hash" in get("/api/observations/batch", status=400, ids="abc")["detail"]


def test_the_command_line_reads_a_commit_by_its_hash(live: Worker) -> None:
    def run(*words: str) -> Result:
        return CliRunner().invoke(memsvc, words, env={"MEMSVC_PORT": live.port})

    sent = {"title": "Fix rounding", "source": "git:shop", "source_id": FIX, "author": "Zoë"}
    assert live.post("/api/observations", sent).status_code == 201
    for words in (("read", FIX[:7]), ("show", "observation", FIX), ("search", "author:zoe")):
        assert "Fix rounding" in run(*words).stdout
    assert "No record has the commit abcdef1" in run("read", "abcdef1").stdout
    missing = run("show", "observation", "abcdef1")
    assert (missing.exit_code, "No record has the commit" in missing.stderr) == (4, True)
