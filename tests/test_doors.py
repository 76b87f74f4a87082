"""Who is let in: names, origins, browsers, the token; and what every answer says to a browser."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result
from flask.testing import FlaskClient
from workers import PATIENCE, Worker, patient_program, running_worker

from memsvc.api.operations import OPERATIONS
from memsvc.application.services import Services
from memsvc.configuration.settings import load_settings
from memsvc.core.errors import BadRequest
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.http.app import create_app
from memsvc.schemas.results import Problem

PATHS = ["/", "/openapi.json", "/api/health", "/api/stats", "/api/search/help", "/nothing/here"]
"""Routes of every sort, one of which does not exist."""

RECORD = '{"title": "x"}'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker on loopback, as everybody starts it."""
    with running_worker(tmp_path_factory.mktemp("shared")) as worker:
        yield worker


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker that wants the token from everybody."""
    with running_worker(tmp_path_factory.mktemp("locked"), MEMSVC_AUTH="always") as worker:
        yield worker


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli.memsvc, words, env={"MEMSVC_PORT": "", **environment})


def token_of(worker: Worker) -> str:
    return (worker.home / "token").read_text().strip()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def raw_answer(worker: Worker, head: str, body: str = "") -> tuple[int, str]:
    """The status and the whole of the answer to a request that no client library would send."""
    with socket.create_connection(("127.0.0.1", int(worker.port)), PATIENCE) as connection:
        lines = [*head.format(port=worker.port).split("\n"), "Connection: close"]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1"))
        with connection.makefile("rb") as file:
            answer = file.read().decode("utf-8", "replace")
    return int(answer.split()[1]), answer


# -- under which name ----------------------------------------------------------------------------

OWN_NAMES = [
    *("127.0.0.1", "127.0.0.1:{port}", "localhost", "localhost:{port}", "LocalHost:{port}"),
    *("[::1]", "[::1]:{port}", "[0:0:0:0:0:0:0:1]:{port}", "127.0.0.1:1"),
]
FOREIGN_NAMES = [
    *("evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "evil.example:{port}"),
    *("localhost.", "127.0.0.1.", "localhost@evil.example", "evil.example@localhost"),
    *("evil.example#localhost", "evil.example/localhost", "localhost, evil.example"),
    *("127.0.0.1:{port}, 127.0.0.1:{port}", "0.0.0.0:{port}", "127.1", "2130706433", "0x7f000001"),
    *("127.000.000.001", "0177.0.0.1", "[::]", "[::ffff:127.0.0.1]", "[::2]", "[::1", "::1"),
    *("[127.0.0.1]", "[localhost]", "localhost:", "localhost:x", "localhost:99999", "localhost:-1"),
    *("local_host", "loc\u00e4lhost", "localhost\t.evil.example", "", "10.0.0.1", "192.168.0.1"),
]


@pytest.mark.parametrize("host", OWN_NAMES)
def test_the_worker_answers_to_its_own_names(shared: Worker, host: str) -> None:
    assert raw_answer(shared, f"GET /api/stats HTTP/1.1\nHost: {host}")[0] == 200


@pytest.mark.parametrize("path", ["/api/stats", "/api/health", "/nothing/here", "/openapi.json"])
@pytest.mark.parametrize("host", FOREIGN_NAMES, ids=ascii)
def test_the_worker_answers_to_no_other_name(shared: Worker, host: str, path: str) -> None:
    status, answer = raw_answer(shared, f"GET {path} HTTP/1.1\nHost: {host}")
    assert status == 403
    assert '#foreign_host"' in answer


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_without_a_name_is_refused(shared: Worker, version: str) -> None:
    assert raw_answer(shared, f"GET /api/stats HTTP/{version}")[0] == 403


@pytest.mark.parametrize("order", [["localhost", "evil.example"], ["evil.example", "localhost"]])
def test_two_names_are_refused_in_either_order(shared: Worker, order: list[str]) -> None:
    hosts = "\n".join(f"Host: {host}" for host in order)
    assert raw_answer(shared, f"GET /api/stats HTTP/1.1\n{hosts}")[0] == 403


TARGETS = {
    "http://127.0.0.1:{port}/api/stats": 200,
    "http://LOCALHOST/api/stats": 200,
    "http://[::1]/api/stats?x": 400,  # known, and answered: x is no parameter
    "http://evil.example/api/stats": 403,
    "https://evil.example/api/stats": 403,
    "http://localhost@evil.example/api/stats": 403,
    "http://evil.example@localhost/api/stats": 403,
    "http://localhost.evil.example/api/stats": 403,
    "http://localhost.:{port}/api/stats": 403,
    "http:/api/stats": 403,
    "http:///api/stats": 403,
    "ftp://localhost/api/stats": 403,
    "file:///api/stats": 403,
    "evil.example:80": 403,
    "evil.example/api/stats": 403,
}


@pytest.mark.parametrize(("target", "expected"), TARGETS.items())
def test_a_target_with_a_name_is_judged_by_that_name_too(
    shared: Worker, target: str, expected: int
) -> None:
    assert raw_answer(shared, f"GET {target} HTTP/1.1\nHost: 127.0.0.1")[0] == expected


# -- from where ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "DELETE", "PUT"])
@pytest.mark.parametrize("site", ["cross-site", "Cross-Site", "none, cross-site", "nonsense", ""])
def test_a_request_that_another_site_caused_is_refused_on_every_route(
    client: FlaskClient, path: str, method: str, site: str
) -> None:
    answer = client.open(path, method=method, headers={"Sec-Fetch-Site": site})
    assert answer.status_code == 403


@pytest.mark.parametrize("site", ["none", "same-origin", "same-site"])
def test_reading_from_this_machine_is_allowed(client: FlaskClient, site: str) -> None:
    headers = {"Sec-Fetch-Site": site}
    assert client.get("/api/stats", headers=headers).status_code == 200
    assert client.get("/", headers=headers).status_code == 200


WRITERS = {
    "nobody": ({}, 201),
    "own page": (
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
        201,
    ),
    "own page in other letters": ({"Origin": "HTTP://127.0.0.1:{port}"}, 201),
    "another port": ({"Origin": "http://127.0.0.1:3000"}, 403),
    "another port, as browsers say it": (
        {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"},
        403,
    ),
    "no port": ({"Origin": "http://127.0.0.1"}, 403),
    "another name of this machine": ({"Origin": "http://localhost:{port}"}, 403),
    "another scheme": ({"Origin": "https://127.0.0.1:{port}"}, 403),
    "null": ({"Origin": "null"}, 403),
    "empty": ({"Origin": ""}, 403),
    "a stranger": ({"Origin": "https://evil.example"}, 403),
    "a stranger with our name": ({"Origin": "http://127.0.0.1:{port}@evil.example"}, 403),
    "a path": ({"Origin": "http://127.0.0.1:{port}/"}, 403),
    "two": ({"Origin": "http://127.0.0.1:{port}, http://127.0.0.1:{port}"}, 403),
    "an extension": ({"Origin": "chrome-extension://127.0.0.1:{port}"}, 403),
    "same site alone": ({"Sec-Fetch-Site": "same-site"}, 403),
}


@pytest.mark.parametrize(("given", "expected"), WRITERS.values(), ids=WRITERS)
def test_only_programs_and_the_workers_own_pages_may_write(
    shared: Worker, given: dict[str, str], expected: int
) -> None:
    headers = "".join(f"\n{name}: {value}" for name, value in given.items())
    head = f"POST /api/observations HTTP/1.1\nHost: 127.0.0.1:{{port}}{headers}"
    status, _ = raw_answer(shared, head, RECORD)
    assert status in ({200, 201} if expected == 201 else {expected})
    status, _ = raw_answer(shared, head.replace("POST", "DELETE").replace("ions ", "ion/999 "))
    assert status == (404 if expected == 201 else expected)


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:9"])
def test_a_page_on_another_port_may_ask_but_not_read_the_answer(
    client: FlaskClient, origin: str
) -> None:
    answer = client.get("/api/stats", headers={"Origin": origin})
    assert answer.status_code == 200
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "origin", ["null", "", "https://evil.example", "ftp://localhost", "http://localhost.", "x"]
)
def test_a_page_from_elsewhere_may_not_even_ask(client: FlaskClient, origin: str) -> None:
    for path in PATHS:
        assert client.get(path, headers={"Origin": origin}).status_code == 403


# -- with the token ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/health"])
@pytest.mark.parametrize("method", ["get", "post", "delete", "head", "options"])
def test_where_the_token_is_needed_nothing_but_health_opens_without_it(
    locked: Worker, path: str, method: str
) -> None:
    answer = locked.session.request(method, f"{locked.address}{path}", timeout=PATIENCE)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    if method != "head":
        problem = answer.json()
        assert Problem().validate(problem) == {}
        assert problem["code"] == "unauthorized"
        assert "memsvc token" in problem["detail"]


@pytest.mark.parametrize("path", ["/api/health", "/api/health/"])
def test_health_needs_no_token(locked: Worker, path: str) -> None:
    assert locked.get(path).json()["status"] == "ok"


def test_with_the_token_everything_opens(locked: Worker) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {token_of(locked)}"}
        answer = requests.get(f"{locked.address}/api/stats", headers=headers, timeout=PATIENCE)
        assert answer.status_code == 200


WRONG = [
    *("Bearer", "Bearer ", "Bearer x", "Bearer {token}x", "Bearer x{token}", "{token}"),
    *("Basic {token}", "Bearer {token}, Bearer {token}", "Bearer {half}", "Bearer t\u00f6ken", ""),
]


@pytest.mark.parametrize("given", WRONG, ids=ascii)
@pytest.mark.parametrize("path", ["/api/stats", "/api/health"])
def test_a_wrong_token_is_refused_even_where_none_is_needed(
    locked: Worker, shared: Worker, given: str, path: str
) -> None:
    for worker in (locked, shared):
        token = token_of(worker)
        header = given.format(token=token, half=token[:20])
        head = f"GET {path} HTTP/1.1\nHost: 127.0.0.1\nAuthorization: {header}"
        status, answer = raw_answer(worker, head)
        assert status == 401
        assert token not in answer


def test_the_guard_comes_before_the_token(locked: Worker) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", **bearer(token_of(locked))}
    answer = requests.get(f"{locked.address}/api/stats", headers=headers, timeout=PATIENCE)
    assert answer.status_code == 403


def test_every_store_has_a_token_of_its_own_that_nobody_guesses(
    shared: Worker, locked: Worker
) -> None:
    assert token_of(shared) != token_of(locked)
    assert all(re.fullmatch(r"[\w-]{43}", token_of(worker)) for worker in (shared, locked))


def test_a_new_token_counts_at_once(tmp_path: Path) -> None:
    with running_worker(tmp_path, MEMSVC_AUTH="always") as worker:
        old = run("token", MEMSVC_HOME=str(tmp_path)).stdout.strip()
        new = run("token", "--new", MEMSVC_HOME=str(tmp_path)).stdout.strip()
        assert old != new == token_of(worker)
        url = f"{worker.address}/api/stats"
        assert requests.get(url, headers=bearer(old), timeout=PATIENCE).status_code == 401
        assert requests.get(url, headers=bearer(new), timeout=PATIENCE).status_code == 200
        (tmp_path / "token").unlink()
        for none in (bearer(new), bearer(""), {}):
            assert requests.get(url, headers=none, timeout=PATIENCE).status_code == 401


@pytest.mark.parametrize(
    ("host", "auth", "needed"),
    [
        *(("127.0.0.1", "auto", False), ("localhost", "auto", False), ("::1", "auto", False)),
        *(("127.0.0.2", "auto", False), ("127.0.0.1", "always", True), ("0.0.0.0", "auto", True)),
        *(("::", "auto", True), ("192.168.1.5", "auto", True), ("memory.example", "auto", True)),
        *(("localhost.evil.example", "auto", True), ("fe80::1", "always", True)),
    ],
)
def test_the_token_is_needed_as_soon_as_others_can_connect(
    host: str, auth: str, needed: bool
) -> None:
    given = {"MEMSVC_HOST": host, "MEMSVC_AUTH": auth, "MEMSVC_HOME": "/nowhere"}
    assert load_settings(given).needs_token is needed


def test_a_worker_for_others_answers_to_listed_names_and_to_the_token(tmp_path: Path) -> None:
    names = {"MEMSVC_HOST": "0.0.0.0", "MEMSVC_ALLOWED_HOSTS": "Memory.example, 192.168.7.7"}
    with running_worker(tmp_path, **names) as worker:
        assert worker.address == f"http://127.0.0.1:{worker.port}"
        right = f"\nAuthorization: Bearer {token_of(worker)}"
        for host in ("memory.example", "192.168.7.7:{port}", "127.0.0.1:{port}"):
            head = f"GET /api/stats HTTP/1.1\nHost: {host}"
            assert raw_answer(worker, head)[0] == 401
            assert raw_answer(worker, head + right)[0] == 200
        for host in ("evil.example", "0.0.0.0:{port}", "x.memory.example", "memory.example."):
            assert raw_answer(worker, f"GET /api/stats HTTP/1.1\nHost: {host}{right}")[0] == 403
        assert run("stats", MEMSVC_HOME=str(tmp_path)).exit_code == 0
        worker.stop(signal.SIGINT)


def test_a_worker_for_all_addresses_says_which_names_it_needs(tmp_path: Path) -> None:
    with running_worker(tmp_path, MEMSVC_HOST="0.0.0.0") as worker:
        worker.process.send_signal(signal.SIGTERM)
        _, said = worker.process.communicate(timeout=PATIENCE)
    assert "MEMSVC_ALLOWED_HOSTS" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MEMSVC_AUTH", "never"),
        ("MEMSVC_ALLOWED_HOSTS", "http://memory.example"),
        ("MEMSVC_ALLOWED_HOSTS", "memory.example:37777"),
        ("MEMSVC_ALLOWED_HOSTS", "*"),
        ("MEMSVC_TOKEN", "short"),
        ("MEMSVC_TOKEN", "with a space in the middle"),
    ],
)
def test_a_bad_setting_is_named_and_a_token_is_not_repeated(variable: str, value: str) -> None:
    with pytest.raises(BadRequest, match=variable) as raised:
        load_settings({variable: value, "MEMSVC_HOME": "/nowhere"})
    assert "allowed:" in raised.value.detail
    assert variable != "MEMSVC_TOKEN" or value not in raised.value.detail


def test_openapi_tells_of_the_token(locked: Worker, shared: Worker) -> None:
    url = f"{locked.address}/openapi.json"
    needed = requests.get(url, headers=bearer(token_of(locked)), timeout=PATIENCE).json()
    assert needed["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert needed["security"] == [{"token": []}]
    assert needed["paths"]["/api/health"]["get"]["security"] == []
    assert {} in shared.get("/openapi.json").json()["security"]


# -- our own clients -----------------------------------------------------------------------------


def test_commands_hook_and_tools_find_the_token_by_themselves(
    locked: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memsvc.entrypoints.mcp import answer_call

    monkeypatch.setenv("MEMSVC_HOME", str(locked.home))
    monkeypatch.setenv("MEMSVC_PORT", "")
    assert run("stats", "--json").exit_code == 0
    assert run("get", "/api/readiness").exit_code == 0
    assert not answer_call(load_settings(), "search", {"query": "marmot"}).is_error
    url = f"{locked.address}/api/observations"
    requests.post(
        url, json={"title": "a marmot"}, headers=bearer(token_of(locked)), timeout=PATIENCE
    )
    program = patient_program(
        f"from memsvc.entrypoints import hook; hook.MAX_SECONDS = {PATIENCE}; hook.main()"
    )
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/")
    ran = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "a marmot" in ran.stdout


def test_a_client_elsewhere_takes_the_token_from_its_setting(
    locked: Worker, tmp_path: Path
) -> None:
    elsewhere = {"MEMSVC_HOME": str(tmp_path), "MEMSVC_PORT": locked.port}
    refused = run("stats", **elsewhere)
    assert refused.exit_code == 1
    assert "MEMSVC_TOKEN" in refused.stderr
    assert run("stats", **elsewhere, MEMSVC_TOKEN=token_of(locked)).exit_code == 0
    wrong = run("stats", **elsewhere, MEMSVC_TOKEN="x" * 43)
    assert wrong.exit_code == 1
    assert "not Bearer with the token of this worker" in wrong.stderr


class Listener(http.server.BaseHTTPRequestHandler):
    """A stranger that notes all that it is told, and sends everybody elsewhere."""

    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(str(self.headers))
        self.send_response(302)
        self.send_header("Location", "/again")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing: tests read no log."""


@contextlib.contextmanager
def stranger() -> Iterator[tuple[str, list[str]]]:
    """The port of a stranger, and what it has heard."""
    heard: list[str] = []
    handler = type("Stranger", (Listener,), {"heard": heard})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield str(server.server_port), heard
        finally:
            server.shutdown()
            thread.join()


def test_whoever_listens_on_the_port_that_is_set_is_not_told_the_token(tmp_path: Path) -> None:
    token = run("token", MEMSVC_HOME=str(tmp_path)).stdout.strip()
    with stranger() as (port, heard):
        run("stats", MEMSVC_HOME=str(tmp_path), MEMSVC_PORT=port)
    assert heard
    assert token not in "".join(heard)


def test_whoever_took_the_port_of_a_dead_worker_is_not_told_the_token(tmp_path: Path) -> None:
    with running_worker(tmp_path) as worker:
        dead, token = worker.process.pid, token_of(worker)
    with stranger() as (port, heard):
        written = {"pid": dead, "host": "127.0.0.1", "port": int(port)}
        (tmp_path / "worker.json").write_text(json.dumps(written))
        run("stats", MEMSVC_HOME=str(tmp_path))
    assert heard
    assert token not in "".join(heard)


def test_the_token_follows_no_redirect(tmp_path: Path) -> None:
    with stranger() as (port, heard):
        environment = {"MEMSVC_HOME": str(tmp_path), "MEMSVC_TOKEN": "t" * 43}
        run("stats", **environment, MEMSVC_PORT=port)
    told = [headers for headers in heard if "t" * 43 in headers]
    assert len(told) == 1


# -- what a browser is told ----------------------------------------------------------------------

HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@pytest.mark.parametrize("path", [*PATHS, "/api/search", "/api/observation/999"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "DELETE"])
@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_answer_tells_the_browser_what_it_may_not_do(
    client: FlaskClient, path: str, method: str, host: str
) -> None:
    answer = client.open(path, method=method, headers={"Host": host})
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    policy = answer.headers["Content-Security-Policy"]
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy


def test_not_modified_says_so_too(client: FlaskClient) -> None:
    tag = client.get("/api/stats").headers["ETag"]
    answer = client.get("/api/stats", headers={"If-None-Match": tag})
    assert answer.status_code == 304
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_a_bug_says_so_too(client: FlaskClient) -> None:
    broken = create_app(Services(None, lambda: 0)).test_client()  # type: ignore[arg-type]
    answer = broken.get("/api/stats")
    assert answer.status_code == 500
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_the_help_page_needs_nothing_but_the_style_that_its_policy_names(
    client: FlaskClient,
) -> None:
    answer = client.get("/", headers={"Accept": "text/html"})
    page = answer.get_data(as_text=True)
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["Content-Security-Policy"]
    forbidden = r"<script|<link|<img|<iframe|<form|\sstyle=|\son\w+=|javascript:|@import|url\("
    assert re.findall(forbidden, page, re.IGNORECASE) == []


# -- what no answer tells ------------------------------------------------------------------------


def _answers(worker: Worker) -> Iterator[requests.Response]:
    """The answers of every route that reads, as JSON and as text."""
    for operation in OPERATIONS:
        if operation.method == "GET":
            path = operation.path.replace("<id>", "1")
            for accept in ("application/json", "text/markdown", "text/html"):
                yield worker.session.get(
                    f"{worker.address}{path}",
                    params=dict(operation.example),
                    headers={"Accept": accept},
                    timeout=PATIENCE,
                )
    yield worker.get("/api/search", query="marmot")
    yield worker.get("/api/search/semantic", query="marmot")
    yield worker.post("/api/observations", {"title": "x"})


def _tells(worker: Worker, home: Path) -> list[str]:
    """The answers that contain the path of the home, or look like the inside of a program."""
    secrets = (str(home), str(Path.home()) + "/", "Traceback", 'File "')
    return [each.text for each in _answers(worker) if any(text in each.text for text in secrets)]


def _no_model(home: Path) -> dict[str, str]:
    return {"MEMSVC_MODEL": str(home / "model"), "MEMSVC_SEMANTIC": "chroma"}


def _no_index(home: Path) -> dict[str, str]:
    (home / "index").write_text("not a folder")
    return {"MEMSVC_SEMANTIC": "chroma"}


def _no_index_file(home: Path) -> dict[str, str]:
    (home / "index").write_text("not a folder")
    return {"MEMSVC_SEMANTIC": "sqlite-vec"}


@pytest.mark.parametrize("plant", [_no_model, _no_index, _no_index_file])
def test_a_failing_index_is_explained_without_the_path_of_the_home(
    plant: Any, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with running_worker(home, **plant(home)) as worker:
        worker.post("/api/observations", {"title": "a marmot"})
        detail = ""
        while "MEMSVC_HOME" not in detail and str(home) not in detail:
            detail = worker.get("/api/readiness").json()["parts"]["semantic"]["detail"]
        assert "MEMSVC_HOME" in worker.get("/api/search", query="marmot").json()["degraded"]
        assert _tells(worker, home) == []


def _overwritten(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(b"x" * database.stat().st_size)


def _moved(database: Path) -> None:
    for file in database.parent.glob("memsvc.db*"):
        file.rename(file.with_name(f"moved-{file.name}"))


@pytest.mark.parametrize("spoil", [_overwritten, _moved])
def test_a_failing_store_is_explained_without_the_path_of_the_home(
    spoil: Any, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with running_worker(home) as worker:
        worker.post("/api/observations", {"title": "a marmot"})
        spoil(home / "memsvc.db")
        assert _tells(worker, home) == []


def test_a_memory_that_holds_a_path_is_shown_as_it_is(tmp_path: Path) -> None:
    with running_worker(tmp_path) as worker:
        title = f"The store is in {tmp_path}/memsvc.db"
        worker.post("/api/observations", {"title": title})
        assert worker.get("/api/observation/1").json()["title"] == title
