"""Where you stand: commands and tools search the project of their folder unless told otherwise."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from samples import NOW
from workers import Worker

from memsvc.api.operations import OPERATIONS
from memsvc.configuration.settings import load_settings
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.mcp import answer_call

Search = Callable[..., str]


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository called shop, two commits old, with a folder in it."""
    path = tmp_path / "shop"
    (path / "src").mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    for message in ("first checkout", "second checkout"):
        git(path, "commit", "-q", "--allow-empty", "-m", message)
    return path


@pytest.fixture
def worker(live: Worker, repository: Path) -> Worker:
    """A worker that has imported shop, and knows one thing about another project."""
    run(live, repository, "import", "git", str(repository))
    body = {"title": "checkout of the docs", "project": "docs", "created_at_epoch": NOW}
    assert live.post("/api/observations", body).ok
    return live


def run(worker: Worker, folder: Path, *words: str) -> str:
    """What a command prints in a folder."""
    environment = {"MEMSVC_PORT": worker.port, "MEMSVC_HOME": str(worker.home)}
    with contextlib.chdir(folder):
        result = CliRunner().invoke(cli.memsvc, words, env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(params=["command", "tool"])
def search(request: pytest.FixtureRequest, worker: Worker) -> Search:
    """Search for what both projects know, by the command and by the tool."""

    def by_command(folder: Path, *flags: str) -> str:
        return run(worker, folder, "search", *flags, "checkout")

    def by_tool(folder: Path, *flags: str) -> str:
        home = str(worker.home / "none")
        settings = load_settings({"MEMSVC_HOME": home, "MEMSVC_PORT": worker.port})
        given = {"query": "checkout"} | ({"project": "*"} if flags else {})
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
            patch.delenv("CLAUDE_PROJECT_DIR", raising=False)
            patch.setenv("MEMSVC_PORT", worker.port)
            result = answer_call(settings, "search", given)
        (block,) = result.content
        assert not result.is_error
        return block.text  # type: ignore[union-attr]

    return by_command if request.param == "command" else by_tool


OURS = "scope: shop (--all-projects widens)"


def is_ours(text: str) -> bool:
    """Whether an answer is about shop alone, and says so."""
    return "first checkout" in text and "docs" not in text and OURS in text.splitlines()


def test_the_repository_of_the_folder_is_searched_and_named(
    search: Search, repository: Path
) -> None:
    assert is_ours(search(repository))
    assert is_ours(search(repository / "src"))


def clone(repository: Path, name: str, *words: str) -> Path:
    made = repository.parent / name
    git(repository, "clone", "-q", *words, f"file://{repository}", str(made))
    return made


@pytest.mark.parametrize("words", [(), ("--bare",), ("--mirror",), ("--no-checkout",)])
def test_a_clone_by_another_name_is_the_same_project(
    search: Search, repository: Path, words: tuple[str, ...]
) -> None:
    assert is_ours(search(clone(repository, "store front.git", *words)))


def test_a_shallow_clone_is_known_by_its_oldest_commit(search: Search, repository: Path) -> None:
    assert is_ours(search(clone(repository, "shallow", "--depth", "1")))


def test_a_detached_worktree_is_the_same_project(search: Search, repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "--detach", "../elsewhere", "HEAD~1")
    assert is_ours(search(repository.parent / "elsewhere"))


def test_a_worktree_of_a_renamed_bare_clone_is_the_same_project(
    search: Search, repository: Path
) -> None:
    bare = clone(repository, "bare.git", "--bare")
    git(bare, "worktree", "add", "-q", "../of bare", "main")
    assert is_ours(search(repository.parent / "of bare"))


def test_a_folder_without_repository_goes_by_its_name(search: Search, tmp_path: Path) -> None:
    folder = tmp_path / "plain" / "Shop"
    folder.mkdir(parents=True)
    assert is_ours(search(folder))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A folder that nothing is stored of."""
    folder = tmp_path / "never seen"
    folder.mkdir()
    return folder


def finds_both(text: str) -> bool:
    """Whether an answer is about both projects, and each row names its own."""
    return " shop: first checkout " in text and " docs: checkout of the docs " in text


def test_from_an_unknown_folder_all_projects_are_searched_and_the_answer_says_so(
    search: Search, plain: Path
) -> None:
    text = search(plain)
    assert finds_both(text)
    assert "scope: all projects (nothing is stored of never seen, this folder)" in text


def test_an_empty_repository_and_a_missing_git_leave_the_name(
    search: Search, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(plain, "init", "-q")
    assert finds_both(search(plain))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert finds_both(search(plain))
    assert is_ours(search(tmp_path / "shop"))


def test_all_projects_are_searched_on_request(search: Search, repository: Path) -> None:
    text = search(repository, "--all-projects")
    assert finds_both(text)
    assert "scope:" not in text


def test_from_the_root_folder_all_projects_are_searched(search: Search) -> None:
    text = search(Path("/"))
    assert finds_both(text)
    assert "scope:" not in text


@pytest.mark.parametrize("words", [("--project=docs", "checkout"), ("project:docs checkout",)])
def test_a_project_that_is_asked_for_is_no_default(
    worker: Worker, repository: Path, words: tuple[str, ...]
) -> None:
    text = run(worker, repository, "search", *words)
    assert "checkout of the docs" in text
    assert "first checkout" not in text
    assert "scope:" not in text


def test_around_a_record_its_own_project_is_shown(worker: Worker, repository: Path) -> None:
    text = run(worker, repository, "timeline", "3")
    assert "checkout of the docs" in text
    assert "first checkout" not in text
    assert "scope: docs (of 3; --all-projects widens)" in text


def test_the_page_of_recent_work_is_that_of_the_folder(
    worker: Worker, repository: Path, plain: Path
) -> None:
    assert "# Memory of shop" in run(worker, repository, "context")
    assert "\nscope: all projects" in run(worker, plain, "context")


def test_json_tells_the_scope_and_the_project_once(worker: Worker, repository: Path) -> None:
    page = json.loads(run(worker, repository, "search", "checkout", "--json"))
    assert f"scope: {page['scope']}" == OURS
    assert page["project"] == "shop"
    assert not [row for row in page["results"] if "project" in row]
    page = json.loads(run(worker, repository, "search", "checkout", "--json", "--all-projects"))
    assert "project" not in page
    assert sorted(row["project"] for row in page["results"]) == ["docs", "shop", "shop"]


def test_http_searches_all_projects_unless_it_is_given_a_folder(worker: Worker) -> None:
    found = [
        worker.get("/api/search", query="checkout", **given).json()
        for given in ({}, {"folder": "shop"}, {"folder": "shop", "project": "*"})
    ]
    assert [page["total"] for page in found] == [3, 2, 3]


def test_projects_can_be_asked_which_one_a_folder_is(worker: Worker, repository: Path) -> None:
    head = subprocess.check_output(["git", "-C", str(repository), "rev-parse", "HEAD"], text=True)
    names = [
        [each["project"] for each in worker.get("/api/projects", folder=f).json()["projects"]]
        for f in ("SHOP", head.strip(), "none", "0" * 40)
    ]
    assert names == [["shop"], ["shop"], [], []]


def test_reading_and_forgetting_have_no_default_project() -> None:
    defaulting = {operation.name for operation in OPERATIONS if operation.by_folder}
    assert {"search", "observations", "recent-context", "timeline", "semantic"} <= defaulting
    assert defaulting.isdisjoint({"batch", "forget", "observation", "projects", "stats"})


def test_a_history_can_be_imported_under_another_name(worker: Worker, repository: Path) -> None:
    other = clone(repository, "mirror", "--bare")
    run(worker, Path("/"), "import", "git", str(other), "--project", "storefront")
    names = [each["project"] for each in worker.get("/api/projects").json()["projects"]]
    assert sorted(names) == ["docs", "shop", "storefront"]


@pytest.fixture
def loaded() -> set[str]:
    """The modules that the hook loads."""
    code = (
        "import sys; from memsvc.entrypoints import hook; hook.page_within(60); "
        "print(*sorted(sys.modules))"
    )
    environment = {**os.environ, "MEMSVC_PORT": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def test_the_hook_loads_nothing_heavy(loaded: set[str]) -> None:
    assert "memsvc.entrypoints.place" in loaded
    assert loaded.isdisjoint({"marshmallow", "click", "numpy", "flask", "sqlite3", "apispec"})
