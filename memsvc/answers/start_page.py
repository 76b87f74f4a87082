"""The session-start page as text."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from memsvc.answers.page import Page, Row, cost_as_json, cost_as_text, with_own_cost
from memsvc.answers.quoting import MEMORY_IS_DATA, name_of, one_line
from memsvc.core.dates import local_day, local_text
from memsvc.core.economics import Discovery, Economics, discovery_cost


def write_start_page(page: Page) -> str:
    """The page as text: an index by day, the last summary, the costs, and the commands for more.

    If the budget is small, the oldest rows are dropped first.
    """
    summary = page.notes.get("summary")
    if not page.total and not summary:
        return with_own_cost(lambda this: "\n".join(_empty_page(page, this)) + "\n")
    scope = [one_line(f"scope: {text}")] if (text := page.notes.get("scope")) else []
    future = [one_line(text)] if (text := page.notes.get("future")) else []
    index = [*_index(page.rows), *_summary(summary), *scope, *future]
    lines = [LEGEND, *index, *_costs(page.rows), *_next_steps(page)]
    return with_own_cost(lambda this: "\n".join([_header(page, this), *lines]) + "\n")


LEGEND: Final = f"Legend: #id time type title (tokens to read). {MEMORY_IS_DATA}"


def _header(page: Page, this: int) -> str:
    counts = f"newest {len(page.rows)} of {page.total} observations, oldest first"
    return f"# Memory{_of_project(page)} · {counts} · {this} tokens"


def _of_project(page: Page) -> str:
    project = page.echo.get("project")
    return f" of {one_line(project)}" if project else ""


def _empty_page(page: Page, this: int) -> list[str]:
    """Two lines for a store or project without records."""
    near = ", ".join(map(name_of, page.notes.get("nearest", {}).get("project", ())))
    hint = f"Projects with records: {near}." if near else "Add some: memsvc import --help."
    hint = page.notes.get("future", hint)
    return [
        f"# Memory{_of_project(page)} · no records yet · {this} tokens",
        f"What is done and learned here can be found in later sessions. {hint}",
    ]


def _index(rows: Sequence[Row]) -> list[str]:
    """The rows in time order, grouped by day."""
    several = len({row.get("project") for row in rows}) > 1
    days = groupby(reversed(rows), key=lambda row: local_day(row["created_at_epoch"]))
    return [line for day, of_day in days for line in (day, *(_line(r, several) for r in of_day))]


def _line(row: Row, several: bool) -> str:
    """One row; it names its project if the page has several."""
    time = local_text(row["created_at_epoch"])[-5:]
    project = f"{name_of(row['project'])}:" if several and row.get("project") else ""
    facts = f"#{row['ref']} {time} {name_of(row.get('type', ''))} {project} {row['title']}"
    return one_line(f"{facts} ({cost_as_text(row) or '?'})")


def _summary(summary: Mapping[str, Any] | None) -> list[str]:
    if not summary:
        return []
    when = local_text(summary["created_at_epoch"])
    texts = [(name, summary.get(name)) for name in ("learned", "next_steps")]
    return [
        one_line(f"Last summary {summary['ref']} {when}: {summary['title']}"),
        *(one_line(f"{name.replace('_', ' ')}: {text}") for name, text in texts if text),
    ]


def _costs(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    costs = economics_of(rows, cost_as_text)
    read = f"Reading all of these: {costs.read} tokens"
    return [
        f"{read}; learning them cost {costs.learned}, so reading saves {costs.percent}%."
        if costs.learned
        else f"{read}."
    ]


def economics_of(rows: Sequence[Row], cost: Callable[[Row], int] = cost_as_json) -> Economics:
    """What the observations on a page cost and save."""
    costly = [row for row in rows if row.get("discovery_tokens")]
    read, known = (sum(map(cost, some)) for some in (rows, costly))
    return Economics(read, known, discovery_cost(sorted(map(_discovery, costly))))


def _discovery(row: Row) -> Discovery:
    number = row["prompt_number"]
    place = row.get("project", ""), row["session_id"], -1 if number is None else number
    return Discovery(*place, row["discovery_tokens"], row["created_at_epoch"])


def _next_steps(page: Page) -> list[str]:
    """The commands of the three layers."""
    refs = [row["ref"] for row in page.rows[:2]] or [page.notes["summary"]["ref"]]
    around = f"memsvc timeline {refs[0]} --depth-before 3"
    return [f"More: memsvc search WORDS --limit 5 · {around} · memsvc read {','.join(refs)}"]
