"""The command that takes secrets and private parts out of what is stored already."""

import json
import sys
from collections.abc import Iterator

import click

from memsvc.application.privacy.scrubbing import Scrubbing, scrub
from memsvc.configuration.settings import Settings, load_settings

MAX_REFS = 10
"""Records that the text names; JSON has all."""


@click.command("scrub")
@click.option("--dry-run", is_flag=True, help="Report what would be taken out; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def scrub_store(dry_run: bool, as_json: bool) -> None:
    """Take <private> parts and secrets out of what is stored, also beside a running worker."""
    from memsvc.configuration.bootstrap import build_mask, build_store

    settings = load_settings()
    store = build_store(settings)
    try:
        with click.progressbar(
            map(str, ()), length=1, label="Reading", width=0, file=sys.stderr
        ) as bar:

            def show(done: int, total: int) -> None:
                bar.length = total
                bar.update(max(0, done - bar.pos))

            report = scrub(store, build_mask(), dry_run=dry_run, progress=show)
    finally:
        store.close()
    report.backups = _backups(settings)
    click.echo(json.dumps(report.as_json()) if as_json else "\n".join(_lines(report)))


def _backups(settings: Settings) -> list[str]:
    """The backups, which still hold what was taken out."""
    return sorted(map(str, (settings.home / "backups").glob("*.db")))


def _lines(report: Scrubbing) -> Iterator[str]:
    would = "would be " if report.dry_run else ""
    if not report.found:
        yield f"{report.scanned:,} records read; nothing private and no secret in them"
    else:
        yield f"{report.scanned:,} records read, {len(report.records):,} {would}changed"
        secrets = ", ".join(f"{kind} ({count:,})" for kind, count in report.secrets.most_common())
        yield f"  {report.secrets.total():,} secrets {would}masked: {secrets or 'none'}"
        yield f"  {report.private:,} records with private parts"
        yield from _named(f"{would}changed", report.records)
        yield from _named(f"{would}forgotten, all of it was private", report.forgotten)
        yield f"  {report.work_sessions:,} work sessions {would}renamed"
    if report.backups and report.found:
        yield "These backups still hold it; delete them when you need them no more:"
        yield from (f"  {path}" for path in report.backups)


def _named(what: str, refs: list[str]) -> Iterator[str]:
    if refs:
        more = f" and {len(refs) - MAX_REFS:,} more" if len(refs) > MAX_REFS else ""
        yield f"  {what}: {', '.join(refs[:MAX_REFS])}{more}"
