"""Chores fall behind what was done, unless somebody asks for them."""

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pages import get, refs_of, rows_of
from samples import DAY, NOW, named, numbered

from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.core.query import parse
from memsvc.core.ranking.chores import asks_for_chores, is_chore
from memsvc.core.records import Prompt

CHORES = """
Release 1.2|Release v1.0a9|release: 2.0|release version 3.1.2|Prepare for release|1.2.3
start version 2.1|Bump Black to black==26.3.1|Bump version to 1.1.0a2|Update poetry.lock
build(deps): bump x from 1.0 to 2.0|Update dependencies|Upgrade dependencies (#17)|Ran cog
Update CHANGELOG.md (#1063)|docs: update changelog for v13.15.3|Fix typo|Fixed typos in README
chore: merge changelog from 2.3.4 (#10839)|Fixed a typo, refs #12|Fix lint|Applied Black|Formatting
doc(cli): typo `commmand` -> `command`|console: Fix typo in docs for `self add` (#7848)|Whitespace
Reformat with black|flake8 fixes|Fix spelling errors|Merge branch 'main'|Update the lock file
[pre-commit.ci] pre-commit autoupdate (#4814)|docs: regenerate CHANGELOG from GitHub releases
"""
WORK = """
Release the lock|Release connections after use|Add release notes|Fix release workflow
Release memory when the worker stops|Version the API|Bump the limit to 50|Update lock command
Bump allocator for the parser|Fix typo detection|Typo correction for queries|Format dates in ISO
Formatting of dates follows the locale|format=full lists files|Lint rule for imports
Merge duplicate rows|Merge tags case-insensitively|Merge pull request #1 from a/fix-the-pool
Update dependency resolver|Update the row in place|Whitespace in paths is kept|Switch to black
Spelling suggestions|Black listed hosts are refused|Use ruff instead of flake8|Fix the lock file
Drop support for Python 3.7|Fix tests|Update README
"""


def lines(text: str) -> list[str]:
    return [each for line in text.strip().splitlines() for each in line.split("|")]


@pytest.mark.parametrize("title", lines(CHORES))
def test_a_title_that_tells_of_nothing_else_is_a_chore(title: str) -> None:
    assert is_chore(title)
    assert is_chore(title.upper())


@pytest.mark.parametrize("title", ["", *lines(WORK)])
def test_a_title_that_tells_of_work_is_no_chore(title: str) -> None:
    assert not is_chore(title)


@given(st.text(max_size=400))
def test_no_title_is_too_odd_to_judge(title: str) -> None:
    assert is_chore(title) in (True, False)


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("release notes", True),
        ("fix TYPO", True),
        ("what changed in 1.2", True),
        ('"v5.4.0" search', True),
        ("applied black", True),
        ("payment retry", False),
        ("top 10 rows", False),
    ],
)
def test_a_query_asks_for_chores_by_their_words_or_by_a_version(query: str, asks: bool) -> None:
    assert asks_for_chores(parse(query)) == asks


@pytest.fixture
def history(own_client: FlaskClient, own_store: SqliteStore) -> FlaskClient:
    chore, work = "docs: fix typo in parser", "A parser that keeps comments of every file it reads"
    own_store.write(numbered([named(chore), named(work, NOW - DAY)]))
    return own_client


@pytest.mark.parametrize("path", ["/api/search/observations", "/api/context/recent"])
def test_chores_fall_behind_what_was_done(history: FlaskClient, path: str) -> None:
    titles = [row["title"] for row in rows_of(get(history, path, query="parser"))]
    assert [is_chore(title) for title in titles] == [False, True]


def test_chores_come_first_where_they_are_asked_for(history: FlaskClient) -> None:
    page = get(history, "/api/search/observations", query="parser typo")
    assert is_chore(rows_of(page)[0]["title"])


def test_a_prompt_is_never_a_chore(own_client: FlaskClient, own_store: SqliteStore) -> None:
    asked = "fix typo in parser", "fix leak in parser"
    prompts = [Prompt(prompt_text=text, created_at_epoch=NOW - n) for n, text in enumerate(asked)]
    own_store.write(numbered(prompts))
    assert refs_of(get(own_client, "/api/search", query="parser")) == ["P1", "P2"]


def test_what_explain_says_of_a_chore_still_adds_up(history: FlaskClient) -> None:
    for row in rows_of(get(history, "/api/search", query="parser", explain=1)):
        parts = row["explain"]
        total = parts["lexical"] + parts["semantic"] + parts["recency"]
        assert total == pytest.approx(row["score"], abs=2e-4)
