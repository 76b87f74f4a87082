"""Writing memories over HTTP: one, a list, a bundle; never twice; the bad ones refused alone."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from samples import HOUR, NOW, services_over

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Prompt, Record
from memsvc.entrypoints.http.app import create_app


def _post(client: FlaskClient, path: str, body: Any, status: int) -> Any:
    response = client.post(f"/api/{path}", json=body)
    assert response.status_code == status, response.get_data(as_text=True)
    return response.get_json()


def _found(client: FlaskClient, query: str) -> list[str]:
    rows = client.get("/api/search", query_string={"query": query}).get_json()["results"]
    return [row["ref"] for row in rows]


@pytest.mark.parametrize(
    ("path", "body", "ref"),
    [
        ("observations", {"title": "a marmot"}, "1"),
        ("sessions", {"request": "find the marmot"}, "S1"),
        ("prompts", {"prompt_text": "where is the marmot?"}, "P1"),
        ("import", {"kind": "prompt", "prompt_text": "where is the marmot?"}, "P1"),
        ("import", {"title": "a marmot"}, "1"),
    ],
)
def test_one_record_is_stored_and_found_at_once(
    own_client: FlaskClient, path: str, body: dict[str, str], ref: str
) -> None:
    answer = _post(own_client, path, body, 201)
    assert (answer["stored"], answer["refused"]) == (1, [])
    assert answer["results"] == [{"place": "record", "ref": ref, "outcome": "stored"}]
    assert _found(own_client, "marmot") == [ref]


def test_a_list_is_stored_in_its_order(own_client: FlaskClient) -> None:
    answer = _post(own_client, "observations", [{"title": "one"}, {"title": "two"}], 201)
    assert [(r["place"], r["ref"]) for r in answer["results"]] == [("[0]", "1"), ("[1]", "2")]


def test_a_bundle_holds_lists_by_kind(own_client: FlaskClient) -> None:
    bundle = {
        "observations": [{"title": "a marmot"}],
        "summaries": [{"request": "find it"}],
        "sessions": [{"request": "find it again"}],
        "prompts": [{"prompt_text": "where?"}],
        "records": [{"kind": "prompt", "prompt_text": "and now?"}],
    }
    answer = _post(own_client, "import", bundle, 201)
    assert {r["place"]: r["ref"][0] for r in answer["results"]} == {
        "observations[0]": "1",
        "summaries[0]": "S",
        "sessions[0]": "S",
        "prompts[0]": "P",
        "records[0]": "P",
    }


CLAUDE_MEM = {
    "sessions": [
        {
            "id": 4,
            "content_session_id": "c-1",
            "memory_session_id": "m-1",
            "project": "shop",
            "user_prompt": "fix it",
            "started_at": "2026-11-08T10:00:00.000Z",
            "started_at_epoch": NOW - 4 * HOUR,
            "completed_at_epoch": None,
            "status": "active",
        }
    ],
    "observations": [
        {
            "id": 71,
            "memory_session_id": "m-1",
            "project": "shop",
            "text": None,
            "type": "bugfix",
            "title": "Fixed the marmot",
            "subtitle": None,
            "narrative": None,
            "facts": '["it was asleep", "it is awake"]',
            "concepts": '["gotcha"]',
            "files_read": "[]",
            "files_modified": '["src/marmot.py"]',
            "prompt_number": 2,
            "discovery_tokens": 900,
            "created_at": "2026-11-08T11:00:00.000Z",
            "created_at_epoch": NOW - 3 * HOUR,
        }
    ],
    "summaries": [],
    "prompts": [
        {
            "id": 9,
            "content_session_id": "c-1",
            "project": "shop",
            "prompt_number": 1,
            "prompt_text": "wake the marmot",
            "created_at_epoch": NOW - 4 * HOUR,
        }
    ],
}


def test_a_bundle_as_claude_mem_exports_it_is_understood(own_client: FlaskClient) -> None:
    assert _post(own_client, "import", CLAUDE_MEM, 201)["stored"] == 2
    record = own_client.get("/api/observation/1").get_json()
    assert record["facts"] == ["it was asleep", "it is awake"]
    assert record["files_modified"] == ["src/marmot.py"]
    assert (record["session_id"], record["source_id"]) == ("m-1", "71")
    assert record["created_at_epoch"] == NOW - 3 * HOUR


def test_a_work_session_of_a_bundle_groups_its_records(own_client: FlaskClient) -> None:
    _post(own_client, "import", CLAUDE_MEM, 201)
    rows = own_client.get("/api/context/recent").get_json()["results"]
    assert [(row["session_id"], row["status"]) for row in rows] == [("m-1", "active")]
    assert rows[0]["counts"] == {"observations": 1, "sessions": 0, "prompts": 1}


@pytest.mark.parametrize("body", [CLAUDE_MEM, {"title": "no date, no id"}, [{"title": "x"}] * 3])
def test_the_same_body_again_changes_nothing(
    own_client: FlaskClient, own_store: SqliteStore, body: Any
) -> None:
    first = _post(own_client, "import", body, 201)
    before = own_client.get("/api/search?kinds=observation&format=full&dateStart=10000d").get_json()
    again = _post(own_client, "import", body, 200)
    after = own_client.get("/api/search?kinds=observation&format=full&dateStart=10000d").get_json()
    assert (again["stored"], again["updated"]) == (0, 0)
    assert again["unchanged"] == len(first["results"])
    assert [r["ref"] for r in again["results"]] == [r["ref"] for r in first["results"]]
    assert after == before


def test_an_edit_updates_what_is_found(own_client: FlaskClient) -> None:
    _post(own_client, "observations", {"id": 7, "title": "a marmot", "concepts": ["old"]}, 201)
    edited = {"id": 7, "title": "a beaver", "concepts": ["new"], "files_read": ["src/x.py"]}
    answer = _post(own_client, "observations", edited, 200)
    assert answer["results"] == [{"place": "record", "ref": "1", "outcome": "updated"}]
    assert (_found(own_client, "marmot"), _found(own_client, "beaver")) == ([], ["1"])
    assert own_client.get("/api/search/by-concept?concept=old").get_json()["total"] == 0
    assert own_client.get("/api/search/by-concept?concept=new").get_json()["total"] == 1
    assert own_client.get("/api/search/by-file?filePath=x.py").get_json()["total"] == 1


def test_an_edit_without_a_date_keeps_the_first_one(own_client: FlaskClient) -> None:
    dated = {"id": 7, "title": "a marmot", "created_at": "2026-01-02T03:04:05Z"}
    _post(own_client, "observations", dated, 201)
    _post(own_client, "observations", {"id": 7, "title": "a beaver"}, 200)
    assert own_client.get("/api/observation/1").get_json()["created_at"] == "2026-01-02T03:04:05Z"


def test_the_same_words_at_two_times_are_two_memories(own_client: FlaskClient) -> None:
    prompts = [
        {"prompt_text": "go on", "session_id": "w", "created_at": f"2026-01-0{day}T00:00:00Z"}
        for day in (1, 2)
    ]
    assert _post(own_client, "prompts", prompts, 201)["stored"] == 2
    assert _post(own_client, "prompts", prompts, 200)["unchanged"] == 2


def test_what_we_answer_in_full_can_be_written_back(
    client: FlaskClient, own_client: FlaskClient
) -> None:
    for path, plural in (
        ("observation/1", "observations"),
        ("session/1", "sessions"),
        ("prompt/1", "prompts"),
    ):
        record = client.get(f"/api/{path}").get_json()
        _post(own_client, plural, record, 201)
        copy = own_client.get(f"/api/{path}").get_json()
        assert copy == record


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({}, "title"),
        ({"title": "  "}, "title"),
        ({"title": 5}, "title"),
        ({"title": "x", "facts": [1]}, "facts"),
        ({"title": "x", "facts": {"a": 1}}, "facts"),
        ({"title": "x", "created_at": "soon"}, "created_at_epoch"),
        ({"title": "x", "created_at": []}, "created_at_epoch"),
        ({"title": "x", "created_at_epoch": -5}, "created_at_epoch"),
        ({"title": "x", "created_at_epoch": True}, "created_at_epoch"),
        ({"title": "x", "prompt_number": -1}, "prompt_number"),
        ({"title": "x", "discovery_tokens": "9"}, "discovery_tokens"),
        ({"title": "x", "kind": "dream"}, "kind"),
        ({"title": "x", "kind": ["prompt"]}, "kind"),
        ("text", "record"),
        (None, "record"),
        ([{"title": "x"}], "record"),
    ],
)
def test_a_bad_record_is_refused_with_its_place_and_the_good_ones_are_stored(
    own_client: FlaskClient, bad: Any, field: str
) -> None:
    answer = _post(own_client, "import", [{"title": "good"}, bad, {"title": "better"}], 201)
    assert answer["stored"] == 2
    assert [refused["place"] for refused in answer["refused"]] == ["[1]"]
    assert field in answer["refused"][0]["errors"]
    assert own_client.get("/api/stats").get_json()["kinds"]["observations"] == 2


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity"])
def test_numbers_beyond_json_are_refused_like_any_other_value(
    own_client: FlaskClient, number: str
) -> None:
    response = own_client.post(
        "/api/observations",
        data=f'{{"title": "x", "created_at_epoch": {number}}}',
        content_type="application/json",
    )
    assert response.status_code == 400
    assert "created_at_epoch" in response.get_json()["detail"]


def test_nothing_but_bad_records_is_a_bad_request(own_client: FlaskClient) -> None:
    problem = _post(own_client, "import", [{"title": ""}, {"kind": "dream"}], 400)
    assert set(problem["errors"]) == {"[0].title", "[1].kind"}


def test_a_bundle_of_no_lists_is_refused(own_client: FlaskClient) -> None:
    assert (
        "observations"
        in _post(own_client, "import", {"observations": {"title": "x"}}, 400)["errors"]
    )


def test_another_kind_is_refused_where_the_route_names_one(own_client: FlaskClient) -> None:
    problem = _post(own_client, "prompts", {"kind": "session", "request": "x"}, 400)
    assert "this route accepts only prompt" in problem["detail"]


@pytest.mark.parametrize("body", [[], {"observations": []}, {"prompts": [], "summaries": []}])
def test_nothing_to_store_is_no_error(own_client: FlaskClient, body: Any) -> None:
    assert _post(own_client, "import", body, 200)["results"] == []


def test_an_observation_that_says_when_work_started_is_still_an_observation(
    own_client: FlaskClient,
) -> None:
    body = {"title": "a marmot", "started_at_epoch": NOW}
    assert _post(own_client, "observations", body, 201)["stored"] == 1


@pytest.mark.parametrize(
    "text", ["a\x00b", "lone \ud800 surrogate", "\ufeffmark", "emoji 🚀", "‮rtl"]
)
def test_any_text_is_stored_and_read_back(own_client: FlaskClient, text: str) -> None:
    body = {
        "title": text,
        "session_id": text,
        "project": text,
        "concepts": [text],
        "files_read": [text],
    }
    _post(own_client, "observations", body, 201)
    stored = own_client.get("/api/observation/1").get_json()["title"]
    assert stored == text.replace("\x00", "").replace("\ud800", "?")
    session = {"session_id": text, "project": text, "started_at_epoch": NOW}
    _post(own_client, "import", {"sessions": [session]}, 200)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A store that all examples of a property write to."""
    opened = open_store(tmp_path_factory.mktemp("scratch") / "memsvc.db")
    yield create_app(services_over(opened)).test_client()
    opened.close()


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    "title",
    "facts",
    "concepts",
    "files_read",
    "created_at",
    "created_at_epoch",
    "kind",
    "id",
    "_id",
    "source",
    "source_id",
    "session_id",
    "memory_session_id",
    "project",
    "prompt_number",
    "discovery_tokens",
    "request",
    "prompt_text",
    "started_at_epoch",
    "completed_at_epoch",
    "status",
    "observations",
    "sessions",
    "prompts",
    "records",
    "work_sessions",
]


@given(body=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6))
def test_no_body_is_ever_a_bug_of_ours(scratch: FlaskClient, body: dict[str, Any]) -> None:
    bundle = {"records": [body, {**body, "title": "x"}], "sessions": [body]}
    for written in (body, bundle):
        response = scratch.post("/api/import", json=written)
        assert response.status_code in (200, 201, 400)


def test_a_forgotten_record_is_gone_from_everywhere(own_client: FlaskClient) -> None:
    body = {
        "title": "the marmotsecret",
        "type": "hush",
        "concepts": ["whisper"],
        "files_read": ["src/burrow.py"],
        "project": "den",
        "session_id": "w1",
    }
    _post(own_client, "observations", body, 201)
    assert own_client.delete("/api/observation/1").get_json() == {
        "forgotten": "1",
        "kind": "observation",
    }
    for path in (
        "/api/search?query=marmotsecret",
        "/api/search/by-type?type=hush",
        "/api/search/by-concept?concept=whisper",
        "/api/search/by-file?filePath=burrow.py",
        "/api/search?project=den",
        "/api/search?query=marmotsecreet",
        "/api/context/recent",
        "/api/context/inject?render=json",
        "/api/context/timeline?anchor=1d",
        "/api/stats",
        "/api/projects",
        "/api/search/help",
    ):
        said = own_client.get(path).get_json()
        asked = ("query", "type", "concept", "filePath", "project", "operations")
        text = str({name: value for name, value in said.items() if name not in asked})
        assert not any(word in text for word in ("marmot", "hush", "whisper", "burrow", "den'"))
    assert own_client.get("/api/observation/1").status_code == 404
    assert own_client.get("/api/observations/batch?ids=1").get_json()["missing"] == ["1"]


def test_a_forgotten_record_leaves_no_text_in_the_files(
    own_client: FlaskClient, own_store: SqliteStore, tmp_path: Any
) -> None:
    body = {"title": "xylophonesecret", "files_read": ["src/xylophonefile.py"]}
    _post(own_client, "observations", [{"title": "stays"}, body], 201)
    own_client.delete("/api/observation/2")
    own_store.close()
    left = b"".join(path.read_bytes() for path in tmp_path.glob("memsvc.db*"))
    assert b"stays" in left
    assert b"xylophone" not in left


@pytest.mark.parametrize(
    "again", [{"id": 7, "title": "a marmot"}, {"id": 7, "title": "a marmot, edited"}]
)
def test_a_repeated_write_does_not_bring_back_what_was_forgotten(
    own_client: FlaskClient, again: dict[str, Any]
) -> None:
    _post(own_client, "observations", {"id": 7, "title": "a marmot"}, 201)
    own_client.delete("/api/observation/1")
    answer = _post(own_client, "observations", again, 200)
    assert answer["results"] == [{"place": "record", "ref": None, "outcome": "forgotten"}]
    assert _found(own_client, "marmot") == []


def _echo(number: int, seconds: int = 0) -> Prompt:
    """A prompt as a source has it that says everything twice."""
    moment = NOW + seconds * 1000
    return Prompt(prompt_text="marmot", source="x", source_id=str(number), created_at_epoch=moment)


def _outcomes(store: SqliteStore, *records: Record, merge_within: int | None) -> list[Outcome]:
    return [each.outcome for each in store.write(records, merge_within=merge_within)]


def test_what_was_merged_into_a_forgotten_record_stays_away_too(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    source = [_echo(1), _echo(2, 30), _echo(3, 3600)]
    minute = 60_000
    stored = [Outcome.STORED, Outcome.MERGED, Outcome.STORED]
    assert _outcomes(own_store, *source, merge_within=minute) == stored
    own_client.delete("/api/prompt/1")
    again = [Outcome.FORGOTTEN, Outcome.FORGOTTEN, Outcome.UNCHANGED]
    assert _outcomes(own_store, *source, merge_within=minute) == again
    assert _found(own_client, "marmot") == ["P2"]


def test_the_words_of_a_forgotten_record_can_be_written_on_purpose(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    _outcomes(own_store, _echo(1), merge_within=60_000)
    own_client.delete("/api/prompt/1")
    assert _post(own_client, "prompts", {"id": 2, "prompt_text": "marmot"}, 201)["stored"] == 1
    assert _outcomes(own_store, _echo(2), merge_within=None) == [Outcome.STORED]
    assert len(_found(own_client, "marmot")) == 2


SECRET: dict[str, Any] = {
    "work_sessions": [
        {"session_id": "xylosession", "project": "xyloproject", "started_at_epoch": NOW},
        {"session_id": "xyloempty", "project": "xyloproject", "started_at_epoch": NOW},
    ],
    "observations": [
        {
            "id": number,
            "title": f"xylotitle {word}",
            "narrative": "xylonarrative 登录 getXyloById",
            "facts": ["xylofact"],
            "type": "xylotype",
            "concepts": ["xyloconcept"],
            "files_read": ["xylofolder/xylofile.py"],
            "project": project,
            "session_id": "xylosession",
        }
        for number, word, project in ((1, "one", "XyloProject"), (2, "two", "xyloproject"))
    ],
    "summaries": [
        {
            "id": 1,
            "request": "xylorequest",
            "files_edited": ["xylofolder/xyloedited.py"],
            "project": "xyloproject",
            "session_id": "xylosession",
        }
    ],
    "prompts": [
        {"id": 1, "prompt_text": "xyloprompt", "project": "xyloproject", "session_id": "xyloother"}
    ],
}


def _rows_of_all_tables(path: Path) -> dict[str, str]:
    """What can be read in each table of a database, the index's words included."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: str(connection.execute(f"SELECT * FROM {name}").fetchall())
            for (name,) in tables.fetchall()
        }


def test_a_project_of_which_all_was_forgotten_leaves_nothing_anywhere(
    own_client: FlaskClient, own_store: SqliteStore, tmp_path: Path
) -> None:
    _post(own_client, "import", SECRET, 201)
    edited = {**SECRET["observations"][0], "concepts": ["xyloedited"], "session_id": "xylolast"}
    _post(own_client, "observations", edited, 200)
    for path in ("observation/1", "observation/2", "session/1", "prompt/1"):
        assert own_client.delete(f"/api/{path}").status_code == 200
    _post(own_client, "observations", {"title": "stays"}, 201)
    told = _rows_of_all_tables(tmp_path / "memsvc.db")
    assert {name for name, rows in told.items() if "xylo" in rows.lower() or "登" in rows} == set()
    own_store.close()
    left = b"".join(path.read_bytes() for path in tmp_path.glob("memsvc.db*"))
    assert b"stays" in left
    assert b"xylo" not in left.lower()


def test_an_edit_leaves_nothing_of_what_was_there_before(
    own_client: FlaskClient, tmp_path: Path
) -> None:
    before = {**SECRET["observations"][0], "id": 7}
    _post(own_client, "observations", before, 201)
    _post(own_client, "observations", {"id": 7, "title": "a beaver", "project": "den"}, 200)
    told = _rows_of_all_tables(tmp_path / "memsvc.db")
    words = {"labels", "path_endings", "work_sessions", "observations"}
    assert not any("xylo" in told[name].lower() for name in words)


def test_a_forgotten_work_session_stays_away_until_there_is_a_memory_of_it(
    own_client: FlaskClient,
) -> None:
    def recent() -> list[str]:
        rows = own_client.get("/api/context/recent").get_json()["results"]
        return [row["session_id"] for row in rows]

    work = {"work_sessions": [{"session_id": "w1", "project": "den", "started_at_epoch": NOW}]}
    _post(own_client, "import", work, 200)
    record = {"title": "a marmot", "project": "den", "session_id": "w1"}
    _post(own_client, "observations", {**record, "id": 1}, 201)
    assert recent() == ["w1"]
    own_client.delete("/api/observation/1")
    _post(own_client, "import", work, 200)
    assert recent() == []
    _post(own_client, "import", {**work, "observations": [{**record, "id": 2}]}, 201)
    assert recent() == ["w1"]


def test_an_id_is_never_given_out_twice(own_client: FlaskClient) -> None:
    _post(own_client, "observations", {"title": "one"}, 201)
    own_client.delete("/api/observation/1")
    assert _post(own_client, "observations", {"title": "two"}, 201)["results"][0]["ref"] == "2"
