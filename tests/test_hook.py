"""The plugin's hook at the start of a session: the start page soon, or nothing, and no failure."""

import contextlib
import functools
import json
import os
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import NOW, numbered
from workers import PATIENCE, Worker, patient_program, running_worker

from memsvc.adapters.sqlite.store import open_store
from memsvc.core.records import Observation, Summary
from memsvc.entrypoints.hook import page_within
from tests.documents import ROOT

SCRIPTS = Path(sys.executable).parent

Ran = subprocess.CompletedProcess[str]
Start = Callable[..., Ran]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Run the command of hooks.json as an agent does, in a folder of a project."""
    told = json.loads((ROOT / "hooks" / "hooks.json").read_text("utf-8"))
    (group,) = told["hooks"]["SessionStart"]
    (hook,) = group["hooks"]
    folder = tmp_path / "shop"
    folder.mkdir()

    def run(port: str, scripts: Path = SCRIPTS, **environment: str) -> Ran:
        path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [shutil.which("sh"), "-c", hook["command"]],
            env={**os.environ, "PATH": path, "MEMSVC_PORT": port, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return run


@pytest.fixture
def page(start: Start, tmp_path: Path) -> Start:
    """The same with a hook that waits as long as a busy machine takes."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    code = f"from memsvc.entrypoints import hook; hook.MAX_SECONDS = {PATIENCE}; hook.main()"
    words = shlex.join(patient_program(code))
    (scripts / "memsvc-hook").write_text(f"#!/bin/sh\nexec {words}\n")
    (scripts / "memsvc-hook").chmod(0o755)
    return functools.partial(start, scripts=scripts)


def says_nothing(ran: Ran) -> bool:
    return (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def remember(worker: Worker, title: str, project: str = "shop") -> None:
    assert worker.post("/api/observations", {"title": title, "project": project}).ok


def test_it_shows_the_memories_of_the_folders_project(live: Worker, page: Start) -> None:
    remember(live, "ours")
    remember(live, "theirs", "api")
    ran = page(live.port)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "# Memory of shop · newest 1 of 1" in ran.stdout
    assert "ours" in ran.stdout
    assert "theirs" not in ran.stdout


def test_a_folder_without_a_name_shows_the_memories_of_all_projects(
    live: Worker, page: Start
) -> None:
    remember(live, "x")
    assert "# Memory · newest 1 of 1" in page(live.port, CLAUDE_PROJECT_DIR="/").stdout


@pytest.fixture
def git(page: Start, tmp_path: Path) -> list[str]:
    """The git command in the folder shop of `page`, now a repository with a commit."""
    repository = tmp_path / "shop"
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    return git


def test_a_worktree_shows_the_memories_of_its_repository(
    live: Worker, page: Start, git: list[str], tmp_path: Path
) -> None:
    worktree = tmp_path / "elsewhere"
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True)
    assert "# Memory of shop" in page(live.port, CLAUDE_PROJECT_DIR=str(worktree)).stdout


def test_a_renamed_clone_shows_the_memories_of_its_project(
    live: Worker, page: Start, git: list[str], tmp_path: Path
) -> None:
    clone = tmp_path / "elsewhere"
    subprocess.run([*git, "clone", "-q", ".", str(clone)], check=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    known = {"title": "first", "project": "shop", "source": "git:shop", "source_id": head}
    assert live.post("/api/observations", known).ok
    assert "# Memory of shop" in page(live.port, CLAUDE_PROJECT_DIR=str(clone)).stdout


def test_without_a_worker_it_says_nothing_and_succeeds(page: Start, free_port: str) -> None:
    assert says_nothing(page(free_port))


def test_a_worker_that_never_answers_does_not_hold_the_session_up(
    start: Start, silent_port: str
) -> None:
    assert says_nothing(start(silent_port))


def test_a_worker_that_answers_a_letter_at_a_time_does_not_hold_the_session_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enough = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            for _ in range(int(PATIENCE / 0.05)):
                if enough.wait(0.05):
                    return
                connection.sendall(b"x")

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        monkeypatch.setenv("MEMSVC_PORT", str(listener.getsockname()[1]))
        assert page_within(0.3) == ""
        assert thread.is_alive(), "the answer was waited for to its end"
        enough.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_locked_store_is_read_all_the_same(live: Worker, page: Start) -> None:
    remember(live, "x")
    locker = sqlite3.connect(live.home / "memsvc.db", isolation_level=None)
    with contextlib.closing(locker):
        locker.execute("BEGIN EXCLUSIVE")
        ran = page(live.port)
    assert ran.returncode == 0
    assert "# Memory of shop · newest 1 of 1" in ran.stdout


@pytest.mark.slow
def test_ten_megabytes_of_memories_fit_on_the_page(tmp_path: Path, page: Start) -> None:
    home = tmp_path / "home"
    store = open_store(home / "memsvc.db")
    text = "all work and no play " * 10_000
    made = [
        Observation(title=f"{number} {text}", narrative=text, project="shop", created_at_epoch=NOW)
        for number in range(25)
    ]
    store.write(numbered([*made, Summary(request=text, learned=text, project="shop")]))
    store.close()
    with running_worker(home) as worker:
        ran = page(worker.port)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "# Memory of shop · newest" in ran.stdout
    assert len(ran.stdout) < 9000


@pytest.mark.parametrize("port", ["x", "-1", "99999"])
def test_bad_settings_do_not_fail_the_session(page: Start, port: str) -> None:
    assert says_nothing(page(port))


def test_without_memsvc_on_the_path_the_session_starts(start: Start, tmp_path: Path) -> None:
    assert says_nothing(start("1", PATH=str(tmp_path)))


def test_the_package_installs_the_script_that_the_hook_runs_and_it_never_fails() -> None:
    script = shutil.which("memsvc-hook", path=str(Path(sys.executable).parent))
    assert script
    assert Path(script).name in (ROOT / "hooks" / "hooks.json").read_text("utf-8")
    ran = subprocess.run([script], env={**os.environ, "MEMSVC_PORT": "x"}, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
