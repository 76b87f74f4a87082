"""The commands that keep memories safe: backup, restore, export."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import click

from memsvc import __version__
from memsvc.configuration.home import whole_file
from memsvc.configuration.settings import load_settings
from memsvc.core.errors import StoreUnavailable
from memsvc.core.filters import EVERYTHING, Filter
from memsvc.core.ports.upkeep import Backup, Stopped
from memsvc.core.records import Kind
from memsvc.entrypoints.cli.operations import FAILED
from memsvc.entrypoints.worker_process import worker_of

STANDARD_OUTPUT: Final = "-"

SECONDS_BETWEEN_SIGNS: Final = 1.0
"""Seconds between two signs of life of a long command."""

FILE: Final = click.Path(path_type=Path)


@click.command()
@click.argument("file", type=FILE, required=False)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: Path | None, force: bool) -> None:
    """Back up the store to FILE while everything goes on.

    Without FILE, the backup is made in the folder `backups` beside the store. The semantic index is
    not in it: it is made anew from the vectors in the store.
    """
    from memsvc.configuration.upkeep import back_up

    begun, signs = time.monotonic(), _SignsOfLife("Backing up")
    with _interruptible("nothing was written"):
        made = back_up(load_settings(), file, force=force, pace=signs)
    signs.end()
    click.echo(f"{_described(made)}, {time.monotonic() - begun:.1f} s: {made.path}")


@click.command()
@click.argument("file", type=FILE)
@click.option("--dry-run", is_flag=True, help="Verify FILE without changing anything.")
def restore(file: Path, dry_run: bool) -> None:
    """Replace the store by the backup FILE. The worker must be stopped.

    The store that was there is kept in the folder `backups` beside it.
    """
    from memsvc.configuration.upkeep import inspect_backup, restore_backup

    if dry_run:
        click.echo(f"{file} can be restored: {_described(inspect_backup(file))}")
        return
    settings = load_settings()
    if worker := worker_of(settings):
        raise StoreUnavailable(
            f"A worker is running for this store on {worker}; stop it first: memsvc stop"
        )
    restored, kept = restore_backup(settings, file)
    click.echo(f"restored: {_described(restored)}")
    if kept:
        click.echo(f"The store before is kept: {kept}")
    click.echo("Start the worker: memsvc start")


def _described(made: Backup) -> str:
    kinds = ", ".join(f"{count:,} {kind}s" for kind, count in made.counts.items())
    return f"{made.records:,} records ({kinds}), {made.size / 1e6:,.1f} MB"


class _SignsOfLife:
    """Says on standard error every now and then that a command is still at work."""

    def __init__(self, what: str) -> None:
        self._what, self._begun = what, time.monotonic()
        self._line = ""
        self._next = self._begun + SECONDS_BETWEEN_SIGNS

    def __call__(self) -> bool:
        """Never asks to stop."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + SECONDS_BETWEEN_SIGNS
            self._line = f"{self._what}: {now - self._begun:.0f} s"
            click.echo(f"\r{self._line}", nl=False, err=True)
        return False

    def end(self) -> None:
        """Leave an empty line for what is said next."""
        if self._line:
            click.echo(f"\r{' ' * len(self._line)}\r", nl=False, err=True)


@contextlib.contextmanager
def _interruptible(left: str) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, Stopped):
        click.echo(f"\nmemsvc: interrupted; {left}", err=True)
        sys.exit(FAILED)


@click.command()
@click.argument("file", default=STANDARD_OUTPUT)
@click.option("--project", help="Export the records of this project only.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def export(file: str, project: str | None, force: bool) -> None:
    """Export all records to FILE as JSON Lines, or to standard output.

    `memsvc import jsonl FILE` makes an equal store of it: same refs, same records, and what was
    forgotten stays forgotten. Vectors are left out; they are computed anew.
    """
    from memsvc.configuration.bootstrap import build_store
    from memsvc.configuration.upkeep import require_store
    from memsvc.schemas.exports import export_lines

    settings = load_settings()
    require_store(settings)
    selection = Filter((("project", (project,)),)) if project else EVERYTHING
    store = build_store(settings)
    try:
        with _interruptible("the export is not whole"), store.snapshot():
            last_ids = store.last_ids() if selection == EVERYTHING else dict.fromkeys(Kind, 0)
            lines = export_lines(__version__, last_ids, store.contents(selection))
            with _output(file, force) as output:
                _write(lines, output)
    finally:
        store.close()


def _write(lines: Iterator[str], output: IO[str]) -> None:
    sign = _SignsOfLife("Exporting")
    count = 0
    for count, line in enumerate(lines, -1):  # the first and the last line hold no piece
        output.write(line + "\n")
        if not count % 1_000:
            sign()
    output.flush()
    sign.end()
    click.echo(f"{count:,} records, work sessions and traces of what was forgotten", err=True)


@contextlib.contextmanager
def _output(file: str, force: bool) -> Iterator[IO[str]]:
    """Standard output, or a private file that takes its name once it is whole."""
    if file == STANDARD_OUTPUT:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        yield sys.stdout
        return
    path = Path(file)
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists already; choose another name, or use --force")
    try:
        with whole_file(path) as output:
            yield output
            output.flush()
            os.fsync(output.fileno())
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be written ({error.strerror}); check its folder and the free space on "
            "its disk, or choose another file."
        ) from error


BACKUP_COMMANDS: Final = (backup, restore, export)
