"""The texts that are embedded for a record."""

from typing import Final

from memsvc.core.records import SHAPES, Record, kind_of

RECIPE: Final = "whole, files and title averaged; parts of 70 words"
"""Part of the fingerprint: change it with the texts, so that records are embedded again."""

PASSAGE_WORDS: Final = 70
"""Words per passage: as much as the model reads well at once. A longer record has one vector per
passage.
"""

MAX_PASSAGES: Final = 24
"""Maximum passages per record: some 1,700 words; few records are longer."""

TITLE_WEIGHT: Final = 0.5
"""Weight of the title in the vector of the whole record. A separate title vector would find no
more, at half as many vectors again.
"""

TITLE_WORDS: Final = 24
"""Words of the title that precede each passage."""

MAX_LEAD: Final = 80
"""Characters of the lead: most titles, some 17 tokens; a core embeds 100 or more per second."""

Mixture = tuple[tuple[str, float], ...]
"""Texts with their weights: the vector is the weighted mean of the vectors of the texts."""


def lead_text(record: Record) -> str:
    """The title and the first words: the text that stands for a record until all of its texts are
    embedded.
    """
    return _join(*_title_and_body(record))[:MAX_LEAD]


def says_all(record: Record, lead: str) -> bool:
    """Whether the lead is the one text that is embedded for a record."""
    return [[text for text, _ in mixture] for mixture in embedding_texts(record)] == [[lead]]


def embedding_texts(record: Record) -> list[Mixture]:
    """The texts behind each vector of a record.

    The first vector stands for the whole record: its text with and without its files, or all
    passages of a long one, plus the title, which sums it up. A long record then has one vector per
    passage.
    """
    title, body = _title_and_body(record)
    passages = [_join(title, passage) for passage in _passages(body)]
    whole = _averaged(passages or _with_files(_join(title, body), _files(record)))
    named = ((title, TITLE_WEIGHT),) if title and body else ()
    return [whole + named, *(((passage, 1.0),) for passage in passages)]


def _averaged(texts: list[str]) -> Mixture:
    return tuple((text, 1 / len(texts)) for text in texts)


def _with_files(text: str, files: str) -> list[str]:
    return [text, _join(text, files)] if files else [text]


def _title_and_body(record: Record) -> tuple[str, str]:
    shape = SHAPES[kind_of(record)]
    title, *others = (_as_text(getattr(record, name)) for name in shape.texts)
    body = " ".join(filter(None, others))
    return (" ".join(title.split()[:TITLE_WORDS]), body) if others else ("", title)


def _as_text(cell: str | tuple[str, ...]) -> str:
    return " ".join(cell) if isinstance(cell, tuple) else cell


def _files(record: Record) -> str:
    named = (path for name in SHAPES[kind_of(record)].files for path in getattr(record, name))
    return " ".join(dict.fromkeys(named))


def _join(*texts: str) -> str:
    return ". ".join(filter(None, texts))


def _passages(body: str) -> list[str]:
    """The passages of a body that is too long for one vector."""
    words = body.split()
    if len(words) <= PASSAGE_WORDS:
        return []
    starts = range(0, len(words), PASSAGE_WORDS)[:MAX_PASSAGES]
    return [" ".join(words[start : start + PASSAGE_WORDS]) for start in starts]
