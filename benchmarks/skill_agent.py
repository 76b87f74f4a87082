"""A scripted agent that follows the skill's pages: what it finds, and the tokens it reads.

    python -m benchmarks.skill_agent        prints the result of each task of evals/tasks.json

It uses no model. The agent takes the command of the first row in SKILL.md's decision table that
fits, replaces the example's words with those of the question, and follows the loop: list, list
again with other words if nothing fits, read a record if a title is not enough.
"""

import contextlib
import json
import re
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.sample import NOW, run_command, sample_worker
from memsvc.core.tokens import count_tokens
from memsvc.entrypoints.skill.install import skill_folder

TASKS = skill_folder() / "evals" / "tasks.json"
MAX_ROWS = 5
"""Rows of a list that count: those an agent looks at before it rewords its question."""

MONTHS = "january february march april may june july august september october november december"
DAYS = "monday tuesday wednesday thursday friday saturday sunday"
COUNTS = "a one two three four five six seven"

PATH = re.compile(r"(?<!\S)(?:[\w.-]+/[\w./-]*\w/?|[\w-]+\.[a-z]{2,4})(?=[\s?!,.;:]|$)")
REF = re.compile(r"#\d+\b|\b[SP]\d+\b")
DAY = re.compile(
    rf"\b(?:(?P<iso>\d{{4}}-\d\d-\d\d)|(?P<back>yesterday|today)"
    rf"|(?P<count>{COUNTS.replace(' ', '|')}|\d+) (?P<unit>day|week)s? ago"
    rf"|(?P<month>{MONTHS.replace(' ', '|')}) (?P<day>\d{{1,2}})"
    rf"|last (?P<last>week|{DAYS.replace(' ', '|')}))\b",
    re.I,
)
TYPES = {
    "decision": r"decisions",
    "bugfix": r"bug ?fixes|fixes|bugs",
    "feature": r"features",
    "refactor": r"refactor(?:ings?|s)",
    "discovery": r"discoveries|findings",
}
CONCEPTS = {
    "gotcha": r"gotchas?|pitfalls?|traps?",
    "pattern": r"patterns?",
    "trade-off": r"trade-?offs?",
}


def _any_of(names: dict[str, str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(names.values())})\b", re.I)


CUES = {
    "help": re.compile(r"\b(?:parameters?|options?|flags?)\b", re.I),
    "by-file": PATH,
    "timeline": re.compile(rf"{DAY.pattern}|{REF.pattern}", re.I),
    "timeline-by-query": re.compile(
        r"\b(?:le(?:d|ading)(?: up)? to|around|(?:after|before)(?= \w)|followed)\b", re.I
    ),
    "recent-context": re.compile(
        r"\b(?:(?:did|do) we (?:stop|leave off)|left off|lately|recently)\b"
        r"|\b(?:continue|pick up|resume)\b",
        re.I,
    ),
    "by-type": _any_of(TYPES),
    "by-concept": _any_of(CONCEPTS),
    "prompts": re.compile(
        r"\bdid I\b|\bI (?:asked|told|said)\b|\bmy (?:own )?words\b|내가|我让|私が"
    ),
    "sessions": re.compile(r"\bsessions?\b(?= (?:where|when|about|in which))|\bwhole\b", re.I),
}
"""What in a question makes a row of the decision table fit. A row without a cue always fits."""

NEEDS_RECORD = re.compile(r"\b(?:why|how|stop|continue)\b|怎么|为什么|なぜ|どう|왜|어떻게", re.I)
"""A title rarely says why or how, or what was next."""

STOP_WORDS = frozenset(
    """a about again all already also always an and any anybody anymore anything are around as ask
    asked at be because been before but by can can't come continue could deal did do does don't
    else ever every find for from get give going had happen happened has have history how i in
    into is it know last led let lets list made make many me more my never no not of on one or our
    please right said say see should show so some something still stop summarize
    sure taken tell than that the their them then there they thing this time to touch told try
    used was we were what when where which while who whole why will with word words worked
    working would you your""".split()  # noqa: SIM905 - a list of strings would take a screen
)
STOP_PHRASES = re.compile(
    r"上次|之前|昨天|已经|我们|怎么|为什么|什么|是|的|了|吗|もう|前に|昨日|なぜ|どう|何|を|で|と|が|は"
    r"|の|件|しました|した|に대해|에 대해|내가|뭐라고|지난번|이미|왜|어떻게"
)


@dataclass(frozen=True)
class Line:
    """One row of the decision table: its page and its command."""

    page: str
    command: str


class Pages:
    """The skill as an agent reads it."""

    def __init__(self) -> None:
        self.skill = (skill_folder() / "SKILL.md").read_text("utf-8")
        self.first_step = self._found(r"^1\..*?`(memsvc search .*?)`")
        self.reading = self._found(r"^3\..*?`(memsvc read )")
        self.around = self._found(r"^2\..*?`(memsvc context timeline .*?)`")
        self.limit = self._found(r"every `search` with `(--limit \d+)`")
        self.lines = [*self._pointers(), *self._table()]

    def _found(self, pattern: str) -> str:
        found = re.search(pattern, self.skill, re.M)
        assert found, f"SKILL.md says nothing like {pattern}"
        return found[1]

    def _table(self) -> list[Line]:
        """The decision table, top to bottom."""
        rows = re.findall(r"^\|.*\| (.*?) \| \[([\w-]+)\]\(operations/", self.skill, re.M)
        return [Line(page, command.strip("`")) for command, page in rows]

    def _pointers(self) -> list[Line]:
        """Operations that SKILL.md names outside the table, with their own condition."""
        pointed = re.findall(r"\[([\w-]+)\]\(operations/[\w-]+\.md\)\s+when", self.skill)
        return [Line(page, self._shown(page)) for page in pointed if page in CUES]

    def _shown(self, page: str) -> str:
        text = (skill_folder() / "operations" / f"{page}.md").read_text("utf-8")
        return text.split("```bash\n", 1)[1].split("\n", 1)[0]

    def line_for(self, question: str) -> Line:
        """The first row that fits, with its full command."""
        fitting = (
            line for line in self.lines if line.page not in CUES or CUES[line.page].search(question)
        )
        line = next(fitting)
        return Line(line.page, self.first_step) if line.command == "step 1" else line


@dataclass
class Attempt:
    """What the agent did for one task."""

    task: dict[str, Any]
    pages: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    tokens: int = 0
    seen: Sequence[str] = ()
    """The refs that the agent looked at, in order."""

    @property
    def rank(self) -> int:
        """The rank of the first accepted record among those it looked at; 0 if there is none."""
        return next((n for n, ref in enumerate(self.seen, 1) if ref in self.task["answer"]), 0)


class Agent:
    """Reads the skill and queries the worker at an address."""

    def __init__(self, address: str) -> None:
        self.address, self.pages = address, Pages()

    def solve(self, task: dict[str, Any]) -> Attempt:
        """Follow the loop: at most two lists, then one record if a title is not enough."""
        attempt, rows = Attempt(task), []
        for line in self._plan(task["question"]):
            attempt.pages.append(line.page)
            printed = self.run(attempt, fill(line, task, self.pages))
            rows = listed(printed)[:MAX_ROWS]
            if line.page == "help" or fits(line, task["question"], rows):
                break
        if rows and NEEDS_RECORD.search(task["question"]):
            self.read(attempt, rows[0][0])
        attempt.seen = [ref for ref, _ in rows] or re.findall(r"^- ([\w-]+) ", printed, re.M)
        return attempt

    def _plan(self, question: str) -> list[Line]:
        """The row that fits, then step 1 as the second attempt."""
        second = Line("observations", self.pages.first_step)
        first = self.pages.line_for(question)
        return [first, second] if first.page != second.page else [first]

    def read(self, attempt: Attempt, ref: str) -> None:
        """Read one record in full."""
        self.run(attempt, self.pages.reading + ref.removeprefix("#"))

    def run(self, attempt: Attempt, command: str) -> str:
        """The output of a command; its tokens are counted."""
        with contextlib.chdir("/"):  # which is no project
            printed = run_command(command, self.address)
        attempt.commands.append(command)
        attempt.tokens += count_tokens(printed)
        return printed


def fill(line: Line, task: dict[str, Any], pages: Pages) -> str:
    """The command of a row, with the task's words instead of the example's."""
    question = task["question"]
    command = pages.around if line.page == "timeline" and REF.search(question) else line.command
    head, options = split(command)
    if head[1] == "search":
        options = shlex.split(pages.limit)
    if line.page == "recent-context":
        options[options.index("--project") + 1] = task["project"]
        return shlex.join([*head, *options])
    subject, about = subject_of(line.page, question)
    query = ["--query", " ".join(about)] if about else []
    return shlex.join([*head, *subject, *query, *options])


def split(command: str) -> tuple[list[str], list[str]]:
    """The name of a command and its options, without the example's words."""
    words = shlex.split(command)
    start = next((n for n, word in enumerate(words) if word.startswith("--")), len(words))
    return words[: 2 if words[1] == "help" else 3], words[start:]


def subject_of(page: str, question: str) -> tuple[list[str], list[str]]:
    """The argument of the command, and the words to rank by."""
    if page == "timeline":
        ref = REF.search(question)
        return [ref[0].removeprefix("#") if ref else date_in(question)], []
    if page == "by-file":
        path = PATH.search(question)
        assert path
        return [path[0]], words_of(question.replace(path[0], " "))
    if page in ("by-type", "by-concept"):
        names = TYPES if page == "by-type" else CONCEPTS
        name = next(name for name in names if re.search(rf"\b(?:{names[name]})\b", question, re.I))
        return [name], words_of(_any_of(names).sub(" ", question))
    if page == "help":
        return [next(o for o in CUES if o in question)], []
    cue = CUES.get(page)
    return words_of(cue.sub(" ", question) if cue else question), []


def words_of(question: str) -> list[str]:
    """The words of a question that a record could contain."""
    plain = STOP_PHRASES.sub(" ", question.lower()) if not question.isascii() else question.lower()
    found = re.findall(r"[\w'/.-]*\w", plain)
    return [word for word in dict.fromkeys(found) if word not in STOP_WORDS]


def date_in(question: str) -> str:
    """The day that a question names, as a date, relative to the sample worker's clock."""
    found = DAY.search(question)
    assert found
    today = datetime.fromtimestamp(NOW / 1000, UTC)
    if found["iso"]:
        return found["iso"]
    if found["month"]:
        month = MONTHS.split().index(found["month"].lower()) + 1
        return f"{today.year}-{month:02}-{int(found['day']):02}"
    return f"{today - timedelta(days=_days_back(found, today.weekday())):%Y-%m-%d}"


def _days_back(found: re.Match[str], weekday: int) -> int:
    if found["count"]:
        names, count = COUNTS.split(), found["count"].lower()
        number = int(count) if count.isdigit() else max(1, names.index(count))
        return number * (7 if found["unit"].lower() == "week" else 1)
    if found["last"]:
        if found["last"].lower() == "week":
            return weekday + 7
        return (weekday - DAYS.split().index(found["last"].lower()) - 1) % 7 + 1
    return 1 if found["back"].lower() == "yesterday" else 0


def listed(printed: str) -> list[tuple[str, str]]:
    """The rows of a text answer: ref and title."""
    row = r"^\| (#?[SP]?\d+).*? \| [^|]* \| [^|]* \| (.*) \| (?:\d*|whole) \|$"
    return [(ref, title) for ref, title in re.findall(row, printed, re.M)]


def fits(line: Line, question: str, rows: list[tuple[str, str]]) -> bool:
    """Whether any row fits: a title shares a word with the question, or path or time suffices."""
    if line.page not in ("observations", "sessions", "prompts"):
        return bool(rows)
    words = [word[:5] for word in words_of(question)]
    return any(word in title.lower() for word in words for _, title in rows)


@dataclass(frozen=True)
class Report:
    """The results of all tasks."""

    attempts: list[Attempt]

    @property
    def found(self) -> int:
        return sum(attempt.rank > 0 for attempt in self.attempts)

    @property
    def first(self) -> int:
        return sum(attempt.rank == 1 for attempt in self.attempts)

    @property
    def median(self) -> float:
        return statistics.median(attempt.tokens for attempt in self.attempts)

    def __str__(self) -> str:
        return (
            f"{self.found} of {len(self.attempts)} found, {self.first} in the first row; "
            f"median {self.median:.0f} tokens read"
        )


def read_tasks() -> list[dict[str, Any]]:
    """The tasks of the skill's evals."""
    tasks: list[dict[str, Any]] = json.loads(TASKS.read_text("utf-8"))
    return tasks


def run_tasks() -> Report:
    """Do all tasks, one after the other, on the sample store."""
    with sample_worker() as address:
        agent = Agent(address)
        return Report([agent.solve(task) for task in read_tasks()])


def main() -> None:
    """Print the result of each task."""
    report = run_tasks()
    for attempt in report.attempts:
        facts = f"rank {attempt.rank} · {attempt.tokens} of {attempt.task['budget']} tokens"
        print(f"{attempt.task['id']} {facts} · {attempt.task['question']}")
        print(*(f"    {command}" for command in attempt.commands), sep="\n")
    print(report)


if __name__ == "__main__":
    main()
