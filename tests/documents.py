"""The documents' commands and answers: run them on the sample store, compare, or write them anew.

    python -m tests.documents        writes README.md's answers and the skill's pages anew

A block of ```bash is followed by a block with its answer. The worker that answers holds the
bundled sample, its clock stands still, and its zone is UTC.
"""

import contextlib
import json
import logging
import os
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import requests
from click.testing import CliRunner
from werkzeug.serving import make_server

from memsvc.bootstrap import build_store
from memsvc.cli import memsvc
from memsvc.importers.ingest import ingest
from memsvc.importers.jsonl import read_jsonl
from memsvc.ports import SemanticSearch
from memsvc.sample import SAMPLE
from memsvc.services import Services
from memsvc.settings import SETTINGS, load_settings
from memsvc.skill import ADDRESS, pages, tree
from memsvc.store.sqlite import SqliteStore
from memsvc.web import create_app

ROOT = Path(__file__).parent.parent
NOW = 1_794_571_200_000  # 2026-11-13 12:00 UTC, the day after the sample's last record

EXAMPLE = re.compile(
    r"```bash\n(?P<command>.*?)```\n(?P<gap>\s*)```(?P<kind>\w+)\n(?P<answer>.*?)```", re.S
)
BASH = re.compile(r"```bash\n(.*?)```", re.S)
TABLE = re.compile(r"(<!-- settings -->\n).*?(<!-- /settings -->)", re.S)


@contextlib.contextmanager
def sample_worker(
    semantic_over: Callable[[SqliteStore], SemanticSearch | None] = lambda store: None,
) -> Iterator[str]:
    """The address of a worker over the sample store, its clock standing still.

    It answers from full text alone, so that the answers are the same on every machine.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no line for each request
    with tempfile.TemporaryDirectory() as home, utc():
        store = build_store(load_settings({"MEMSVC_HOME": home}))
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
    """The process in the zone UTC for a while."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


def run_command(command: str, address: str) -> str:
    """What a curl or memsvc command prints, asked of the worker at this address."""
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] == "curl":
        return run_curl(words[1:], address)
    assert words[0] == "memsvc", f"documents run curl and memsvc, not {words[0]}"
    port = address.rsplit(":", 1)[1]
    result = CliRunner().invoke(memsvc, words[1:], env={"MEMSVC_PORT": port})
    assert result.exit_code == 0, f"{command}: {result.output}"
    return result.stdout.replace(address, ADDRESS)


def run_curl(words: list[str], address: str) -> str:
    """What `curl` with these few options prints."""
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


def shown(answer: str, kind: str) -> str:
    """An answer as a document shows it: JSON with one field a line."""
    if kind == "json":
        answer = json.dumps(json.loads(answer), indent=1, ensure_ascii=False)
    return answer.rstrip("\n") + "\n"


def refresh(document: str, address: str) -> str:
    """The document with the answers that its commands get now, and its generated table."""

    def answered(found: re.Match[str]) -> str:
        answer = shown(run_command(found["command"], address), found["kind"])
        return f"```bash\n{found['command']}```\n{found['gap']}```{found['kind']}\n{answer}```"

    filled = EXAMPLE.sub(answered, document)
    return TABLE.sub(lambda found: found[1] + settings_table() + found[2], filled)


def settings_table() -> str:
    """The settings as a markdown table."""
    rows = [f"| `{s.variable}` | {s.default or '-'} | {s.meaning} |" for s in SETTINGS]
    return "\n".join(["| Variable | Default | Meaning |", "|---|---|---|", *rows]) + "\n"


def documents() -> dict[Path, str]:
    """Every document by its place: the generated pages as the table makes them, the rest as is."""
    generated = {tree() / place: page for place, page in pages().items()}
    written = [ROOT / "README.md", *sorted(tree().rglob("*.md"))]
    return {path: path.read_text("utf-8") for path in written} | generated


def renewed(path: Path) -> str:
    """A document as it should be; it asks a worker of its own, for some documents write."""
    with sample_worker() as address:
        return refresh(documents()[path], address)


def main() -> None:
    """Write every document anew."""
    for path in documents():
        document = renewed(path)
        path.parent.mkdir(exist_ok=True)
        path.write_text(document, "utf-8")


if __name__ == "__main__":
    main()
