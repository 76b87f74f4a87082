"""The home folder: nobody else can read what is in it, or have it written elsewhere."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result
from workers import PATIENCE, Worker, running_worker, start_worker, wait_until

from memsvc.entrypoints.cli import main as cli

KEPT = "nothing of memsvc\n"
RECORD = '{"title": "x"}\n'


def run(home: Path, *words: str, port: str = "") -> Result:
    environment = {"MEMSVC_HOME": str(home), "MEMSVC_SEMANTIC": "off", "MEMSVC_PORT": port}
    return CliRunner().invoke(cli.memsvc, words, env=environment)


@pytest.fixture(autouse=True)
def lax() -> Iterator[None]:
    """The usual umask, under which others may read new files; commands here set their own."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that has nothing to do with memsvc."""
    path = tmp_path / "victim"
    path.write_text(KEPT)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    return folder


def open_to_others(home: Path) -> dict[str, str]:
    """What others may do anything with: the folder itself and all below, with their modes."""
    modes = {path: path.lstat().st_mode for path in (home, *home.rglob("*"))}
    return {path.name: oct(mode) for path, mode in modes.items() if mode & 0o077}


def indexed(worker: Worker) -> bool:
    state = worker.get("/api/readiness").json()["parts"]["semantic"]
    return bool(state["ok"]) and state["waiting"] == 0


def test_all_that_a_worker_writes_is_private(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    with running_worker(home, MEMSVC_SEMANTIC="chroma") as worker:
        worker.post("/api/observations", {"title": "a marmot"})
        wait_until(lambda: indexed(worker))
        names = {path.name for path in home.rglob("*")}
        assert names >= {"memsvc.db", "memsvc.db-wal", "memsvc.db-shm", "worker.json", "token"}
        assert "chroma.sqlite3" in names
        assert open_to_others(home) == {}


@pytest.mark.parametrize("words", [["token"], ["import", "jsonl", "{records}"], ["trial"]])
def test_all_that_a_command_writes_is_private(words: list[str], tmp_path: Path) -> None:
    home, records = tmp_path / "home", tmp_path / "records.jsonl"
    records.write_text(RECORD)
    if words == ["trial"]:  # serves until it is stopped
        words = ["status"]
        run(home, "import", "sample")
    assert run(home, *[word.format(records=records) for word in words]).exit_code == 0
    assert home.is_dir()
    assert open_to_others(home) == {}


def test_what_an_older_version_left_open_is_closed_and_the_rest_is_left_alone(home: Path) -> None:
    (home / "index" / "chroma").mkdir(parents=True)
    names = ["memsvc.db-wal", "memsvc.db-shm", "worker.log", "token", "index/chroma/x.bin"]
    strange = home / "notes.txt"
    for path in (*(home / name for name in names), strange):
        path.write_text("")
    (home / "memsvc.db").touch(0o666)
    assert run(home, "token").exit_code == 0
    assert open_to_others(home) == {"notes.txt": oct(stat.S_IFREG | 0o644)}


def test_permissions_are_only_ever_taken_away(home: Path) -> None:
    log = home / "worker.log"
    log.write_text("")
    log.chmod(0o444)
    run(home, "token")
    assert stat.S_IMODE(log.stat().st_mode) == 0o400


@pytest.mark.parametrize("mode", [0o1777, 0o755])
def test_a_folder_with_other_purposes_stays_open(
    mode: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.chmod(mode)
    if mode == 0o755:
        monkeypatch.setenv("HOME", str(home))
    assert run(home, "token").exit_code == 0
    assert stat.S_IMODE(home.stat().st_mode) == mode
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("words", [["token"], ["index"], ["start"]])
def test_a_home_of_somebody_else_is_refused_in_one_sentence(
    words: list[str], linked: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = home
    if linked:
        given = home.with_name("link")
        given.symlink_to(home)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    result = run(given, *words, port="0")  # not where another worker may listen
    assert result.exit_code == 1
    assert "belongs to another user" in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(home.iterdir()) == []


def test_a_home_of_our_own_behind_a_link_is_used_and_closed(home: Path) -> None:
    link = home.with_name("link")
    link.symlink_to(home)
    assert run(link, "token").exit_code == 0
    assert open_to_others(home) == {}


def test_a_home_that_is_a_file_is_refused_in_one_sentence(victim: Path) -> None:
    result = run(victim, "token")
    assert result.exit_code == 1
    assert "MEMSVC_HOME" in result.stderr
    assert victim.read_text() == KEPT


def test_a_user_without_a_folder_of_their_own_needs_none(home: Path) -> None:
    code = "import os, pwd; pwd.getpwuid = {}.__getitem__; os.environ.pop('HOME', None); "
    code += "from memsvc.entrypoints.cli.main import main; main()"
    environment = {"MEMSVC_HOME": str(home), "MEMSVC_PORT": "0", "MEMSVC_SEMANTIC": "off"}
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("memsvc is running on ")
        process.terminate()
    assert open_to_others(home) == {}


# -- links planted in the home -------------------------------------------------------------------


def test_a_link_in_place_of_worker_json_is_replaced_and_its_target_untouched(
    home: Path, victim: Path
) -> None:
    (home / "worker.json").symlink_to(victim)
    with running_worker(home) as worker:
        told = json.loads((home / "worker.json").read_text())
        assert told["port"] == int(worker.port)
        assert not (home / "worker.json").is_symlink()
        assert worker.stop() == 0
    assert victim.read_text() == KEPT
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
    assert not (home / "worker.json").exists()
    assert list(home.glob(".*")) == [], "a temporary file was left"


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_link_in_place_of_the_log_is_replaced_and_its_target_untouched(
    kind: str, home: Path, victim: Path
) -> None:
    log = home / "worker.log"
    if kind == "symbolic":
        log.symlink_to(victim)
    else:
        os.link(victim, log)
    try:
        started = _start(home)
        assert started.returncode == 0, started.stderr
    finally:
        stopped = run(home, "stop")
    assert stopped.stdout == "stopped\n"
    assert victim.read_text() == KEPT
    assert log.read_text() != KEPT
    assert not log.is_symlink()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def _start(home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"MEMSVC_HOME": str(home), "MEMSVC_PORT": "0", "MEMSVC_SEMANTIC": "off"}
    return subprocess.run(
        [sys.executable, "-m", "memsvc", "start"],
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_link_in_place_of_the_token_is_not_followed(home: Path, victim: Path) -> None:
    planted = "a-token-that-a-stranger-knows\n"
    victim.write_text(planted)
    (home / "token").symlink_to(victim)
    given = run(home, "token").stdout
    assert given != planted
    assert (home / "token").read_text() == given
    assert victim.read_text() == planted


def test_a_folder_in_place_of_worker_json_is_one_sentence(home: Path) -> None:
    (home / "worker.json").mkdir()
    process = start_worker(home)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "worker.json cannot be written" in said
    assert len(said.strip().splitlines()) == 1


# -- a worker.json that cannot be right ----------------------------------------------------------

ABSURD = [
    *({"pid": 0}, {"pid": -1}, {"pid": True}, {"pid": "1"}, {"pid": 1.5}, {"pid": None}),
    *({"port": 0}, {"port": 70000}, {"port": -1}, {"port": "80"}, {"port": True}),
    *({"host": ""}, {"host": 5}, {"host": "evil.example/x@"}, {"host": "a b"}, {"host": "h" * 300}),
    {"padding": "x" * 5000},
]


@pytest.mark.parametrize("absurd", ABSURD, ids=lambda absurd: str(absurd)[:30])
def test_an_absurd_worker_file_is_as_good_as_none(absurd: dict[str, object], home: Path) -> None:
    told = {"pid": os.getpid(), "host": "127.0.0.9", "port": 4321, **absurd}
    (home / "worker.json").write_text(json.dumps(told))
    assert run(home, "address").stdout == "http://127.0.0.1:37777\n"
    assert run(home, "stop").stdout == "no worker is running for this store\n"


def test_a_pipe_in_place_of_worker_json_holds_nobody_up(home: Path) -> None:
    os.mkfifo(home / "worker.json")
    assert run(home, "address").stdout == "http://127.0.0.1:37777\n"


def test_a_worker_file_of_somebody_else_is_as_good_as_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"pid": os.getpid(), "host": "127.0.0.9", "port": 4321}
    (home / "worker.json").write_text(json.dumps(told))
    assert run(home, "address").stdout == "http://127.0.0.9:4321\n"
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert run(home, "address").stdout == "http://127.0.0.1:37777\n"


# -- the log -------------------------------------------------------------------------------------


def test_the_log_holds_no_query_no_body_and_no_token(tmp_path: Path) -> None:
    home = tmp_path / "home"
    try:
        started = _start(home, MEMSVC_AUTH="always")
        assert started.returncode == 0, started.stderr
        address = started.stdout.split()[-1]
        token = (home / "token").read_text().strip()
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {token}"
            _ask_marked(session, address)
            with (home / "memsvc.db").open("r+b") as file:
                file.write(b"x" * (home / "memsvc.db").stat().st_size)
            _ask_marked(session, address)
            session.headers["Authorization"] = "Bearer marmot-token"
            _ask_marked(session, address)
    finally:
        run(home, "stop")
    log = (home / "worker.log").read_text()
    assert "memsvc is running" in log
    assert "marmot" not in log
    assert token not in log


def _ask_marked(session: requests.Session, address: str) -> None:
    """Requests of every sort that all say marmot."""
    url = f"{address}/api/search"
    session.get(url, params={"query": 'marmot "marmot title:marmot -marmot'}, timeout=PATIENCE)
    session.get(url, params={"query": "x", "marmot": "marmot"}, timeout=PATIENCE)
    session.get(f"{address}/marmot", timeout=PATIENCE)
    session.post(f"{address}/api/observations", json={"title": "marmot"}, timeout=PATIENCE)
    session.post(f"{address}/api/observations", data=b"{marmot", timeout=PATIENCE)
    session.delete(f"{address}/api/observation/marmot", timeout=PATIENCE)
