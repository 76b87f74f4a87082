"""by-file: a path matches itself, what ends in it, what lies below it; only `*` is special."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from samples import OBSERVATIONS, SUMMARIES

from memsvc.core.records import SHAPES, Ref, kind_of


def _files(ask: Any, path: str) -> set[str]:
    results = ask("/api/search/by-file", filePath=path, limit=100)["results"]
    assert set(results) == {"observations", "sessions"}
    return {row["ref"] for rows in results.values() for row in rows}


@pytest.mark.parametrize(
    ("path", "refs"),
    [
        ("src/payments/retry.py", {"1", "11", "S1"}),
        ("retry.py", {"1", "11", "S1"}),
        ("payments/retry.py", {"1", "11", "S1"}),
        ("vendor/src/payments/retry.py", {"11"}),
        ("src/payments", {"1", "2", "11", "S1"}),
        ("src/payments/", {"1", "2", "11", "S1"}),
        ("payments", {"1", "2", "11", "S1"}),
        ("vendor", {"11"}),
        ("y.py", set()),
        ("etry.py", set()),
        ("src/pay", set()),
        ("src/payments/retry", set()),
    ],
)
def test_a_path_matches_itself_its_endings_and_what_is_below_it(
    ask: Any, path: str, refs: set[str]
) -> None:
    assert _files(ask, path) == refs


@pytest.mark.parametrize(
    ("path", "refs"),
    [
        ("docs/100%_done.txt", {"6"}),
        ("100%_done.txt", {"6"}),
        ("docs/100_done.txt", set()),
        ("docs/%", set()),
        ("src/snake_case.py", {"9"}),
        ("src/snake.case.py", set()),
        ("src_payments/client.py", set()),
        ("src?payments/client.py", set()),
        ("src[X]payments/client.py", set()),
    ],
)
def test_percent_underscore_and_the_like_are_ordinary(ask: Any, path: str, refs: set[str]) -> None:
    assert _files(ask, path) == refs


@pytest.mark.parametrize(
    ("glob", "refs"),
    [
        ("src/payments/*.py", {"1", "2", "11", "S1"}),
        ("*.ts", {"3", "4"}),
        ("src/parser/*", {"6"}),
        ("docs/100%_*", {"6"}),
        ("s*c?payments*", set()),
        ("*[X]*", set()),
        ("srcX*", {"9"}),
    ],
)
def test_a_star_makes_a_glob_in_which_nothing_else_is_special(
    ask: Any, glob: str, refs: set[str]
) -> None:
    assert _files(ask, glob) == refs


@pytest.mark.parametrize(
    ("path", "refs"),
    [
        ("CLAUDE.md", {"13"}),
        ("./CLAUDE.md", {"13"}),
        (".\\CLAUDE.md", {"13"}),
        ("././/CLAUDE.md", {"13"}),
        ("docs/guide.md", {"13"}),
        ("docs\\guide.md", {"13"}),
        ("./src\\payments/", {"1", "2", "11", "S1"}),
    ],
)
def test_slashes_and_a_leading_dot_make_no_difference(ask: Any, path: str, refs: set[str]) -> None:
    assert _files(ask, path) == refs


@pytest.mark.parametrize("path", ["", " ", ",", "%20"])
def test_an_empty_path_is_refused(client: FlaskClient, path: str) -> None:
    assert client.get("/api/search/by-file", query_string=f"filePath={path}").status_code == 400


@pytest.mark.parametrize(
    "path", [".", "./", "/", "//", "\\", "..", "*" * 30, "a" * 1000, "/" * 300]
)
def test_odd_paths_are_ordinary_questions(ask: Any, path: str) -> None:
    assert isinstance(ask("/api/search/by-file", filePath=path)["total"], int)


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("src/paymnts/client.py", "src/payments/client.py"),
        ("readme.md", "README.md"),
        ("src/payments/cleint.py", "src/payments/client.py"),
        ("retri.py", "src/payments/retry.py"),
    ],
)
def test_a_path_that_no_record_names_leads_to_the_nearest(ask: Any, path: str, near: str) -> None:
    page = ask("/api/search/by-file", filePath=path)
    assert (page["total"], page["count"]) == (0, 0)
    assert near in page["nearest"]["file"]


def test_several_paths_are_alternatives(ask: Any) -> None:
    assert _files(ask, "README.md,CLAUDE.md") == {"4", "13"}
    assert _files(ask, "README.md,*.ts,src/parser/*") == {"3", "4", "6"}


def test_a_lone_star_selects_all_that_names_a_file(ask: Any) -> None:
    named = {
        str(Ref(kind_of(record), int(record.source_id)))
        for record in (*OBSERVATIONS, *SUMMARIES)
        if any(getattr(record, cell) for cell in SHAPES[kind_of(record)].files)
    }
    assert _files(ask, "*") == _files(ask, "**") == named


@pytest.mark.parametrize("form", ["f{}.py", "f{}*", "*f{}"])
def test_a_long_list_of_paths_is_no_fault_of_ours(client: FlaskClient, form: str) -> None:
    paths = ",".join(form.format(number) for number in range(2000))
    response = client.get("/api/search/by-file", query_string={"filePath": paths})
    assert response.status_code in (200, 400)


def test_a_query_ranks_within_the_selection(ask: Any) -> None:
    page = ask("/api/search/by-file", filePath="src/payments", query="idempotency lock")
    assert page["results"]["observations"][0]["ref"] == "2"
    assert "window" not in page
    assert page["total"] < 5


def test_the_folder_of_a_windows_path_is_found(own_client: FlaskClient) -> None:
    body = {"title": "x", "files_read": ["C:\\repo\\src\\main.py", "/home/u/repo/src/other.py"]}
    own_client.post("/api/observations", json=body)
    for path in ("src/main.py", "repo/src", "C:/repo", "/home/u/repo", "home/u", "other.py"):
        page = own_client.get("/api/search/by-file", query_string={"filePath": path}).get_json()
        assert page["total"] == 1, path
