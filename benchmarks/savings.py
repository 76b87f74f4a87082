"""What listing before reading saves: tokens per task, compared with reading 20 full records.

Each strategy does the tasks of the skill's evals on the bundled sample, with full text only, and
takes all answers as text. A task is found if an accepted record is delivered: in full, even if
clipped by a budget, or as a row. In a list of the skill's loop only the first five rows count. The
tokens of a task are those of all its answers; only tasks that are found count.

The loop takes the list that fits the question; the other strategies run one search over all kinds
with the same words. A strategy that always reads one record reads an accepted one if it is listed,
as a reader who understands titles would, or else the first. One task asks for a parameter and has
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
MAX_SHARE: Final = 0.1
"""The limits for the loop: tasks found, and its median as a share of that of 20 full records."""

HEADING: Final = re.compile(r"^### (#\d+|[SP]\d+) ", re.M)
"""The heading of a full record, with its ref."""


def measure_savings(*, as_json: bool) -> int:
    """Do the tasks with each strategy; the exit code says whether the loop is within its limits."""
    rows = savings()
    section = f"tokens per task ({ESTIMATOR}), {len(read_tasks())} tasks"
    return report({section: list(rows)}, missed(rows[0]), as_json=as_json)


@cache
def savings() -> tuple[Row, ...]:
    """A row per strategy, the loop first: tasks found, and tokens per task.

    Cached, because the sample never changes.
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
    """A sentence for each limit that the loop misses."""
    failures = []
    if loop["found"] < LEAST_FOUND:
        failures.append(f"{loop['strategy']}: {loop['found']} tasks found, at least {LEAST_FOUND}")
    if loop["share"] > MAX_SHARE:
        share = f"costs {loop['share']:.3f} of {WHOLE}"
        failures.append(f"{loop['strategy']}: {share}, at most {MAX_SHARE}")
    return failures


# -- the strategies -------------------------------------------------------------------------------


def _loop_and_record(agent: Agent, task: Task) -> Attempt:
    """The skill's loop plus one record even if a title is enough; help has no record to read."""
    attempt = agent.solve(task)
    done = attempt.pages[-1] == "help" or attempt.commands[-1].startswith(agent.pages.reading)
    return attempt if done else _read_one(agent, attempt)


def _layers(agent: Agent, task: Task) -> Attempt:
    """Five rows, the timeline around the first, and one record."""
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
    """A search that returns full records."""

    def solve(agent: Agent, task: Task) -> Attempt:
        attempt = Attempt(task)
        printed = agent.run(attempt, f"{_search(task)} --format full {options}")
        attempt.seen = HEADING.findall(printed)
        return attempt

    return solve


def _search(task: Task) -> str:
    """One search over all kinds, with the words of the question."""
    return f"memsvc search {shlex.join(words_of(task['question']) or ['memory'])}"


def _listed(agent: Agent, attempt: Attempt, command: str) -> list[str]:
    return [ref for ref, _ in listed(agent.run(attempt, command))]


def _read_one(agent: Agent, attempt: Attempt) -> Attempt:
    """Read the accepted record if it is listed, or else the first."""
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
