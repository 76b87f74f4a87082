"""What the layers save: the tokens delivered for a task, against fetching 20 records in full.

Each strategy does the tasks of the skill's evals over the bundled sample, by full text alone, and
takes every answer as text. A task is found when an accepted record is among those delivered: in
full, even if a budget clipped it, or as a row. Of a list of the skill's loop only the first five
rows count. The tokens of a task are those of all its answers; only tasks that are found count.

The loop takes the list that fits the question; the others ask one search over all kinds, in the
same words. Where one record is read whatever the titles say, it is an accepted one of those listed,
as one who understands titles would choose, or else the first. One task asks for a parameter and has
no record: only the loop can find it.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from benchmarks.metrics import percentile
from benchmarks.sample import sample_worker
from benchmarks.skill_agent import Agent, Attempt, listed, read_tasks, words_of
from benchmarks.tables import Row, report
from memsvc.core.tokens import ESTIMATOR

Task = dict[str, Any]
Strategy = Callable[[Agent, Task], Attempt]

WHOLE: Final = "20 in full"

LEAST_FOUND: Final = 28
LARGEST_SHARE: Final = 0.1
"""The bar for the loop: tasks found, and its median as a share of that of 20 in full."""

HEADING: Final = re.compile(r"^### (#\d+|[SP]\d+) ", re.M)
"""How a record in full starts: with its ref."""


def measure_savings(*, as_json: bool) -> int:
    """Do the tasks with each strategy; the exit code says whether the loop clears the bar."""
    rows = savings()
    section = f"tokens delivered for a task ({ESTIMATOR}), {len(read_tasks())} tasks"
    return report({section: list(rows)}, missed(rows[0]), as_json=as_json)


@cache
def savings() -> tuple[Row, ...]:
    """A row for each strategy, the loop first: tasks found, and what one took.

    The sample stays the same, so it is measured once.
    """
    tasks = read_tasks()
    with sample_worker() as address:
        agent = Agent(address)
        taken = {name: _taken(agent, tasks, solve) for name, solve in STRATEGIES.items()}
    whole = percentile(taken[WHOLE], 0.5)
    return tuple(_row(name, tokens, whole) for name, tokens in taken.items())


def _taken(agent: Agent, tasks: Sequence[Task], solve: Strategy) -> list[int]:
    """The tokens of each task that is found."""
    attempts = (solve(agent, task) for task in tasks)
    return [attempt.tokens for attempt in attempts if attempt.rank]


def _row(name: str, tokens: Sequence[int], whole: float) -> Row:
    median = percentile(tokens, 0.5)
    return {
        "strategy": name,
        "found": len(tokens),
        "median": median,
        "p90": percentile(tokens, 0.9),
        "share": median / whole,
    }


def missed(loop: Row) -> list[str]:
    """The sentences that say what of the bar the loop misses."""
    failures = []
    if loop["found"] < LEAST_FOUND:
        failures.append(f"{loop['strategy']}: {loop['found']} tasks found, at least {LEAST_FOUND}")
    if loop["share"] > LARGEST_SHARE:
        share = f"costs {loop['share']:.3f} of {WHOLE}"
        failures.append(f"{loop['strategy']}: {share}, at most {LARGEST_SHARE}")
    return failures


# -- the strategies -------------------------------------------------------------------------------


def _loop_and_record(agent: Agent, task: Task) -> Attempt:
    """The skill's loop, and one record also where a title is enough; help has none to read."""
    attempt = agent.solve(task)
    done = attempt.pages[-1] == "help" or attempt.commands[-1].startswith(agent.pages.reading)
    return attempt if done else _read_one(agent, attempt)


def _layers(agent: Agent, task: Task) -> Attempt:
    """Five rows, what stands around the first of them, and one record."""
    attempt = Attempt(task)
    rows = _listed(agent, attempt, f"{_search(task)} --limit 5")
    if rows:
        anchor = rows[0].removeprefix("#")
        around = f"memsvc context timeline {anchor} --depth-before 2 --depth-after 2"
        rows = rows + _listed(agent, attempt, around)
    attempt.seen = rows
    return _read_one(agent, attempt)


def _rows(agent: Agent, task: Task) -> Attempt:
    """Twenty rows, and one record."""
    attempt = Attempt(task)
    attempt.seen = _listed(agent, attempt, f"{_search(task)} --limit 20")
    return _read_one(agent, attempt)


def _full(options: str) -> Strategy:
    """The best records in full at once."""

    def solve(agent: Agent, task: Task) -> Attempt:
        attempt = Attempt(task)
        printed = agent.run(attempt, f"{_search(task)} --format full {options}")
        attempt.seen = HEADING.findall(printed)
        return attempt

    return solve


def _search(task: Task) -> str:
    """One search over all kinds, in the words of the question."""
    return f"memsvc search {shlex.join(words_of(task['question']) or ['memory'])}"


def _listed(agent: Agent, attempt: Attempt, command: str) -> list[str]:
    return [ref for ref, _ in listed(agent.run(attempt, command))]


def _read_one(agent: Agent, attempt: Attempt) -> Attempt:
    """Read the accepted record among those listed, or else the first."""
    if attempt.seen:
        agent.read(attempt, attempt.seen[max(attempt.rank, 1) - 1])
    return attempt


STRATEGIES: Final[dict[str, Strategy]] = {
    "the skill's loop": Agent.solve,
    "the skill's loop, always 1 record": _loop_and_record,
    "5 rows, timeline of 5, 1 record": _layers,
    "20 rows, 1 record": _rows,
    **{f"{count} in full": _full(f"--limit {count}") for count in (3, 5, 10)},
    WHOLE: _full("--limit 20"),
    **{
        f"{WHOLE}, at most {most:,} tokens": _full(f"--limit 20 --max-tokens {most}")
        for most in (1000, 2000, 4000)
    },
}
