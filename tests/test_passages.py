"""Which texts stand for a record: the whole with its title, and its parts."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import records

from memsvc.core.records import Observation, Prompt, Record, Summary
from memsvc.core.semantic.passages import (
    MAX_PASSAGES,
    PASSAGE_WORDS,
    TITLE_WEIGHT,
    TITLE_WORDS,
    embedding_texts,
)

LONG = " ".join(f"w{number}" for number in range(PASSAGE_WORDS * 2 + 10))


def texts(record: Record) -> list[list[str]]:
    """The texts behind each vector, without their weights."""
    return [[text for text, _ in mixture] for mixture in embedding_texts(record)]


def test_a_short_record_has_one_vector_its_title_mixed_in() -> None:
    record = Observation(title="Fixed it", subtitle="at last", facts=("one", "two"))
    assert embedding_texts(record) == [
        (("Fixed it. at last one two", 1.0), ("Fixed it", TITLE_WEIGHT)),
    ]


def test_files_are_averaged_into_the_whole_each_once() -> None:
    record = Summary(request="Why", learned="so", files_read=("a.py",), files_edited=("a.py", "b"))
    assert embedding_texts(record) == [
        (("Why. so", 0.5), ("Why. so. a.py b", 0.5), ("Why", TITLE_WEIGHT)),
    ]


def test_a_title_alone_is_all_there_is() -> None:
    assert texts(Observation(title="Fixed it")) == [["Fixed it"]]


def test_a_prompt_has_no_title() -> None:
    assert texts(Prompt(prompt_text="why is it\nslow?")) == [["why is it\nslow?"]]


def test_a_body_without_a_title_stands_alone() -> None:
    assert texts(Observation(narrative="it was slow")) == [["it was slow"]]


@pytest.mark.parametrize("record", [Observation(), Summary(), Prompt()])
def test_an_empty_record_has_a_text_all_the_same(record: Record) -> None:
    assert texts(record) == [[""]]


def test_a_long_record_has_a_vector_for_each_part_under_its_title() -> None:
    whole, *parts = texts(Observation(title="Long", narrative=LONG, files_read=("a",)))
    assert len(parts) == 3
    assert whole == [*(text for (text,) in parts), "Long"]
    assert all(text.startswith("Long. w") for (text,) in parts)
    assert " ".join(text.removeprefix("Long. ") for (text,) in parts) == LONG


def test_a_long_prompt_has_parts_too() -> None:
    whole, *parts = texts(Prompt(prompt_text=LONG))
    assert whole == [text for (text,) in parts]
    assert len(parts) == 3


def test_a_body_that_just_fits_is_not_cut() -> None:
    fits = " ".join(["w"] * PASSAGE_WORDS)
    assert len(embedding_texts(Observation(title="t", narrative=fits))) == 1
    assert len(embedding_texts(Observation(title="t", narrative=f"{fits} w"))) == 3


def test_there_are_only_so_many_parts() -> None:
    endless = " ".join(["word"] * PASSAGE_WORDS * (MAX_PASSAGES + 5))
    whole, *parts = texts(Observation(title="t", narrative=endless))
    assert len(parts) == len(whole) - 1 == MAX_PASSAGES


def test_an_endless_title_is_cut() -> None:
    ((whole, title),) = texts(Observation(title="t " * 1_000, narrative="n"))
    assert len(title.split()) == TITLE_WORDS
    assert whole == f"{title}. n"


@given(records)
def test_any_record_has_texts_and_not_too_many(record: Record) -> None:
    whole, *parts = embedding_texts(record)
    assert len(parts) <= MAX_PASSAGES
    assert 1 <= len(whole) <= max(2, MAX_PASSAGES) + 1
    assert all(len(mixture) == 1 for mixture in parts)


@given(records)
def test_all_that_is_said_counts_once_and_the_title_half_as_much(record: Record) -> None:
    whole, *parts = embedding_texts(record)
    weight = sum(weight for _, weight in whole)
    assert weight in (pytest.approx(1), pytest.approx(1 + TITLE_WEIGHT))
    assert all(weight == 1 for mixture in parts for _, weight in mixture)


@given(records, st.integers(1, 10**12))
def test_texts_depend_on_what_a_record_says_alone(record: Record, number: int) -> None:
    other = dataclasses.replace(
        record, id=number, source="x", created_at_epoch=number, project="elsewhere"
    )
    assert embedding_texts(other) == embedding_texts(record)
