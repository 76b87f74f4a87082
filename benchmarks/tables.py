"""Prints results: tables for people, JSON for programs, and the machine used."""

import json
import os
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import click

Row = Mapping[str, Any]


def machine() -> str:
    """The machine that was measured."""
    python, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    return f"Python {python} · SQLite {sqlite3.sqlite_version} · {os.cpu_count()} cores · {system}"


def table(rows: Sequence[Row]) -> str:
    """Rows as a table; the first column is left-aligned, the others right-aligned."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(line, widths) for line in cells)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) <= 1 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def report(sections: Mapping[str, Any], failures: Sequence[str], *, as_json: bool) -> int:
    """Print the results; the exit code is 1 if anything failed."""
    if as_json:
        body = {"machine": machine(), **sections, "failures": list(failures)}
        click.echo(json.dumps(body, ensure_ascii=False))
    else:
        click.echo("\n\n".join([machine(), *_texts(sections), *_verdict(failures)]))
    return int(bool(failures))


def _texts(sections: Mapping[str, Any]) -> list[str]:
    return [f"{name}\n{_text(value)}" for name, value in sections.items() if value]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return table([{"": name, " ": item} for name, item in value.items()]).lstrip()
    if isinstance(value, list):
        return table(value)
    return str(value)


def _verdict(failures: Sequence[str]) -> list[str]:
    if not failures:
        return ["All checks passed."]
    shown = [f"  {failure}" for failure in failures[:50]]
    more = [f"  … and {len(failures) - 50:,} more"] if len(failures) > 50 else []
    return ["\n".join([f"{len(failures):,} checks failed:", *shown, *more])]
