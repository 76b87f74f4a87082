"""The piece of a record that shows why it was found."""

import re
from collections.abc import Iterable, Sequence

from memsvc.words import has_cjk, pieces, tokens

LENGTH = 160
"""Characters of a snippet, marks apart: about 40 tokens."""

LEAD = 40
"""Characters kept before the first marked word."""

_SUFFIX = re.compile(r"(?:ations?|ings?|ies|ied|ed|es|e|ly|s|y|er|ers|ion|ions)$")


def marker(words: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for these words and their other forms; None when there is nothing to mark.

    It follows the index's stemming only roughly: enough to show, never used to search.
    """
    stems = {_stem(piece) for word in words for piece in _marked_pieces(word)}
    if not stems:
        return None
    longest_first = sorted(stems, key=lambda stem: (-len(stem), stem))
    return re.compile("|".join(_form(stem) for stem in longest_first), re.IGNORECASE)


def _marked_pieces(word: str) -> list[str]:
    return [piece for token in tokens(word) for piece in (pieces(token) or [token])]


def _stem(word: str) -> str:
    low = word.lower()
    stem = _SUFFIX.sub("", low)
    return stem if len(stem) >= 3 else low


def _form(stem: str) -> str:
    if has_cjk(stem):
        return re.escape(stem)
    # at a word's beginning or at a part's: `User` in `getUserById`
    return rf"(?:(?<![^\W_])|(?<=[a-z0-9])(?=[A-Z])){re.escape(stem)}[^\W_A-Z]*"


def snippet(texts: Sequence[str], words: Sequence[str]) -> str:
    """The densest piece of these texts, the words in it marked with `**`; empty without any."""
    pattern = marker(words)
    if pattern is None:
        return ""
    best = max(
        ((_density(pattern, text), -place, text) for place, text in enumerate(texts) if text),
        default=None,
    )
    if best is None or best[0][0] == 0:
        return ""
    (_, start), _, text = best
    return _cut(pattern, text, start)


def _density(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """How many different words the best window of a text holds, and where it starts."""
    found = [(match.start(), match[0].lower()[:4]) for match in pattern.finditer(text[:20_000])]
    best = (0, 0)
    for index, (start, _) in enumerate(found[:100]):
        near = found[index : index + 40]
        inside = {form for place, form in near if place - start < LENGTH - LEAD}
        best = max(best, (len(inside), -start))
    return best[0], -best[1]


def _cut(pattern: re.Pattern[str], text: str, start: int) -> str:
    begin = max(0, start - LEAD)
    if begin and (space := text.find(" ", begin, start)) != -1:
        begin = space + 1
    piece = text[begin : begin + LENGTH]
    marked = pattern.sub(lambda match: f"**{match[0]}**" if match[0] else "", piece)
    shown = " ".join(marked.split())
    return f"{'… ' if begin else ''}{shown}{' …' if begin + LENGTH < len(text) else ''}"
