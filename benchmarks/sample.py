"""A worker with the bundled sample and a fixed clock, and commands to run against it.

It uses full text only and UTC, so that its answers are the same on every machine.
"""

import contextlib
import logging
import os
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

import requests
from click.testing import CliRunner
from werkzeug.serving import make_server

from memsvc.adapters.importers.jsonl import SAMPLE, read_jsonl
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.api.skill_pages import ADDRESS
from memsvc.application.importing.ingest import ingest
from memsvc.application.services import Services
from memsvc.configuration.settings import load_settings
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.entrypoints.cli.main import memsvc
from memsvc.entrypoints.http.app import create_app

NOW = 1_794_571_200_000  # 2026-11-13 12:00 UTC, the day after the sample's last record


@contextlib.contextmanager
def sample_worker(
    semantic_over: Callable[[SqliteStore], SemanticSearch | None] = lambda store: None,
) -> Iterator[str]:
    """Run a worker with the sample and give its address; by default it uses full text only."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # do not log each request
    with tempfile.TemporaryDirectory() as home, utc():
        store = open_store(load_settings({"MEMSVC_HOME": home}).database)
        ingest(store, read_jsonl(SAMPLE))
        services = Services(store, lambda: NOW, semantic_over(store))
        server = make_server("127.0.0.1", 0, create_app(services), threaded=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            store.close()


@contextlib.contextmanager
def utc() -> Iterator[None]:
    """Switch the process to UTC for a while."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


def run_command(command: str, address: str) -> str:
    """The output of a curl or memsvc command, run against the worker at this address."""
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] == "curl":
        return run_curl(words[1:], address)
    assert words[0] == "memsvc", f"documents run curl and memsvc, not {words[0]}"
    port = address.rsplit(":", 1)[1]
    result = CliRunner().invoke(memsvc, words[1:], env={"MEMSVC_PORT": port})
    assert result.exit_code == 0, f"{command}: {result.output}"
    return result.stdout.replace(address, ADDRESS)


def run_curl(words: list[str], address: str) -> str:
    """The output of `curl`, for the few options that the documents use."""
    method, headers, data, url = "GET", {}, None, ""
    rest = iter(words)
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            name, value = next(rest).split(":", 1)
            headers[name] = value.strip()
        elif word == "-d":
            data, method = next(rest).encode(), "POST"
        elif not word.startswith("-"):
            url = word
    assert url.startswith(ADDRESS), f"{url} is not at {ADDRESS}"
    response = requests.request(method, url.replace(ADDRESS, address), headers=headers, data=data)
    return response.text.replace(address, ADDRESS)
