"""Issues, versions and files by their names, as an agent asks for them."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import NOW

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.naming.names import names_in
from memsvc.core.records import Observation


def write(store: SqliteStore, *records: Any) -> None:
    store.write(
        Observation(source="t", source_id=str(n), created_at_epoch=NOW - n, **record)
        for n, record in enumerate(records)
    )


def found(client: FlaskClient, query: str, **given: Any) -> list[str]:
    answer = client.get("/api/search/observations", query_string={"query": query, **given})
    return [row["title"] for row in answer.get_json()["results"]]


NUMBERS = [{"title": f"1025 rows, 1025 bytes {'1025 ' * n}"} for n in range(60)]
LONG = "A long story of many other things. " * 40


@pytest.mark.parametrize("query", ["#1025", "GH-1025", "issue 1025", "issues/1025", "facet #1025"])
@pytest.mark.parametrize(
    "written",
    ["#1025", "GH-1025", "(#1025)", "Closes #1025.", "https://example.org/a/b/issues/1025#x"],
)
def test_an_issue_is_found_before_records_that_merely_have_its_number(
    own_store: SqliteStore, own_client: FlaskClient, query: str, written: str
) -> None:
    write(own_store, *NUMBERS, {"title": "Named", "narrative": f"{LONG} {written}"})
    assert found(own_client, query)[0] == "Named"


@pytest.mark.parametrize("query", ["1.0a9", "v1.0a9", "V1.0A9", "==1.0a9", "release 1.0a9?"])
@pytest.mark.parametrize("written", ["1.0a9", "v1.0a9", "datasette==1.0a9,", "(1.0a9)."])
def test_a_version_is_found_before_others_that_begin_or_end_like_it(
    own_store: SqliteStore, own_client: FlaskClient, query: str, written: str
) -> None:
    near = ["1.0", "1.0a90", "11.0a9", "1.0a9.1", "0.1.0a9", "1.0 a9", "a9 a9 1.0 1.0", "0a9"]
    write(
        own_store,
        *({"title": f"release {each}"} for each in near),
        {"title": "Named", "narrative": f"{LONG} {written}"},
    )
    assert found(own_client, query)[0] == "Named"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#12 and GH-13, issues/14 or PR 15", ["#12", "#13", "#14", "#15"]),
        ("issue #7 again #7", ["#7"]),
        ("v1.2.3 is 1.2.3, not 1.2", ["1.2.3", "1.2"]),
        ("a1b2c3d and 1234567", ["a1b2c3d"]),
        ("1025 rows &#39; C# python3.12 defaced", []),
        ("", []),
    ],
)
def test_names_are_told_from_plain_words(text: str, names: list[str]) -> None:
    assert [name.text for name in names_in(text)] == names


@pytest.mark.parametrize("query", ["views.py", "test_cli.py"])
def test_a_file_name_without_a_path_finds_what_touched_it_in_any_folder(
    own_store: SqliteStore, own_client: FlaskClient, query: str
) -> None:
    near = [
        {"title": "The views of the cli", "files_read": (f"src/test_views/cli_{n}.py", f"{n}.py")}
        for n in range(9)
    ]
    touched = [
        {"title": f"Touched {n}", "files_modified": ("x/y.py", f"deep/{n}/{query}", "README.md")}
        for n in range(3)
    ]
    write(own_store, *near, *touched)
    assert {*found(own_client, query)[:3]} == {"Touched 0", "Touched 1", "Touched 2"}
    asked = {"filePath": query}
    body = own_client.get("/api/search/by-file", query_string=asked).get_json()
    assert body["total"] == 3
