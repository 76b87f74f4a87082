"""No worker, a stuck one, and the one command that the skill names for both."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result
from workers import PATIENCE

from memsvc.configuration.settings import load_settings
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.cli import operations as commands
from memsvc.entrypoints.client import PROBE_SECONDS, worker_address
from memsvc.entrypoints.skill.install import skill_folder

BOUND = 2.0
"""Seconds that a command may wait before it says that no worker answers."""


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli.memsvc, words, env=environment)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMSVC_HOME", str(tmp_path))
    monkeypatch.setenv("MEMSVC_SEMANTIC", "off")
    monkeypatch.delenv("MEMSVC_PORT", raising=False)
    return tmp_path


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each request would wait at most: to connect and to be answered; it waits less."""
    waited: list[float] = []
    send = requests.adapters.HTTPAdapter.send

    def send_in_haste(self: Any, request: Any, timeout: Any = None, **options: Any) -> Any:
        waited.append(sum(timeout))
        return send(self, request, timeout=(PATIENCE, 0.01), **options)

    monkeypatch.setattr("memsvc.entrypoints.client.PROBE_SECONDS", PROBE_SECONDS)
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send_in_haste)
    return waited


COMMANDS = [
    ["search", "observations", "double", "charge"],
    ["read", "51,87"],
    ["context", "timeline", "51"],
    ["health"],
    ["get", "/api/stats"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_a_worker_a_command_exits_with_3_and_names_the_command_that_starts_one(
    words: list[str], free_port: str, waits: list[float]
) -> None:
    result = run(*words, MEMSVC_PORT=free_port)
    assert sum(waits) < BOUND
    assert result.exit_code == commands.NO_WORKER == 3
    assert re.fullmatch(
        rf"memsvc: No worker is running at http://127\.0\.0\.1:{free_port} \(\w+\)\. "
        r"Start one: memsvc start\n",
        result.stderr,
    )
    assert not result.stdout


def test_something_that_listens_and_never_answers_holds_nobody_up(
    silent_port: str, waits: list[float]
) -> None:
    result = run("search", "double", "charge", MEMSVC_PORT=silent_port)
    assert 0 < sum(waits) < BOUND
    assert result.exit_code == commands.NO_WORKER
    assert "does not answer" in result.stderr
    assert "MEMSVC_PORT=0 memsvc start" in result.stderr


def test_the_skill_names_the_exit_code_and_the_command() -> None:
    text = (skill_folder() / "SKILL.md").read_text("utf-8")
    assert "Exit code 3" in text
    assert "`memsvc start`" in text


def start(port: str) -> subprocess.CompletedProcess[str]:
    """`memsvc start` as a process of its own: the worker outlives it."""
    return subprocess.run(
        [sys.executable, "-m", "memsvc", "start"],
        env={**os.environ, "MEMSVC_PORT": port},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_start_brings_up_a_worker_that_later_commands_find_and_stop_ends(
    home: Path, free_port: str
) -> None:
    assert run("search", "anything", MEMSVC_PORT=free_port).exit_code == commands.NO_WORKER
    started = start("0")
    try:
        assert started.returncode == 0, started.stderr
        assert run("address").stdout.strip() == started.stdout.split()[-1]
        assert run("search", "anything").exit_code == 0
        assert run("start").stdout.startswith("memsvc is already running on ")
    finally:
        stopped = run("stop")
    assert stopped.stdout == "stopped\n"
    assert not (home / "worker.json").exists()
    assert run("stop").stdout == "no worker is running for this store\n"


def test_start_listens_where_it_is_told(free_port: str) -> None:
    started = start(free_port)
    try:
        assert started.stdout == f"memsvc is running on http://127.0.0.1:{free_port}\n"
        assert run("health", MEMSVC_PORT=free_port).exit_code == 0
    finally:
        assert run("stop", MEMSVC_PORT=free_port).stdout == "stopped\n"


@pytest.mark.usefixtures("waits")
def test_starting_on_a_port_in_use_is_one_sentence(silent_port: str) -> None:
    result = run("start", MEMSVC_PORT=silent_port)
    assert result.exit_code == commands.FAILED
    assert re.fullmatch(rf"memsvc: .*Port {silent_port} is in use.*\n", result.stderr)


@pytest.mark.parametrize(
    ("port", "expected"),
    [("", "http://127.0.0.1:4321"), ("0", "http://127.0.0.1:4321"), ("99", "http://127.0.0.1:99")],
    ids=["not set", "any", "set"],
)
def test_the_address_is_the_port_that_is_set_else_the_one_the_worker_wrote(
    port: str, expected: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "worker.json").write_text(json.dumps({"pid": 1, "host": "127.0.0.1", "port": 4321}))
    monkeypatch.setenv("MEMSVC_PORT", port)
    assert worker_address(load_settings()) == expected


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"port": "x"}', '{"host": "h"}', "null"])
def test_a_damaged_worker_file_is_as_good_as_none(damage: str, home: Path) -> None:
    (home / "worker.json").write_text(damage)
    assert worker_address(load_settings()) == "http://127.0.0.1:37777"
