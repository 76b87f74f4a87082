"""Snippets: the excerpt of a record that shows why it was found."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from memsvc.core.words import STOP_WORDS, has_cjk, subwords, tokens

MAX_SNIPPET = 160
"""Length of a snippet in characters, without the marks: about 40 tokens."""

LEAD_LENGTH = 40
"""Characters kept before the first marked word."""

MAX_READ = 4_000
"""Characters of a text that are read: a snippet need not come from far down."""

_SUFFIX = re.compile(r"(?:ations?|ings?|ies|ied|ed|es|e|ly|s|y|er|ers|ion|ions)$")
_WORD = re.compile(r"[^\W_]+")


class Mark(NamedTuple):
    """A matching word in a text: its position and the stem that it matches."""

    start: int
    end: int
    stem: str


def stems_of(words: Iterable[str]) -> tuple[str, ...]:
    """The common prefixes (stems) of these words' forms, longest first, without stop words.

    They only approximate the index's stemming: good enough to highlight, never used to search.
    """
    named = (piece for word in words for token in tokens(word) for piece in _forms(token))
    stems = {_stem(piece) for piece in named if piece.lower() not in STOP_WORDS}
    return tuple(sorted(stems, key=lambda stem: (-len(stem), stem)))


def _forms(token: str) -> list[str]:
    return [token, *subwords(token)]


def _stem(word: str) -> str:
    low = word.lower()
    stem = _SUFFIX.sub("", low)
    return stem if len(stem) >= 3 else low


def marks_in(text: str, stems: tuple[str, ...]) -> list[Mark]:
    """The words of a text that start with one of these stems, inside identifiers too."""
    return [
        Mark(word.start() + start, word.start() + end, stem)
        for word in _words_with(text, stems)
        for start, end, stem in _marks_of(word[0], stems)
    ]


def _words_with(text: str, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
    """The words of a text that contain one of these stems, and possibly some others."""
    low = text.lower()
    if len(low) != len(text):  # lower-casing changed the length, so the positions no longer agree
        yield from _WORD.finditer(text)
        return
    end = 0
    for found in _any_of(stems).finditer(low):  # much faster than testing every word
        if found.start() >= end and (word := _word_around(text, found.start(), end)):
            end = word.end()
            yield word


@lru_cache(maxsize=64)
def _any_of(stems: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, stems)))


def _word_around(text: str, position: int, begin: int) -> re.Match[str] | None:
    """The word at a position, starting no earlier than `begin`."""
    while position > begin and text[position - 1].isalnum():
        position -= 1
    return _WORD.match(text, position)


@lru_cache(maxsize=16_384)  # texts, and the rows of one answer, repeat the same words
def _marks_of(word: str, stems: tuple[str, ...]) -> tuple[Mark, ...]:
    if not word.isascii() and has_cjk(word):
        return tuple(_inner_marks(word, stems))
    low = word.lower()
    if low in STOP_WORDS:  # "others" has the stem "other"
        return ()
    if low.startswith(stems):
        return (Mark(0, len(word), _first(low, stems)),)
    if not word.islower():
        for piece in subwords(word):
            if piece.startswith(stems) and piece not in STOP_WORDS:
                start = low.find(piece)
                return (Mark(start, start + len(piece), _first(piece, stems)),)
    return ()


def _first(word: str, stems: tuple[str, ...]) -> str:
    return next(stem for stem in stems if word.startswith(stem))


def _inner_marks(word: str, stems: tuple[str, ...]) -> Iterator[Mark]:
    """Marks inside a run of Chinese, Japanese or Korean, which has no spaces between words."""
    position = 0
    while position < len(word):
        stem = next((stem for stem in stems if word.startswith(stem, position)), "")
        if stem:
            yield Mark(position, position + len(stem), stem)
        position += len(stem) or 1


def snippet(texts: Sequence[str], stems: tuple[str, ...]) -> str:
    """The excerpt with the most different words, marked with `**`; empty if no word occurs."""
    if not stems:
        return ""
    found = [(text, marks_in(text[:MAX_READ], stems)) for text in texts]
    best = max(
        ((*_densest(marks), text, marks) for text, marks in found if marks),
        key=lambda candidate: candidate[0],
        default=None,
    )
    return _cut(best[2], best[3], best[1]) if best else ""


def _densest(marks: list[Mark]) -> tuple[int, int]:
    """The number of different words in the densest stretch, and where it starts."""
    return max(
        ((_different(marks[index : index + 20]), mark.start) for index, mark in enumerate(marks)),
        key=lambda window: (window[0], -window[1]),
    )


def _different(marks: list[Mark]) -> int:
    end = marks[0].start + MAX_SNIPPET - LEAD_LENGTH
    return len({mark.stem for mark in marks if mark.end <= end})


def _cut(text: str, marks: list[Mark], start: int) -> str:
    begin = max(0, start - LEAD_LENGTH)
    if begin and (space := text.find(" ", begin, start)) != -1:
        begin = space + 1
    end = begin + MAX_SNIPPET
    shown, position = "", begin
    for mark in marks:
        if mark.start >= position and mark.end <= end:
            shown += f"{text[position : mark.start]}**{text[mark.start : mark.end]}**"
            position = mark.end
    shown = " ".join((shown + text[position:end]).split())
    return f"{'… ' if begin else ''}{shown}{' …' if end < len(text) else ''}"
