"""What an agent that follows the skill's pages finds, and what it reads for that."""

import json
import re
from datetime import date

import pytest

from benchmarks.skill_agent import Report, date_in, listed, read_tasks, run_tasks, split, words_of
from memsvc.api.operations import TEN
from memsvc.entrypoints.skill.install import skill_folder

TRIGGERS = json.loads((skill_folder() / "evals" / "triggers.json").read_text("utf-8"))
TASK_LIST = read_tasks()
REFS = re.compile(r"#\d+|[SP]\d+")


@pytest.fixture(scope="module")
def report() -> Report:
    """All tasks done by the scripted agent."""
    return run_tasks()


def test_the_right_record_is_found_in_at_least_28_of_30_tasks(report: Report) -> None:
    missed = [attempt.task["question"] for attempt in report.attempts if not attempt.rank]
    assert report.found >= 28, missed


def test_the_median_task_reads_at_most_600_tokens(report: Report) -> None:
    assert report.median <= 600, str(report)


def test_at_least_28_tasks_stay_within_their_budget(report: Report) -> None:
    over = [a.task["id"] for a in report.attempts if a.tokens > a.task["budget"]]
    assert len(over) <= 2, over


def test_the_decision_table_leads_to_an_operation_that_suffices(report: Report) -> None:
    astray = [a.task["id"] for a in report.attempts if a.pages[0] not in a.task["operations"]]
    assert len(astray) <= 2, astray


def test_no_task_takes_more_than_two_lists_and_one_record(report: Report) -> None:
    assert all(len(attempt.commands) <= 3 for attempt in report.attempts)


# -- the tasks ------------------------------------------------------------------------------------


def test_there_are_30_different_tasks_over_all_ten_operations() -> None:
    assert len({task["question"] for task in TASK_LIST}) == len(TASK_LIST) == 30
    assert {name for task in TASK_LIST for name in task["operations"]} == {o.name for o in TEN}


def test_every_accepted_answer_is_in_the_sample() -> None:
    from memsvc.adapters.importers.jsonl import SAMPLE

    marks = {"observation": "#", "session": "S", "prompt": "P"}
    counts = dict.fromkeys(marks.values(), 0)
    for line in SAMPLE.read_text("utf-8").splitlines():
        counts[marks[json.loads(line).get("kind", "observation")]] += 1
    for ref in (ref for task in TASK_LIST for ref in task["answer"] if REFS.fullmatch(ref)):
        assert 1 <= int(ref[1:]) <= counts[ref[0]], ref


def test_all_tasks_but_one_ask_for_records() -> None:
    others = [t for t in TASK_LIST if not all(REFS.fullmatch(ref) for ref in t["answer"])]
    assert [task["operations"] for task in others] == [["help"]]


def test_no_question_is_a_title_of_the_sample() -> None:
    from memsvc.adapters.importers.jsonl import SAMPLE

    records = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    for record in records:
        title = (record.get("title") or record.get("request") or "").lower()
        assert not title or not [t for t in TASK_LIST if title in t["question"].lower()], title


# -- the triggers ---------------------------------------------------------------------------------


def test_half_of_60_different_sentences_should_trigger_the_skill() -> None:
    assert len({case["text"] for case in TRIGGERS}) == len(TRIGGERS) == 60
    assert sum(case["trigger"] for case in TRIGGERS) == 30


def test_near_misses_are_of_the_sorts_that_the_description_excludes() -> None:
    sorts = {case["why"] for case in TRIGGERS if not case["trigger"]}
    assert sorts == {"this conversation", "general knowledge", "code as it is", "saving memories"}
    assert not [case for case in TRIGGERS if case["trigger"] and "why" in case]


def test_near_misses_share_words_with_what_should_trigger() -> None:
    """Told apart by their sense alone: words such as before, did and why are on both sides."""
    near = [case["text"] for case in TRIGGERS if not case["trigger"]]
    words = r"\b(?:did|why|what happened|before|decision|session|last|today|the difference|how)\b"
    assert sum(bool(re.search(words, text)) for text in near) >= 15


# -- the agent's own reading ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("what did we do on 2026-09-18?", "2026-09-18"),
        ("what happened yesterday?", "2026-11-12"),
        ("what did we do today", "2026-11-13"),
        ("three weeks ago", "2026-10-23"),
        ("a week ago", "2026-11-06"),
        ("10 days ago", "2026-11-03"),
        ("what about October 13?", "2026-10-13"),
        ("last friday", "2026-11-06"),
        ("last Monday", "2026-11-09"),
        ("what happened last week", "2026-11-02"),
    ],
)
def test_the_agent_turns_days_into_dates(question: str, day: str) -> None:
    assert date.fromisoformat(date_in(question)) == date.fromisoformat(day)


def test_the_agent_reads_refs_and_titles_from_rows() -> None:
    printed = (
        "2 of 2 · temporal\n"
        "| #87 <- anchor | 2026-10-13 07:46 older | bugfix | Third \\| last fix | 275 |\n"
        "| S18 | 2026-10-13 09:32 | session | End the incident | 277 |\n"
        "Read: memsvc read 87,S18\n"
    )
    assert listed(printed) == [("#87", "Third \\| last fix"), ("S18", "End the incident")]


def test_the_agent_takes_the_words_that_a_record_could_hold() -> None:
    assert words_of("why did we drop Redis for the logins?") == ["drop", "redis", "logins"]
    assert words_of("上次中文搜索怎么修好的?") == ["中文搜索", "修好"]


def test_the_agent_keeps_a_command_and_its_options_and_drops_the_example() -> None:
    name, options = split("memsvc timeline by-query disk full --depth-before 2")
    assert name == ["memsvc", "timeline", "by-query"]
    assert options == ["--depth-before", "2"]
