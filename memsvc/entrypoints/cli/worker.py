"""The worker commands: serve, start, stop, index, trial, status, settings."""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from memsvc.configuration.importers import IMPORTERS
from memsvc.configuration.settings import SETTINGS, Settings, load_settings
from memsvc.core.errors import SemanticUnavailable, SourceUnreadable
from memsvc.core.ports.sources import Reading
from memsvc.entrypoints.cli.imports import import_reading
from memsvc.entrypoints.client import worker_address
from memsvc.entrypoints.worker_process import (
    await_worker_index,
    index_here,
    is_running,
    start_worker,
    stop_worker,
)

NOTICE_SECONDS = 10.0
"""Seconds between two lines that say that the worker waits for its store."""


@click.command()
def serve() -> None:
    """Run the worker until interrupted."""
    _serve(load_settings(), lambda address: click.echo(f"memsvc is running on {address}"))


@click.command()
def address() -> None:
    """Print the worker's address."""
    click.echo(worker_address(load_settings()))


@click.command()
def start() -> None:
    """Start the worker in the background and print its address."""
    click.echo(start_worker(load_settings()))


@click.command()
def stop() -> None:
    """Stop the worker of this store."""
    click.echo(stop_worker(load_settings()))


@click.command()
def mcp() -> None:
    """Run the MCP server over standard input and output; it needs a running worker."""
    from memsvc.entrypoints.mcp import run_server

    run_server(load_settings())


def _serve(settings: Settings, ready: Callable[[str], None]) -> None:
    from memsvc.application.services import SWITCHED_OFF, Services
    from memsvc.configuration.bootstrap import await_unlocked_store, build_semantic
    from memsvc.configuration.upkeep import build_daily_backups
    from memsvc.core.dates import now_ms
    from memsvc.entrypoints.http.app import create_app
    from memsvc.entrypoints.http.server import run_server

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # waitress warns about every queued request; that would fill the log of a busy worker
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    store = await_unlocked_store(settings, _notice())
    semantic = build_semantic(settings, store)

    services = Services(store, now_ms, semantic, "" if semantic else SWITCHED_OFF)

    backups = build_daily_backups(settings)

    def listening(address: str) -> None:
        backups.start()
        if semantic:
            semantic.start()
        threading.Thread(target=store.examine, name="examine", daemon=True).start()
        ready(address)

    try:
        run_server(create_app(services, settings.host), settings, listening)
    finally:
        backups.stop()
        if semantic:
            semantic.stop()
        store.close()


def _notice() -> Callable[[], None]:
    """Says that the store is locked, at once and every ten seconds of being called."""
    started, told = time.monotonic(), -NOTICE_SECONDS

    def waiting() -> None:
        nonlocal told
        waited = time.monotonic() - started
        if waited - told >= NOTICE_SECONDS:
            told = waited
            click.echo(
                f"memsvc.db is locked by another program; waiting for it to end ({waited:.0f} s)",
                err=True,
            )

    return waiting


@click.command()
@click.option("--rebuild", is_flag=True, help="Rebuild the index from the vectors in the store.")
def index(rebuild: bool) -> None:
    """Update the semantic index, in the running worker or here, and wait until it is done."""
    from memsvc.application.services import SWITCHED_OFF
    from memsvc.configuration.bootstrap import build_semantic, build_store

    settings = load_settings()
    store = build_store(settings)
    try:
        semantic = build_semantic(settings, store, share=1)
        if semantic is None:
            raise SemanticUnavailable(SWITCHED_OFF)
        if rebuild:
            semantic.ask_rebuild()
        runs = is_running(settings)
        _show_indexing(await_worker_index(settings) if runs else index_here(semantic))
    finally:
        store.close()


def _show_indexing(waiting: Iterator[int]) -> None:
    """Show a progress bar while the number of pending records falls."""
    total = next(waiting, 0)
    with click.progressbar(length=total, label="Indexing", file=sys.stderr, show_pos=True) as bar:
        for left in waiting:
            bar.update(max(0, total - left - bar.pos))
    click.echo("All records are in the semantic index.")


@click.command()
@click.argument("checkout", type=click.Path(file_okay=False, path_type=Path), default=".")
def trial(checkout: Path) -> None:
    """Try memsvc on the git history of CHECKOUT: fill an empty store and run the worker.

    Without a history, the bundled sample is used.
    """
    settings = load_settings()
    _fill(settings, checkout)
    _serve(settings, _welcome)


def _fill(settings: Settings, checkout: Path) -> None:
    from memsvc.configuration.bootstrap import build_store
    from memsvc.core.filters import Filter
    from memsvc.core.records import Kind

    store = build_store(settings)
    try:
        if not any(store.count(kind, Filter()) for kind in Kind):
            click.echo(import_reading(store, _open_history(checkout), dry_run=False))
    finally:
        store.close()


def _open_history(checkout: Path) -> Reading:
    try:
        return IMPORTERS["git"].open(str(checkout))
    except SourceUnreadable as error:
        click.echo(f"{error.detail} Using the bundled sample instead.", err=True)
        return IMPORTERS["sample"].open()


def _welcome(address: str) -> None:
    click.echo(f"""memsvc is running on {address}. Try:
  curl -s '{address}/api/search?query=fix&limit=3&render=text'
  curl -s '{address}/api/context/recent?limit=1&render=text'
  curl -s '{address}/api/search/help?operation=by-file'
or open {address}/api/search/help in a browser. Ctrl-C stops the worker.""")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Show where the store is, what it holds, and whether the worker is running."""
    settings = load_settings()
    state = {
        "home": str(settings.home),
        **_store_state(settings),
        "worker": worker_address(settings),
        "running": is_running(settings),
    }
    if as_json:
        click.echo(json.dumps(state))
    else:
        for name, value in state.items():
            click.echo(f"{name}: {value}")


def _store_state(settings: Settings) -> dict[str, Any]:
    if not settings.database.exists():
        return {"store": "none yet"}
    from memsvc.configuration.bootstrap import build_store, build_vectors
    from memsvc.configuration.upkeep import describe_backups
    from memsvc.core.filters import Filter
    from memsvc.core.records import Kind

    store = build_store(settings)
    try:
        size = os.path.getsize(settings.database)
        return {
            "store": f"{size / 1e6:.1f} MB",
            **{f"{k}s": store.count(k, Filter()) for k in Kind},
            "to be embedded": build_vectors(store).count_pending(),
            "backups": describe_backups(settings),
        }
    finally:
        store.close()


@click.command("settings")
def show_settings() -> None:
    """List the settings: environment variables with their defaults."""
    for setting in SETTINGS:
        click.echo(f"{setting.variable:<16} {setting.default or '-':<12} {setting.description}")


WORKER_COMMANDS = (serve, address, start, stop, mcp, index, trial, status, show_settings)
