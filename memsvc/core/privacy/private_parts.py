"""The parts of a text that its author marked as private: `<private>…</private>`."""

import re
from collections.abc import Iterator, Sequence

_OPENS = r"(?:<|&lt;|&#0*60;|&#x0*3c;|\\u003c)"
_CLOSES = r"(?:>|&gt;|&#0*62;|&#x0*3e;|\\u003e)"
# a tag that never closes reaches to the end, so that no text makes the search start over
_TAG = re.compile(
    rf"{_OPENS}\s*(?:(/)\s*)?private(?=[\s/]|{_CLOSES}|\Z).*?(?:{_CLOSES}|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = "\0"  # no text of a record contains it


def without_private(text: str) -> str:
    """The text without its private parts; one that is not closed reaches to the end."""
    if "private" not in text.lower() or not _TAG.search(text):
        return text
    return "".join(_open_parts(text)).strip()


def list_without_private(texts: Sequence[str]) -> tuple[str, ...]:
    """The texts without their private parts, which may begin in one and end in another."""
    whole = _BETWEEN.join(texts)
    open_text = without_private(whole)
    if open_text == whole:
        return tuple(texts)
    return tuple(filter(None, map(str.strip, open_text.split(_BETWEEN))))


def _open_parts(text: str) -> Iterator[str]:
    depth = start = 0
    for tag in _TAG.finditer(text):
        if depth == 0:
            yield text[start : tag.start()]
        depth = max(0, depth - 1) if tag[1] else depth + 1
        start = tag.end()
    if depth == 0:
        yield text[start:]
