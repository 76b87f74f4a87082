"""What a request may cost: refused before it starts, or stopped at the deadline."""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import services_over

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.api.operations import OPERATIONS
from memsvc.application.requests import MAX_EXPLAINED
from memsvc.application.services import Services
from memsvc.core.errors import DeadlineExceeded
from memsvc.core.filters import EVERYTHING
from memsvc.core.limits import deadline
from memsvc.core.paths import path_matches
from memsvc.core.query import MAX_LENGTH, MAX_PREFIXES, parse
from memsvc.core.records import Kind, Observation, Ref
from memsvc.entrypoints.http.app import MAX_COMMAS, MAX_OPENED, create_app
from memsvc.schemas.bodies import MAX_RECORDS
from memsvc.schemas.parameters import MAX_GLOBS, MAX_STARS, MAX_VALUE_LENGTH

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
LONG = "x" * 50_000
JSON = "application/json"


# -- the deadline ---------------------------------------------------------------------------------


def test_a_statement_without_end_is_stopped_at_the_deadline(own_store: SqliteStore) -> None:
    with (
        pytest.raises(DeadlineExceeded, match="Stopped after"),
        deadline.within(0.05),
        own_store.snapshot(),
    ):
        own_store.connections.reader().execute(ENDLESS).fetchone()
    assert own_store.generation() == 0


def test_a_cursor_left_open_does_not_hand_an_interruption_on(own_store: SqliteStore) -> None:
    """An exception that somebody keeps holds the frames of the request, and these its cursors."""
    kept: list[sqlite3.Cursor] = []
    with pytest.raises(DeadlineExceeded), deadline.within(0.05), own_store.snapshot():
        _read_without_end(own_store.connections.reader(), kept)
    with (
        pytest.raises(DeadlineExceeded),
        deadline.within(0.05),
        own_store.connections.transaction() as writer,
    ):
        _read_without_end(writer, kept)
    assert own_store.write([Observation(title="a", source="t", source_id="1")])
    with own_store.snapshot():
        assert own_store.count(Kind.OBSERVATION, EVERYTHING) == 1


def _read_without_end(connection: sqlite3.Connection, kept: list[sqlite3.Cursor]) -> None:
    kept.append(connection.execute(ENDLESS.replace("count(*)", "x")))
    kept[-1].fetchone()
    connection.execute(ENDLESS).fetchone()


def test_a_write_without_end_is_stopped_undone_and_no_obstacle(own_store: SqliteStore) -> None:
    with (
        pytest.raises(DeadlineExceeded),
        deadline.within(0.05),
        own_store.connections.transaction() as writer,
    ):
        writer.execute(f"UPDATE generation SET number = ({ENDLESS})")
    assert own_store.generation() == 0
    assert own_store.write([Observation(title="a", source="t", source_id="1")])


def test_what_one_thread_may_take_is_no_matter_to_another(own_store: SqliteStore) -> None:
    with deadline.within(1000), own_store.snapshot():
        with pytest.raises(DeadlineExceeded), deadline.within(0):
            own_store.generation()
        assert own_store.generation() == 0


class EndlessStore:
    """A store that never answers by itself."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def snapshot(self) -> Any:
        return self.store.snapshot()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*_: Any, **__: Any) -> Any:
            return self.store.connections.reader().execute(ENDLESS).fetchone()

        return ask


@pytest.fixture
def endless(own_store: SqliteStore) -> FlaskClient:
    """The routes over a store that never answers, with a tiny deadline."""
    services = Services(EndlessStore(own_store), lambda: 0)  # type: ignore[arg-type]
    return create_app(services, seconds=0.05).test_client()


@pytest.mark.parametrize(
    "path",
    [
        "/api/search?query=a",
        "/api/search/by-file?filePath=src",
        "/api/context/recent",
        "/api/context/timeline?anchor=1",
        "/api/context/inject",
        "/api/observations/batch?ids=1",
        "/api/observation/1",
        "/api/projects",
        "/api/stats",
    ],
)
def test_a_question_past_the_deadline_is_told_what_to_narrow(
    endless: FlaskClient, path: str
) -> None:
    response = endless.get(path, headers={"Accept": JSON})
    problem = response.get_json()
    assert (response.status_code, problem["code"]) == (503, "deadline")
    assert "Stopped after" in problem["detail"]
    assert "project" in problem["detail"]


def test_health_asks_the_store_nothing(endless: FlaskClient) -> None:
    assert endless.get("/api/health").status_code == 200


def test_time_spent_in_the_queue_counts(services: Services) -> None:
    client = create_app(services, seconds=1000).test_client()
    given = {"query_string": {"query": "payment"}}
    assert client.get("/api/search", **given).status_code == 200
    waited = client.get("/api/search", **given, environ_overrides={"memsvc.arrived": -2000.0})
    assert (waited.status_code, waited.get_json()["code"]) == (503, "deadline")


# -- refused before it starts ---------------------------------------------------------------------


def test_a_query_beyond_the_longest_is_refused_with_both_lengths(
    refuse: Callable[..., Any], ask: Callable[..., Any]
) -> None:
    assert ask("/api/search", query="é" * MAX_LENGTH)["total"] == 0
    problem = refuse("/api/search", query="é" * (MAX_LENGTH + 1))
    assert "2,001 characters; allowed: at most 2,000" in problem["error"]


PARAMETERS = [
    (operation.path, name)
    for operation in OPERATIONS
    if operation.method == "GET"
    for name in operation.schema.fields
    if f"<{name}>" not in operation.path
]


@pytest.mark.parametrize(("path", "name"), PARAMETERS)
def test_no_overlong_value_comes_back_whole(client: FlaskClient, path: str, name: str) -> None:
    response = client.get(path.replace("<id>", "1"), query_string={name: LONG})
    assert response.status_code == 400
    assert len(response.data) < 2000


def test_no_overlong_name_comes_back_whole(client: FlaskClient) -> None:
    response = client.get("/api/search", query_string={LONG: "1", "query": "a"})
    assert response.status_code == 400
    assert len(response.data) < 2000


def test_a_thousand_wrong_names_are_one_short_answer(client: FlaskClient) -> None:
    given = {f"wrong{number}": "1" for number in range(1000)}
    response = client.get("/api/search", query_string=given)
    assert response.status_code == 400
    assert len(response.data) < 10_000


@pytest.mark.parametrize(
    "body",
    [
        {"kind": LONG, "title": "a"},
        {"title": {"a": LONG}},
        {"facts": [[LONG]]},
        {"created_at_epoch": LONG},
        [LONG],
        {"records": LONG},
        {LONG: "a"},
    ],
    ids=["kind", "title", "facts", "time", "record", "records", "name"],
)
def test_nothing_overlong_in_a_body_comes_back_whole(own_client: FlaskClient, body: Any) -> None:
    for path in ("/api/observations", "/api/import"):
        assert LONG not in own_client.post(path, json=body).get_data(as_text=True)


def test_a_content_type_comes_back_cut(own_client: FlaskClient) -> None:
    response = own_client.post("/api/import", data="{}", content_type=f"text/{LONG}")
    assert response.status_code == 415
    assert len(response.data) < 2000


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a" * (MAX_VALUE_LENGTH + 1), "a value of 1,001 characters; allowed: at most 1,000"),
        ("*a" * (MAX_STARS + 1), f"a glob of 9 stars; allowed: at most {MAX_STARS}"),
        (
            ",".join(f"*{n}" for n in range(MAX_GLOBS + 1)),
            f"17 globs; allowed: at most {MAX_GLOBS}",
        ),
        (",".join(map(str, range(101))), "101 values; allowed: at most 100"),
    ],
)
@pytest.mark.parametrize(
    ("path", "name"), [("/api/search/by-file", "filePath"), ("/api/search", "files")]
)
def test_files_are_bounded(
    refuse: Callable[..., Any], path: str, name: str, value: str, told: str
) -> None:
    assert told in refuse(path, **{name: value})["error"]


def test_more_ids_than_allowed_are_refused_whatever_they_are(client: FlaskClient) -> None:
    ids = [f"x{number}" for number in range(30_000)]
    problem = client.post("/api/observations/batch", json={"ids": ids}).get_json()
    assert "30000 values; allowed: at most 1000" in problem["error"]


# -- told, where it is not refused ----------------------------------------------------------------


def test_a_prefix_of_one_letter_is_a_word_and_told_to_be(ask: Callable[..., Any]) -> None:
    page = ask("/api/search", query="p* payment")
    assert "Searched as whole words: p*" in page["notice"]
    assert page["total"] == ask("/api/search", query="p payment")["total"]


def test_more_prefixes_than_allowed_are_words_and_told_to_be(ask: Callable[..., Any]) -> None:
    many = [f"word{number}*" for number in range(MAX_PREFIXES)]
    assert "notice" not in ask("/api/search", query=" ".join(many))
    page = ask("/api/search", query=" ".join([*many, "payme*", "-swall*"]))
    assert "payme*, swall*" in page["notice"]
    assert page["total"] == 0


@pytest.mark.parametrize("query", ["p*", "title:p*", "-p*", "src-p*"])
def test_no_term_keeps_a_prefix_of_one_letter(query: str) -> None:
    parsed = parse(query)
    terms = (*parsed.words, *parsed.required, *parsed.excluded)
    assert [term.prefix for term in terms] == [False]
    assert parsed.whole


def test_a_prefix_of_two_letters_still_finds_its_words(ask: Callable[..., Any]) -> None:
    page = ask("/api/search", query="pa*")
    assert page["total"] > 0
    assert "notice" not in page


def test_explain_explains_the_first_rows_and_says_so(own_store: SqliteStore) -> None:
    many = [Observation(title="payment", source="t", source_id=str(n)) for n in range(50)]
    own_store.write(many)
    client = create_app(services_over(own_store)).test_client()
    given = {"query": "payment", "days": "all", "explain": "1", "limit": "50"}
    page = client.get("/api/search/observations", query_string=given).get_json()
    explained = ["explain" in row for row in page["results"]]
    assert explained == [True] * MAX_EXPLAINED + [False] * (50 - MAX_EXPLAINED)
    assert f"first {MAX_EXPLAINED} rows" in page["notice"]


# -- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda records: records,
        lambda records: {"observations": records},
        lambda records: {"observations": records[:600], "prompts": records[600:]},
    ],
)
def test_more_records_than_allowed_are_refused_unread(
    own_client: FlaskClient, own_store: SqliteStore, wrap: Callable[[list[Any]], Any]
) -> None:
    allowed = [{"title": str(number), "prompt_text": "a"} for number in range(MAX_RECORDS)]
    response = own_client.post("/api/import", json=wrap([*allowed, "not even a record"]))
    problem = response.get_json()
    assert (response.status_code, problem["code"]) == (413, "body_too_large")
    assert "1,001 records; allowed: at most 1,000" in problem["detail"]
    assert own_store.records([Ref(Kind.OBSERVATION, 1)]) == {}


def test_as_many_records_as_allowed_are_stored(own_client: FlaskClient) -> None:
    body = [{"title": str(number)} for number in range(MAX_RECORDS)]
    assert own_client.post("/api/observations", json=body).get_json()["stored"] == MAX_RECORDS


@pytest.mark.parametrize(
    "body", ["[" + "[]," * MAX_OPENED + "[]]", "[" + "1," * (MAX_COMMAS + 1) + "1]"]
)
def test_a_body_of_very_many_values_is_refused_unparsed(own_client: FlaskClient, body: str) -> None:
    response = own_client.post("/api/import", data=body, content_type=JSON)
    assert (response.status_code, response.get_json()["code"]) == (413, "body_too_large")


def test_a_long_text_with_many_commas_is_stored(own_client: FlaskClient) -> None:
    text = "one, two (and [three], {four}); " * 20_000
    response = own_client.post("/api/observations", json={"title": "a", "narrative": text})
    assert response.status_code == 201


def test_a_body_that_is_nested_too_deeply_is_refused(own_client: FlaskClient) -> None:
    body = json.dumps({"title": "a"})[:-1] + ', "facts": ' + "[" * 40_000 + "]" * 40_000 + "}"
    response = own_client.post("/api/observations", data=body, content_type=JSON)
    assert response.status_code == 400


def test_globs_do_not_try_every_way_to_match() -> None:
    assert not path_matches("*a" * 30 + "b", "a" * 5000)
    assert path_matches("*a" * 30 + "*", "a" * 5000)
