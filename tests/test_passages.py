"""Which texts stand for a record: the whole, its title, its parts."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import records

from memsvc.model import Observation, Prompt, Record, Summary
from memsvc.passages import MOST_PARTS, PART_WORDS, TITLE_WORDS, passages

LONG = " ".join(f"w{number}" for number in range(PART_WORDS * 2 + 10))


def test_a_short_record_has_the_whole_and_its_title() -> None:
    record = Observation(title="Fixed it", subtitle="at last", facts=("one", "two"))
    assert passages(record) == [("Fixed it. at last one two",), ("Fixed it",)]


def test_files_are_averaged_into_the_whole_each_once() -> None:
    record = Summary(request="Why", learned="so", files_read=("a.py",), files_edited=("a.py", "b"))
    assert passages(record) == [("Why. so", "Why. so. a.py b"), ("Why",)]


def test_a_title_alone_is_all_there_is() -> None:
    assert passages(Observation(title="Fixed it")) == [("Fixed it",)]


def test_a_prompt_has_no_title() -> None:
    assert passages(Prompt(prompt_text="why is it\nslow?")) == [("why is it\nslow?",)]


def test_a_body_without_a_title_stands_alone() -> None:
    assert passages(Observation(narrative="it was slow")) == [("it was slow",)]


@pytest.mark.parametrize("record", [Observation(), Summary(), Prompt()])
def test_an_empty_record_has_a_text_all_the_same(record: Record) -> None:
    assert passages(record) == [("",)]


def test_a_long_record_has_a_text_for_each_part_under_its_title() -> None:
    whole, title, *parts = passages(Observation(title="Long", narrative=LONG, files_read=("a",)))
    assert title == ("Long",)
    assert len(parts) == 3
    assert whole == tuple(text for (text,) in parts)
    assert all(text.startswith("Long. w") for text in whole)
    assert " ".join(text.removeprefix("Long. ") for text in whole) == LONG


def test_a_long_prompt_has_parts_too() -> None:
    whole, *parts = passages(Prompt(prompt_text=LONG))
    assert whole == tuple(text for (text,) in parts)
    assert len(parts) == 3


def test_a_body_that_just_fits_is_not_cut() -> None:
    fits = " ".join(["w"] * PART_WORDS)
    assert len(passages(Observation(title="t", narrative=fits))) == 2
    assert len(passages(Observation(title="t", narrative=f"{fits} w"))) == 4


def test_there_are_only_so_many_parts() -> None:
    endless = " ".join(["word"] * PART_WORDS * (MOST_PARTS + 5))
    whole, _, *parts = passages(Observation(title="t", narrative=endless))
    assert len(parts) == len(whole) == MOST_PARTS


def test_an_endless_title_is_cut() -> None:
    _, (title,) = passages(Observation(title="t " * 1_000, narrative="n"))
    assert len(title.split()) == TITLE_WORDS


@given(records)
def test_any_record_has_texts_and_not_too_many(record: Record) -> None:
    groups = passages(record)
    assert 1 <= len(groups) <= 2 + MOST_PARTS
    assert all(1 <= len(texts) <= max(2, MOST_PARTS) for texts in groups)


@given(records, st.integers(1, 10**12))
def test_texts_depend_on_what_a_record_says_alone(record: Record, number: int) -> None:
    other = dataclasses.replace(
        record, id=number, source="x", created_at_epoch=number, project="elsewhere"
    )
    assert passages(other) == passages(record)
