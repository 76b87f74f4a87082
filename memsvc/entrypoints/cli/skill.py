"""The commands that install and check the skill."""

import sys
from pathlib import Path

import click

from memsvc.entrypoints.cli.operations import FAILED
from memsvc.entrypoints.skill.check import check, sizes_of
from memsvc.entrypoints.skill.install import install as install_skill
from memsvc.entrypoints.skill.install import skill_folder


@click.group("skill")
def skill() -> None:
    """Install or check the mem-search skill."""


@skill.command()
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the project; default: the current folder.",
)
@click.option("--user", is_flag=True, help="Install for all projects of this user.")
def install(project: Path | None, user: bool) -> None:
    """Copy the skill into .claude/skills, and into the folders of other agents that exist there."""
    if project and user:
        raise click.UsageError("give --project or --user, not both")
    for place in install_skill(Path.home() if user else project or Path.cwd()):
        click.echo(f"installed {place}")


@skill.command("check")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
def check_skill(folder: Path | None) -> None:
    """Check a skill against the Agent Skills rules and its budgets; default: the bundled one."""
    root = (folder or skill_folder()).absolute()
    faults = check(root)
    for fault in faults:
        click.echo(fault, err=True)
    if faults:
        sys.exit(FAILED)
    sizes = sizes_of(root)
    click.echo(f"{root.name}: {len(sizes)} pages, {sum(sizes.values())} tokens, no faults")
