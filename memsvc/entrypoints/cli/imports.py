"""The commands that import memories, one for each importer in the table."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from memsvc.application.importing.ingest import ingest
from memsvc.application.importing.report import Report
from memsvc.configuration.importers import IMPORTERS, Importer
from memsvc.configuration.settings import load_settings
from memsvc.core.ports.sources import Reading
from memsvc.core.ports.store import Store
from memsvc.entrypoints.cli.operations import FAILED

MAX_LABEL = 30
"""Maximum characters of the source's name before the progress bar."""


@click.group("import")
def import_() -> None:
    """Import records. An import can be repeated: it adds what is new and updates what changed."""


def _import_command(name: str, importer: Importer) -> click.Command:
    """The command that reads a source with an importer's argument and options."""

    def run(dry_run: bool, as_json: bool, **values: str | None) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        _run_import(importer.open(**given), dry_run, as_json)

    return click.Command(
        name,
        callback=run,
        params=list(_parameters(importer)),
        help=importer.help,
        hidden=importer.hidden,
    )


def _parameters(importer: Importer) -> list[click.Parameter]:
    argument = [click.Argument([importer.argument], required=importer.required)]
    return [
        *(argument if importer.argument else ()),
        *(click.Option([f"--{name}"], help=help) for name, help in importer.options.items()),
        click.Option(
            ["--dry-run"], is_flag=True, help="Report what would happen without writing anything."
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the report as JSON."),
    ]


for _name, _importer in IMPORTERS.items():
    import_.add_command(_import_command(_name, _importer))


def _run_import(reading: Reading, dry_run: bool, as_json: bool) -> None:
    from memsvc.configuration.bootstrap import build_store

    store = build_store(load_settings())
    try:
        report = import_reading(store, reading, dry_run=dry_run)
    finally:
        store.close()
    click.echo(json.dumps(report.as_json()) if as_json else report)


def import_reading(store: Store, reading: Reading, *, dry_run: bool) -> Report:
    """Run an import under a progress bar on standard error."""
    from memsvc.configuration.bootstrap import build_mask

    try:
        with _progress_bar(reading) as bar:
            return ingest(
                store,
                reading,
                mask=build_mask(),
                dry_run=dry_run,
                progress=lambda done, total: bar.update(max(0, done - bar.pos)),
            )
    except KeyboardInterrupt:
        kept = (
            "nothing was written"
            if dry_run
            else "everything written so far is kept; run it again to finish"
        )
        click.echo(f"\nmemsvc: interrupted; {kept}", err=True)
        sys.exit(FAILED)


def _progress_bar(reading: Reading) -> Any:
    return click.progressbar(
        map(str, ()),  # the import moves the bar itself; a map has no length of its own
        length=reading.total,
        label=f"Reading {Path(reading.name).name[:MAX_LABEL] or reading.name}",
        width=0,  # as wide as the terminal: a wrapped line cannot be redrawn
        file=sys.stderr,
        show_pos=reading.total is None,
    )
