"""The documents' commands and answers: run them on the sample store, compare, or write them anew.

    python -m tests.documents        writes README.md's answers and tables, the skill's pages anew

A block of ```bash is followed by a block with its answer. The worker that answers holds the
bundled sample, its clock stands still, and its zone is UTC.
"""

import json
import re
from pathlib import Path

from benchmarks.sample import run_command, sample_worker
from benchmarks.savings import savings
from memsvc.api.skill_pages import pages
from memsvc.configuration.settings import SETTINGS
from memsvc.entrypoints.skill.install import tree

ROOT = Path(__file__).parent.parent

EXAMPLE = re.compile(
    r"```bash\n(?P<command>.*?)```\n(?P<gap>\s*)```(?P<kind>\w+)\n(?P<answer>.*?)```", re.S
)
BASH = re.compile(r"```bash\n(.*?)```", re.S)
TABLE = re.compile(r"(<!-- (?P<name>\w+) -->\n).*?(<!-- /(?P=name) -->)", re.S)


def shown(answer: str, kind: str) -> str:
    """An answer as a document shows it: JSON with one field a line."""
    if kind == "json":
        answer = json.dumps(json.loads(answer), indent=1, ensure_ascii=False)
    return answer.rstrip("\n") + "\n"


def refresh(document: str, address: str) -> str:
    """The document with the answers that its commands get now, and its generated tables."""

    def answered(found: re.Match[str]) -> str:
        answer = shown(run_command(found["command"], address), found["kind"])
        return f"```bash\n{found['command']}```\n{found['gap']}```{found['kind']}\n{answer}```"

    filled = EXAMPLE.sub(answered, document)
    return TABLE.sub(lambda found: found[1] + TABLES[found["name"]]() + found[3], filled)


def settings_table() -> str:
    """The settings as a markdown table."""
    rows = [f"| `{s.variable}` | {s.default or '-'} | {s.meaning} |" for s in SETTINGS]
    return "\n".join(["| Variable | Default | Meaning |", "|---|---|---|", *rows]) + "\n"


def savings_table() -> str:
    """What each strategy finds and takes, as a markdown table."""
    head = ["| Strategy | Found, of 30 | Median tokens | 90th percentile | Of 20 in full |"]
    rows = [
        f"| {row['strategy']} | {row['found']} | {row['median']:,} | {row['p90']:,} "
        f"| {row['share']:.0%} |"
        for row in savings()
    ]
    return "\n".join([*head, "|---|--:|--:|--:|--:|", *rows]) + "\n"


TABLES = {"settings": settings_table, "savings": savings_table}
"""Tables that stand in a document between two marks of their name."""


def documents() -> dict[Path, str]:
    """Every document by its place: the generated pages as the table makes them, the rest as is."""
    generated = {tree() / place: page for place, page in pages().items()}
    written = [ROOT / "README.md", *sorted(tree().rglob("*.md"))]
    return {path: path.read_text("utf-8") for path in written} | generated


def renewed(path: Path) -> str:
    """A document as it should be; it asks a worker of its own, for some documents write."""
    with sample_worker() as address:
        return refresh(documents()[path], address)


def main() -> None:
    """Write every document anew."""
    for path in documents():
        document = renewed(path)
        path.parent.mkdir(exist_ok=True)
        path.write_text(document, "utf-8")


if __name__ == "__main__":
    main()
