"""The commands that bring memories in."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from memsvc.application.importing.ingest import ingest
from memsvc.configuration.settings import load_settings
from memsvc.core.ports.sources import Reading
from memsvc.entrypoints.cli.operations import (
    FAILED,
)

LONGEST_LABEL = 30
"""Characters of a source's name that stand before the progress bar."""


# -- imports --------------------------------------------------------------------------------------


@click.group("import")
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
    from memsvc.adapters.importers.claude_mem import read_claude_mem

    _run_import(read_claude_mem(file), dry_run, as_json)


@import_.command("git")
@click.argument("repository", type=click.Path(path_type=Path), default=".")
@_dry_run
@_as_json
def import_git(repository: Path, dry_run: bool, as_json: bool) -> None:
    """Read the history of a git repository as memories; merges are skipped."""
    from memsvc.adapters.importers.git import read_git

    _run_import(read_git(repository), dry_run, as_json)


@import_.command("jsonl")
@click.argument("file")
@click.option("--source", help="Name of the source; default: the file's name.")
@_dry_run
@_as_json
def import_jsonl(file: str, source: str | None, dry_run: bool, as_json: bool) -> None:
    """Read one record a line from FILE (also .gz), or from - for standard input."""
    from memsvc.adapters.importers.jsonl import read_jsonl

    _run_import(read_jsonl(file, source=source), dry_run, as_json)


def _run_import(reading: Reading, dry_run: bool, as_json: bool) -> None:
    from memsvc.configuration.bootstrap import build_store

    store = build_store(load_settings())
    try:
        report = import_reading(store, reading, dry_run=dry_run)
    finally:
        store.close()
    click.echo(json.dumps(report.as_json()) if as_json else report)


def import_reading(store: Any, reading: Reading, *, dry_run: bool) -> Any:
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
