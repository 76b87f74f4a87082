"""The texts that are embedded for a record."""

from typing import Final

from memsvc.core.records import SHAPES, Record, kind_of

RECIPE: Final = "whole, files and title averaged; parts of 70 words"
"""Part of the fingerprint: change it with the texts, so that records are embedded again."""

PART_WORDS: Final = 70
"""Words of a part: what the model reads well at once. A longer record has a vector for each."""

MAX_PARTS: Final = 24
"""Parts of a record that are embedded: some 1,700 words; few records are longer."""

TITLE_WEIGHT: Final = 0.5
"""Weight of the title beside the rest. As a vector of its own it finds no more, for half as many
vectors again."""

TITLE_WORDS: Final = 24
"""Words of the title that precede each part."""


Mixture = tuple[tuple[str, float], ...]
"""Texts with their weights: the vector is the weighted mean of the vectors of the texts."""


def passages(record: Record) -> list[Mixture]:
    """The texts behind each vector of a record.

    The first vector stands for the whole record: its text with and without its files, or all parts
    of a long one, and the title once more, which says in few words what the rest is about. Then
    comes one vector for each part of a long record.
    """
    title, body = _title_and_body(record)
    parts = [_join(title, part) for part in _parts(body)]
    whole = _evenly(parts or _with_files(_join(title, body), _files(record)))
    named = ((title, TITLE_WEIGHT),) if title and body else ()
    return [whole + named, *(((part, 1.0),) for part in parts)]


def _evenly(texts: list[str]) -> Mixture:
    return tuple((text, 1 / len(texts)) for text in texts)


def _with_files(text: str, files: str) -> list[str]:
    return [text, _join(text, files)] if files else [text]


def _title_and_body(record: Record) -> tuple[str, str]:
    shape = SHAPES[kind_of(record)]
    title, *others = (_plain(getattr(record, name)) for name in shape.texts)
    body = " ".join(filter(None, others))
    return (" ".join(title.split()[:TITLE_WORDS]), body) if others else ("", title)


def _plain(cell: str | tuple[str, ...]) -> str:
    return " ".join(cell) if isinstance(cell, tuple) else cell


def _files(record: Record) -> str:
    named = (path for name in SHAPES[kind_of(record)].files for path in getattr(record, name))
    return " ".join(dict.fromkeys(named))


def _join(*texts: str) -> str:
    return ". ".join(filter(None, texts))


def _parts(body: str) -> list[str]:
    """The parts of a body that is too long for one vector."""
    words = body.split()
    if len(words) <= PART_WORDS:
        return []
    starts = range(0, len(words), PART_WORDS)[:MAX_PARTS]
    return [" ".join(words[start : start + PART_WORDS]) for start in starts]
