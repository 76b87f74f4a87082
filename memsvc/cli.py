"""The `memsvc` command: the worker, imports, and one command an operation, made from the table."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from memsvc import __version__, skill
from memsvc.background import follow_here, follow_worker, is_running, start_worker, stop_worker
from memsvc.client import worker_address
from memsvc.commands import EXIT_CODES, FAILED, Commands, add_operations, ask, print_answer
from memsvc.errors import MemsvcError
from memsvc.importers.ingest import ingest
from memsvc.importers.reading import Reading
from memsvc.operations import OPERATIONS
from memsvc.sample import SAMPLE
from memsvc.settings import SETTINGS, Settings, load_settings

LONGEST_LABEL = 30
"""Characters of a source's name that stand before the progress bar."""


@click.group(cls=Commands, epilog=EXIT_CODES, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="memsvc")
def memsvc() -> None:
    """The memory a coding agent searches."""


add_operations(memsvc)


def main() -> None:
    """Run the command that the arguments name."""
    memsvc()


@memsvc.command()
@click.argument("path")
def get(path: str) -> None:
    """Print what the worker answers to GET PATH, such as /api/health."""
    print_answer(ask("GET", path if path.startswith("/") else f"/{path}", [], "application/json"))


@memsvc.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def routes(as_json: bool) -> None:
    """List every route with its command."""
    table = [
        {"method": o.method, "path": path, "command": o.command and f"memsvc {o.command}"}
        for o in OPERATIONS
        for path in (o.path, *o.aliases)
    ]
    if as_json:
        click.echo(json.dumps(table))
        return
    for row in table:
        click.echo(f"{row['method']:<6} {row['path']:<28} {row['command']}".rstrip())


# -- the worker -----------------------------------------------------------------------------------


@memsvc.command()
def serve() -> None:
    """Run the worker until interrupted."""
    _serve(load_settings(), lambda address: click.echo(f"memsvc listens on {address}"))


@memsvc.command()
def address() -> None:
    """Print where the worker is."""
    click.echo(worker_address(load_settings()))


@memsvc.command()
def start() -> None:
    """Start the worker in the background and print where it is."""
    click.echo(start_worker(load_settings()))


@memsvc.command()
def stop() -> None:
    """Stop the worker that runs over this store."""
    click.echo(stop_worker(load_settings()))


@memsvc.command()
def mcp() -> None:
    """Answer an MCP client over standard input and output; the worker does the work."""
    from memsvc.mcp_server import run_server  # for this command only: its package takes time

    run_server(load_settings())


def _serve(settings: Settings, ready: Callable[[str], None]) -> None:
    from memsvc.bootstrap import build_semantic, build_store  # for the worker only: they take time
    from memsvc.dates import now_ms
    from memsvc.server import run_server
    from memsvc.services import Services
    from memsvc.web import create_app

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # waitress warns of every queued request; a busy worker is not worth a line each
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    store = build_store(settings)
    semantic = build_semantic(settings, store)

    def listening(address: str) -> None:
        semantic.start()
        ready(address)

    try:
        app = create_app(Services(store, now_ms, semantic), settings.host)
        run_server(app, settings, listening)
    finally:
        semantic.stop()
        store.close()


@memsvc.command()
@click.option("--rebuild", is_flag=True, help="Make the index anew from the vectors in the store.")
def index(rebuild: bool) -> None:
    """Bring the semantic index up to date, by the running worker or here, and wait for it."""
    from memsvc.bootstrap import build_semantic, build_store

    settings = load_settings()
    store = build_store(settings)
    try:
        semantic = build_semantic(settings, store, share=1)
        if rebuild:
            semantic.ask_rebuild()
        follow = follow_worker if is_running(settings) else follow_here
        _show_indexing(follow(settings, semantic))
    finally:
        store.close()


def _show_indexing(waiting: Iterator[int]) -> None:
    """A progress bar over how many records still wait."""
    most = next(waiting, 0)
    with click.progressbar(length=most, label="Indexing", file=sys.stderr, show_pos=True) as bar:
        for left in waiting:
            bar.update(max(0, most - left - bar.pos))
    click.echo("The semantic index knows all records.")


@memsvc.command()
@click.argument("checkout", type=click.Path(file_okay=False, path_type=Path), default=".")
def trial(checkout: Path) -> None:
    """Try memsvc on the history of CHECKOUT: fill an empty store, run the worker.

    Without a history the bundled sample fills the store.
    """
    settings = load_settings()
    _fill(settings, checkout)
    _serve(settings, _welcome)


def _fill(settings: Settings, checkout: Path) -> None:
    from memsvc.bootstrap import build_store
    from memsvc.importers.git import read_git
    from memsvc.importers.jsonl import read_jsonl
    from memsvc.model import Filter, Kind

    store = build_store(settings)
    try:
        if any(store.count(kind, Filter()) for kind in Kind):
            return
        try:
            reading = read_git(checkout)
        except MemsvcError as error:
            click.echo(f"{error.detail} The bundled sample is used instead.", err=True)
            reading = read_jsonl(SAMPLE)
        click.echo(_import(store, reading, dry_run=False))
    finally:
        store.close()


def _welcome(address: str) -> None:
    click.echo(f"""memsvc listens on {address}. Try:
  curl -s '{address}/api/search?query=fix&limit=3&render=text'
  curl -s '{address}/api/context/recent?limit=1&render=text'
  curl -s '{address}/api/search/help?operation=by-file'
or open {address}/api/search/help in a browser. Ctrl-C stops the worker.""")


@memsvc.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Say where the store is, what it holds, and whether the worker runs."""
    settings = load_settings()
    told = {
        "home": str(settings.home),
        **_store_state(settings),
        "worker": worker_address(settings),
        "running": is_running(settings),
    }
    if as_json:
        click.echo(json.dumps(told))
    else:
        for name, value in told.items():
            click.echo(f"{name}: {value}")


def _store_state(settings: Settings) -> dict[str, Any]:
    if not settings.database.exists():
        return {"store": "none yet"}
    from memsvc.bootstrap import build_store
    from memsvc.model import Filter, Kind
    from memsvc.store.vectors import SqliteVectors

    store = build_store(settings)
    try:
        size = os.path.getsize(settings.database)
        return {
            "store": f"{size / 1e6:.1f} MB",
            **{f"{k}s": store.count(k, Filter()) for k in Kind},
            "to be embedded": SqliteVectors(store.connections).count_pending(),
        }
    finally:
        store.close()


@memsvc.command("settings")
def show_settings() -> None:
    """List the environment variables with their defaults."""
    for setting in SETTINGS:
        click.echo(f"{setting.variable:<16} {setting.default or '-':<12} {setting.meaning}")


# -- imports --------------------------------------------------------------------------------------


@memsvc.group("import")
def import_() -> None:
    """Bring memories in. Every import can be run again: it adds and updates what is new."""


_dry_run = click.option("--dry-run", is_flag=True, help="Say what would happen; write nothing.")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")


@import_.command("claude-mem")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@_dry_run
@_as_json
def import_claude_mem(file: Path | None, dry_run: bool, as_json: bool) -> None:
    """Read a claude-mem database; it is never written to."""
    from memsvc.importers.claude_mem import read_claude_mem

    _run_import(read_claude_mem(file), dry_run, as_json)


@import_.command("git")
@click.argument("repository", type=click.Path(path_type=Path), default=".")
@_dry_run
@_as_json
def import_git(repository: Path, dry_run: bool, as_json: bool) -> None:
    """Read the history of a git repository as memories; merges are skipped."""
    from memsvc.importers.git import read_git

    _run_import(read_git(repository), dry_run, as_json)


@import_.command("jsonl")
@click.argument("file")
@click.option("--source", help="Name of the source; default: the file's name.")
@_dry_run
@_as_json
def import_jsonl(file: str, source: str | None, dry_run: bool, as_json: bool) -> None:
    """Read one record a line from FILE (also .gz), or from - for standard input."""
    from memsvc.importers.jsonl import read_jsonl

    _run_import(read_jsonl(file, source=source), dry_run, as_json)


def _run_import(reading: Reading, dry_run: bool, as_json: bool) -> None:
    from memsvc.bootstrap import build_store

    store = build_store(load_settings())
    try:
        report = _import(store, reading, dry_run=dry_run)
    finally:
        store.close()
    click.echo(json.dumps(report.as_json()) if as_json else report)


def _import(store: Any, reading: Reading, *, dry_run: bool) -> Any:
    """Run an import under a progress bar on standard error."""
    label = f"Reading {Path(reading.name).name[:LONGEST_LABEL] or reading.name}"
    try:
        with click.progressbar(
            map(str, ()),  # the import draws its items itself; this has no length of its own
            length=reading.total,
            label=label,
            width=0,  # as wide as the terminal: a line that wraps cannot be drawn again
            file=sys.stderr,
            show_pos=reading.total is None,
        ) as bar:
            return ingest(
                store,
                reading,
                dry_run=dry_run,
                progress=lambda done, total: bar.update(max(0, done - bar.pos)),
            )
    except KeyboardInterrupt:
        kept = "nothing was written" if dry_run else "what is written stays, run it again to finish"
        click.echo(f"\nmemsvc: interrupted; {kept}", err=True)
        sys.exit(FAILED)


# -- the skill ------------------------------------------------------------------------------------


@memsvc.group("skill")
def skill_() -> None:
    """Put the mem-search skill where agents find it."""


@skill_.command()
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a project; default: this one.",
)
@click.option("--user", is_flag=True, help="For all projects of this user.")
def install(project: Path | None, user: bool) -> None:
    """Copy the skill below .claude/skills, and below the folders of other agents found there."""
    if project and user:
        raise click.UsageError("give --project or --user, not both")
    for place in skill.install(Path.home() if user else project or Path.cwd()):
        click.echo(f"installed {place}")


@skill_.command("check")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
def check_skill(folder: Path | None) -> None:
    """Hold a skill against the Agent Skills rules and its budgets; default: the bundled one."""
    root = (folder or skill.tree()).absolute()
    faults = skill.check(root)
    for fault in faults:
        click.echo(fault, err=True)
    if faults:
        sys.exit(FAILED)
    sizes = skill.sizes(root)
    click.echo(f"{root.name}: {len(sizes)} pages, {sum(sizes.values())} tokens, no faults")
