"""The `memsvc` command: worker, imports, skill, and one command per operation."""

import json

import click

from memsvc import __version__
from memsvc.api.operations import OPERATIONS
from memsvc.entrypoints.cli.backups import BACKUP_COMMANDS
from memsvc.entrypoints.cli.doctor import doctor
from memsvc.entrypoints.cli.imports import import_
from memsvc.entrypoints.cli.operations import (
    EXIT_CODES,
    Commands,
    add_operations,
    ask,
    print_answer,
)
from memsvc.entrypoints.cli.skill import skill
from memsvc.entrypoints.cli.worker import WORKER_COMMANDS


@click.group(cls=Commands, epilog=EXIT_CODES, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="memsvc")
def memsvc() -> None:
    """The memory a coding agent searches."""


add_operations(memsvc)
for command in (*WORKER_COMMANDS, *BACKUP_COMMANDS, doctor, import_, skill):
    memsvc.add_command(command)


def main() -> None:
    """Run the memsvc command."""
    memsvc()


@memsvc.command()
@click.argument("path")
def get(path: str) -> None:
    """Print the worker's answer to GET PATH, such as /api/health."""
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
