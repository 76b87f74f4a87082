"""The plugin's hook at the start of a session: the start page soon, or nothing, and no failure."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Worker, start_worker
from samples import NOW, numbered

from memsvc.adapters.sqlite.store import open_store
from memsvc.core.records import Observation, Summary
from memsvc.entrypoints.hook import page_in_time
from tests.documents import ROOT

PLENTY = 30.0
"""Seconds that no test comes near to: what ends sooner ends for a reason of its own."""

Start = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Run the command of hooks.json as an agent does, in a folder of a project."""
    told = json.loads((ROOT / "hooks" / "hooks.json").read_text("utf-8"))
    (group,) = told["hooks"]["SessionStart"]
    (hook,) = group["hooks"]
    folder = tmp_path / "shop"
    folder.mkdir()

    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(port: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [shutil.which("sh"), "-c", hook["command"]],
            env={**os.environ, "PATH": scripts, "MEMSVC_PORT": port, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PLENTY,
        )

    return run


def port_of(worker: Worker) -> str:
    return worker.address.rsplit(":", 1)[1]


def says_nothing(ran: "subprocess.CompletedProcess[str]") -> bool:
    return (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_it_shows_the_memories_of_the_folders_project(live: Worker, start: Start) -> None:
    for project, title in (("shop", "ours"), ("api", "theirs")):
        body = {"title": title, "project": project}
        live.session.post(f"{live.address}/api/observations", json=body)
    ran = start(port_of(live))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "# Memory of shop · newest 1 of 1" in ran.stdout
    assert "ours" in ran.stdout
    assert "theirs" not in ran.stdout


def test_a_folder_without_a_name_shows_the_memories_of_all_projects(
    live: Worker, start: Start
) -> None:
    live.session.post(f"{live.address}/api/observations", json={"title": "x", "project": "shop"})
    assert "# Memory · newest 1 of 1" in start(port_of(live), CLAUDE_PROJECT_DIR="/").stdout


def test_a_worktree_shows_the_memories_of_its_repository(
    live: Worker, start: Start, tmp_path: Path
) -> None:
    repository, worktree = tmp_path / "shop", tmp_path / "elsewhere"
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True)
    ran = start(port_of(live), CLAUDE_PROJECT_DIR=str(worktree))
    assert "# Memory of shop" in ran.stdout


def test_without_a_worker_it_says_nothing_and_succeeds(start: Start, free_port: str) -> None:
    assert says_nothing(start(free_port))


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
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not enough.wait(0.05):
                connection.sendall(b"x")

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        monkeypatch.setenv("MEMSVC_PORT", str(listener.getsockname()[1]))
        assert page_in_time(0.3) == ""
        enough.set()
        thread.join(PLENTY)
    assert not thread.is_alive()


def test_a_locked_store_is_read_all_the_same(live: Worker, start: Start) -> None:
    live.session.post(f"{live.address}/api/observations", json={"title": "x", "project": "shop"})
    locker = sqlite3.connect(live.home / "memsvc.db", isolation_level=None)
    try:
        locker.execute("BEGIN EXCLUSIVE")
        ran = start(port_of(live))
    finally:
        locker.close()
    assert ran.returncode == 0
    assert "# Memory of shop · newest 1 of 1" in ran.stdout


def test_ten_megabytes_of_memories_fit_on_the_page(tmp_path: Path, start: Start) -> None:
    home = tmp_path / "home"
    store = open_store(home / "memsvc.db")
    text = "all work and no play " * 10_000
    made = [
        Observation(title=f"{number} {text}", narrative=text, project="shop", created_at_epoch=NOW)
        for number in range(25)
    ]
    store.write(numbered([*made, Summary(request=text, learned=text, project="shop")]))
    store.close()
    process = start_worker(home, MEMSVC_SEMANTIC="off")
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    try:
        ran = start(address.rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.communicate(timeout=PLENTY)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "# Memory of shop · newest" in ran.stdout
    assert len(ran.stdout) < 9000


@pytest.mark.parametrize("port", ["x", "-1", "99999"])
def test_bad_settings_do_not_fail_the_session(start: Start, port: str) -> None:
    assert says_nothing(start(port))


def test_without_memsvc_on_the_path_the_session_starts(start: Start, tmp_path: Path) -> None:
    assert says_nothing(start("1", PATH=str(tmp_path)))


def test_the_package_installs_the_script_that_the_hook_runs_and_it_never_fails() -> None:
    script = shutil.which("memsvc-hook", path=str(Path(sys.executable).parent))
    assert script
    assert Path(script).name in (ROOT / "hooks" / "hooks.json").read_text("utf-8")
    ran = subprocess.run([script], env={**os.environ, "MEMSVC_PORT": "x"}, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
