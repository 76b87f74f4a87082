"""README.md, docs/ and the skill: run their commands and refresh the answers that they show.

    python -m tests.documents        refreshes every answer, every table and the generated pages

A ```bash block is followed by a block with its answer. The worker that answers holds the bundled
sample; its clock stands still and its time zone is UTC, so the answers never change by themselves.
"""

import contextlib
import json
import re
from pathlib import Path

from benchmarks.__main__ import benchmarks
from benchmarks.sample import run_command, sample_worker
from benchmarks.savings import WHOLE, savings
from memsvc.api.help import error_codes
from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.skill_pages import pages
from memsvc.configuration.settings import SETTINGS
from memsvc.core.records import Kind, Ref
from memsvc.entrypoints.skill.install import skill_folder
from memsvc.schemas.records import record_fields

ROOT = Path(__file__).parent.parent

EXAMPLE = re.compile(
    r"```bash\n(?P<command>.*?)```\n(?P<gap>\s*)```(?P<kind>\w+)\n(?P<answer>.*?)```", re.S
)
BASH = re.compile(r"```bash\n(.*?)```", re.S)
TABLE = re.compile(r"(<!-- (?P<name>\w+) -->\n).*?(<!-- /(?P=name) -->)", re.S)


def shown(answer: str, kind: str) -> str:
    """An answer as a document shows it: JSON with one field per line."""
    if kind == "json":
        answer = json.dumps(json.loads(answer), indent=1, ensure_ascii=False)
    return answer.rstrip("\n") + "\n"


def refresh(document: str, address: str) -> str:
    """The document with current answers from the worker at `address`, and current tables."""

    def answered(found: re.Match[str]) -> str:
        answer = shown(run_command(found["command"], address), found["kind"])
        return f"```bash\n{found['command']}```\n{found['gap']}```{found['kind']}\n{answer}```"

    filled = EXAMPLE.sub(answered, document)
    return TABLE.sub(lambda found: found[1] + TABLES[found["name"]]() + found[3], filled)


# -- tables ---------------------------------------------------------------------------------------


def markdown_table(columns: str, align: str, rows: list[str]) -> str:
    """A markdown table; `columns`, `align` and `rows` are the text between the outer bars."""
    return "".join(f"|{line}|\n" for line in (columns, align, *rows))


def settings_table() -> str:
    rows = [f" `{s.variable}` | {s.default or '-'} | {s.description} " for s in SETTINGS]
    return markdown_table(" Variable | Default | Description ", "---|---|---", rows)


def routes_table() -> str:
    rows = [f" {_paths(o)} | {_command(o)} | {o.summary} " for o in OPERATIONS]
    return markdown_table(" Route | memsvc … | What it does ", "---|---|---", rows)


def _paths(operation: Operation) -> str:
    aliases = "".join(f", also `{alias}`" for alias in operation.aliases)
    return f"`{operation.method} {operation.path}`{aliases}"


def _command(operation: Operation) -> str:
    return f"`{operation.command}`" if operation.command else "-"


def fields_table() -> str:
    rows = [f" {kind} | `{Ref(kind, 12)}` | {_fields(kind)} " for kind in Kind]
    return markdown_table(" Kind | Ref | Fields ", "---|---|---", rows)


def _fields(kind: Kind) -> str:
    return ", ".join(f"`{name}`" for name in record_fields(kind) if name != "kind")


def errors_table() -> str:
    rows = [f" {e['status']} | `{e['code']}` | {e['title']} " for e in error_codes()]
    return markdown_table(" Status | Code | Title ", "--:|---|---", rows)


def benchmarks_table() -> str:
    commands = sorted(benchmarks.commands.items())
    rows = [f" `{name}` | {command.short_help} " for name, command in commands]
    return markdown_table(" Benchmark | Question ", "---|---", rows)


def savings_table() -> str:
    """What each way of searching finds and costs."""
    rows = [
        f" {row['strategy']} | {row['found']} | {row['median']:,} | {row['p90']:,} "
        f"| {row['share']:.0%} "
        for row in savings()
    ]
    columns = " Strategy | Found, of 30 | Median tokens | 90th percentile | Of 20 in full "
    return markdown_table(columns, "---|--:|--:|--:|--:", rows)


def savings_sentence() -> str:
    """The first and the most expensive row of that table, in words."""
    loop, whole = savings()[0], next(row for row in savings() if row["strategy"] == WHOLE)
    return (
        f"An agent that follows the skill finds {loop['found']} of 30 answers and reads "
        f"{loop['median']:,} tokens for each (median). One search for 20 full records finds "
        f"{whole['found']} and costs {whole['median']:,} tokens.\n"
    )


TABLES = {
    "settings": settings_table,
    "routes": routes_table,
    "fields": fields_table,
    "errors": errors_table,
    "benchmarks": benchmarks_table,
    "savings": savings_table,
    "savings_sentence": savings_sentence,
}
"""What is generated between two markers: `<!-- name -->` and `<!-- /name -->`."""


# -- documents ------------------------------------------------------------------------------------


def handwritten() -> list[Path]:
    """README.md and docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def documents() -> dict[Path, str]:
    """Every document by path; generated pages of the skill still have empty answers."""
    generated = {skill_folder() / place: page for place, page in pages().items()}
    written = [*handwritten(), *sorted(skill_folder().rglob("*.md"))]
    return {path: path.read_text("utf-8") for path in written} | generated


def renewed(path: Path) -> str:
    """A document as it should be. It asks a worker of its own, because some documents write."""
    with sample_worker() as address:
        return refresh(documents()[path], address)


def main() -> None:
    """Refresh every document; in the root folder, which is no project."""
    with contextlib.chdir("/"):
        for path in documents():
            document = renewed(path)
            path.parent.mkdir(exist_ok=True)
            path.write_text(document, "utf-8")


if __name__ == "__main__":
    main()
