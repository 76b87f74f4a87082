"""The command that looks for faults and mends them."""

import json
import sys
from dataclasses import asdict

import click

from memsvc.configuration.settings import Settings, load_settings
from memsvc.core.errors import StoreUnavailable
from memsvc.core.ports.upkeep import SALVAGE, Finding
from memsvc.entrypoints.cli.operations import FAILED
from memsvc.entrypoints.worker_process import worker_of


@click.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(fix: bool, as_json: bool) -> None:
    """Look for faults in the store and around it, with a remedy for each.

    It may run while a worker serves. Exit code 0 means that nothing is wrong, 1 that faults remain.
    """
    from memsvc.configuration.doctor import examine

    settings = load_settings()
    worker = worker_of(settings)
    findings = examine(settings, worker)
    done: list[str] = []
    if fix and any(not finding.ok and finding.mend for finding in findings):
        done = _mend(settings, findings, worker)
        findings = examine(settings, worker)
    _print(findings, done, as_json)
    sys.exit(0 if all(finding.ok for finding in findings) else FAILED)


def _mend(settings: Settings, findings: list[Finding], worker: str) -> list[str]:
    from memsvc.configuration.doctor import mend

    if worker and any(finding.mend == SALVAGE and not finding.ok for finding in findings):
        raise StoreUnavailable(
            f"The store is damaged and a worker is running on {worker}; stop it first: memsvc stop"
        )
    return list(mend(settings, findings, _show_saved))


def _show_saved(count: int) -> None:
    click.echo(f"\rSaved {count:,} records", nl=False, err=True)


def _print(findings: list[Finding], done: list[str], as_json: bool) -> None:
    if as_json:
        ok = all(finding.ok for finding in findings)
        listed = [asdict(finding) for finding in findings]
        click.echo(json.dumps({"ok": ok, "findings": listed, "done": done}))
        return
    for sentence in done:
        click.echo(f"done: {sentence}")
    for finding in findings:
        click.echo(f"{'ok' if finding.ok else 'FAULT':<6}{finding.part}: {finding.detail}")
        if finding.remedy:
            click.echo(f"{'':<6}remedy: {finding.remedy}")
