"""The history of small repositories made in the test, as memories."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from memsvc.adapters.importers.commit_types import commit_type
from memsvc.adapters.importers.git import read_git
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.importing.ingest import ingest
from memsvc.core.errors import SourceUnreadable
from memsvc.core.filters import Filter
from memsvc.core.query import parse
from memsvc.core.records import Kind

WHEN = "2026-10-13T23:30:00+09:00"


class Repository:
    """A git repository under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, **environment: str) -> str:
        identity = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "C",
            "GIT_COMMITTER_EMAIL": "c@example.org",
            "GIT_AUTHOR_DATE": WHEN,
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            env={**os.environ, **identity, **environment},
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()

    def commit(self, message: str, *files: str, **environment: str) -> str:
        for name in files:
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(message)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, **environment)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop-api")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store(tmp_path / "memories.db")
    yield opened
    opened.close()


def commits(path: Path) -> list[Any]:
    return list(read_git(path).items)


def test_a_commit_becomes_an_observation(repository: Repository) -> None:
    message = "feat(cart)!: count lines\n\nOne query. It was 124 before.\n\nMore."
    commit = repository.commit(message, "src/cart.ts", "test/cart.ts")
    [record] = commits(repository.path)
    assert record.title == "feat(cart)!: count lines"
    assert record.subtitle == "One query."
    assert record.narrative == "One query. It was 124 before.\n\nMore."
    assert record.type == "feature"
    assert record.files_modified == ("src/cart.ts", "test/cart.ts")
    assert (record.source, record.source_id) == ("git:shop-api", commit)
    assert record.created_at_epoch == 1_791_901_800_000


def test_a_commit_is_found_by_who_wrote_it(repository: Repository, store: SqliteStore) -> None:
    repository.commit("one", "a", GIT_AUTHOR_NAME="Zoë van Houten")
    repository.commit("two", "b", GIT_AUTHOR_NAME="Bob")
    ingest(store, read_git(repository.path))
    for text in ("zoe", "author:houten", 'author:"Zoë van Houten"'):
        [hit] = store.rank(Kind.OBSERVATION, parse(text), Filter(), 9)
        assert store.records([hit.ref])[hit.ref].author == "Zoë van Houten"


def test_a_repeated_import_adds_authors_and_embeds_nothing_anew(
    repository: Repository, store: SqliteStore
) -> None:
    repository.commit("one", "a")
    [record] = commits(repository.path)
    store.write([replace(record, author="")])
    vectors = SqliteVectors(store.connections)
    [pending] = vectors.pending(9)
    vectors.keep_vectors([(pending, numpy.ones((1, 4)))], "f")
    [receipt] = store.write([record])
    assert receipt.outcome == "updated"
    assert vectors.pending(9) == []


def test_commits_of_one_author_day_are_one_work_session(repository: Repository) -> None:
    repository.commit("one", "a")
    repository.commit("two", "b", GIT_AUTHOR_DATE="2026-10-14T00:10:00+09:00")
    sessions = [record.session_id for record in commits(repository.path)]
    assert sessions == ["shop-api-2026-10-13", "shop-api-2026-10-14"]


def test_history_comes_oldest_first_and_without_merges(repository: Repository) -> None:
    repository.commit("first", "a")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("second", "b")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert [record.title for record in commits(repository.path)] == ["first", "second"]


@pytest.mark.parametrize(
    "name", ["ü n.txt", "日本.md", 'quo"te', "new\nline", "\nfirst", " blank "]
)
def test_unusual_file_names_survive(repository: Repository, name: str) -> None:
    repository.commit("odd", name, "plain")
    assert set(commits(repository.path)[0].files_modified) == {name, "plain"}


def test_a_commit_without_files_and_one_after_it_keep_apart(repository: Repository) -> None:
    repository.commit("empty")
    repository.commit("full", "a")
    assert [record.files_modified for record in commits(repository.path)] == [(), ("a",)]


def test_a_rename_names_both_files(repository: Repository) -> None:
    repository.commit("add", "old.ts")
    repository.git("mv", "old.ts", "new.ts")
    repository.commit("move")
    assert set(commits(repository.path)[1].files_modified) == {"old.ts", "new.ts"}


def test_trailers_are_dropped_and_references_stay(repository: Repository) -> None:
    trailers = "Fixes: #12\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>\nCc: d@e"
    repository.commit(f"fix: it\n\nThe reason.\n\n{trailers}", "a")
    assert commits(repository.path)[0].narrative == "The reason.\n\nFixes: #12"


def test_text_that_is_not_utf8_is_tolerated(repository: Repository) -> None:
    message = repository.path.parent / "message"
    message.write_bytes(b"caf\xe9 \xff\n")
    repository.git("commit", "-q", "--allow-empty", "-F", str(message))
    [record] = commits(repository.path)
    assert record.title.startswith("caf")


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        ("fix: charge once", "bugfix"),
        ("fix(api)!: charge once", "bugfix"),
        ("FEAT: gift cards", "feature"),
        ("refactor(db): split", "refactor"),
        ("docs: fix a typo", "change"),
        ("chore: add a linter", "change"),
        ("perf: fewer queries", "change"),
        ("test: crash of the worker", "change"),
        ("Fixed the crash in webhook", "bugfix"),
        ("Add gift cards", "feature"),
        ("Introduce a cache", "feature"),
        ("Rename Cart to Basket", "refactor"),
        ("Simplify the pool", "refactor"),
        ("Switch to Postgres for sessions", "decision"),
        ("Drop Redis", "decision"),
        ("Drop Python 2.7 and 3.5", "decision"),
        ("drop support for pip <19.0.0 (#8894)", "decision"),
        ("ci: drop the nightly tests because nobody reads them", "decision"),
        ("Migrate from flake8 to ruff", "decision"),
        ("Move to native tags gathering (#9304)", "decision"),
        ("sources: deprecate priority 'default'", "decision"),
        ("cmd/install: mark --remove-untracked as deprecated", "decision"),
        ("refactor: deprecate the pool", "decision"),
        ("Adopt ruff", "decision"),
        ("No longer depend on twine to upload", "decision"),
        ("Prefer wheels over source distributions", "decision"),
        ("Replace `optparse` with `argparse`", "decision"),
        ("use OIDC instead of token for publishing (#2647)", "decision"),
        ("Revert to Postgres", "decision"),
        ("Drop table button", "change"),
        ("Show a drop-down of tables", "change"),
        ("treat a reset as a dropped connection", "change"),
        ("documents: remember what was decided", "change"),
        ("inspection: log less and switch to debug", "change"),
        ("Adopters are listed in the README", "change"),
        ("Replace os.path with posixpath", "change"),
        ("Replace existing rows when a key is given", "change"),
        ("refactor: use suppress instead of pass", "refactor"),
        ("fix: use POST instead of GET", "bugfix"),
        ("docs: deprecate the old guide", "change"),
        ('Revert "Switch to Postgres"', "change"),
        ("Update dependencies", "change"),
        ("Prefix: address lookup", "change"),
        ("", "change"),
    ],
)
def test_the_type_comes_from_the_prefix_or_else_the_wording(subject: str, kind: str) -> None:
    assert commit_type(subject) == kind


def test_concepts_come_from_the_wording(repository: Repository) -> None:
    repository.commit("fix: pool\n\nUse finally instead of catch, because COMMIT fails.", "a")
    [record] = commits(repository.path)
    assert record.concepts == ("problem-solution", "why-it-exists", "trade-off")


def test_worktrees_and_subfolders_belong_to_the_same_project(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("one", "deep/er/a")
    repository.git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    for folder in (repository.path / "deep", tmp_path / "elsewhere"):
        assert [record.project for record in commits(folder)] == ["shop-api"]


def test_a_bare_repository_goes_by_its_name(repository: Repository, tmp_path: Path) -> None:
    repository.commit("one", "a")
    bare = tmp_path / "shop-web.git"
    repository.git("clone", "-q", "--bare", str(repository.path), str(bare))
    assert commits(bare)[0].project == "shop-web"


def test_a_huge_commit_lists_a_part_of_its_files_and_says_so(repository: Repository) -> None:
    repository.commit("import the world", *(f"f{i:04d}" for i in range(1010)))
    [record] = commits(repository.path)
    assert len(record.files_modified) == 1000
    assert record.facts == ("Changed 1,010 files; the first 1,000 are listed.",)


def test_a_second_import_adds_only_new_commits(store: SqliteStore, repository: Repository) -> None:
    repository.commit("one", "a")
    repository.commit("two", "a")
    reading = read_git(repository.path)
    assert ingest(store, reading).stored == 2
    assert (reading.total, reading.position()) == (2, 2)
    repository.commit("three", "a")
    report = ingest(store, read_git(repository.path))
    assert (report.stored, report.unchanged) == (1, 2)
    assert store.count(Kind.OBSERVATION, Filter((("file", ("a",)),))) == 3


def test_importing_again_gives_stored_commits_their_new_type(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("Drop table button", "a")
    store = open_store(tmp_path / "memsvc.db")
    with monkeypatch.context() as patch:
        patch.setattr("memsvc.adapters.importers.git.commit_type", lambda subject: "decision")
        ingest(store, read_git(repository.path))
    report = ingest(store, read_git(repository.path))
    assert (report.stored, report.updated) == (0, 1)
    assert store.count(Kind.OBSERVATION, Filter((("type", ("change",)),))) == 1
    store.close()


def test_breaking_off_ends_git(repository: Repository) -> None:
    for number in range(3):
        repository.commit(f"commit {number}", "a")
    items = read_git(repository.path).items
    next(items)
    items.close()  # type: ignore[attr-defined]


def test_variables_of_a_git_hook_do_not_lead_elsewhere(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", "a")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert len(commits(repository.path)) == 1


def test_a_folder_without_a_repository_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="is not in a git repository"):
        read_git(tmp_path)


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="There is no folder"):
        read_git(tmp_path / "none")


def test_a_repository_without_commits_is_one_sentence(repository: Repository) -> None:
    with pytest.raises(SourceUnreadable, match="has no commits yet"):
        read_git(repository.path)


def test_missing_git_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnreadable, match="git is not installed"):
        read_git(tmp_path)
