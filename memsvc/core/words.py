"""Splits a text into tokens, and a token into subwords.

A token is a run of letters and digits. Identifiers have subwords (``getUserById``), Chinese,
Japanese and Korean text is split into pairs of characters, and ``C++``, ``C#``, ``.NET`` and emoji
get names. Queries, the index and snippets all use these functions.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from memsvc.core.naming.commits import is_hash

MAX_CACHED = 65_536
"""Identifiers whose subwords are cached: an import meets the same ones again and again."""

STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could
    did do does doing done during each few for from further get got had has have having he her
    here hers him his how i if in into is it its itself just me more most my no nor not of off on
    once only or other our out over own same she should so some such than that the their them then
    there these they this those through to too under until up us very was we were what when where
    which while who whom whose why will with would you your yours don didn doesn isn wasn aren won
    couldn shouldn wouldn ain s t d ll m re ve
    """.split()  # noqa: SIM905 - a list of strings would take a screen
)
"""English function words, dropped from a query that has other words."""

QUESTION_WORDS = frozenset(
    """
    what when where which who whom whose why how did do does is are was were can could has have had
    should
    """.split()  # noqa: SIM905 - as above
)
"""What a question begins with."""

VAGUE_WORDS = frozenset(
    """
    much many lot way thing things something anything someone like still yet ever again
    """.split()  # noqa: SIM905 - as above
)
"""Words that say nothing in a question."""

EVERYDAY_VERBS = frozenset(
    """
    start starts started starting use uses used using make makes made making change changes changed
    changing add adds added adding work works worked working find finds found finding need needs
    needed want wants wanted happen happens happened switch switches switched switching try tries
    tried trying go goes going went come comes came let put puts take takes took give gives gave
    keep keeps kept think know look looks looking see seen tell say said show shows shown deal deals
    dealt handle handles handled handling support supports supported
    """.split()  # noqa: SIM905 - as above
)
"""Verbs of questions, in every form: "when did we start using X" is about X."""

_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)

_TOKEN = re.compile(r"[^\W_]+")
_CJK_RUN = re.compile(f"[{_CJK}]+")
_SCRIPT_RUN = re.compile(f"[{_CJK}]+|[^{_CJK}]+")

# Any letter that is not an ASCII capital counts as lower case: "Größe" is one subword, and
# "getÜber" is not split.
_SUBWORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_JOINABLE = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")
_PLUS_PLUS = re.compile(r"(?<![^\W_])([A-Za-z])\+\+")
_SHARP = re.compile(r"(?<![^\W_])([A-Za-z])#(?![^\W_])")
_DOT_NAME = re.compile(r"(?<![^\s/\\\"'`(\[<,=:])\.([A-Za-z][^\W_]*)")


def tokens(text: str) -> list[str]:
    """The runs of letters and digits in a text, as unicode61 splits them, case kept."""
    return _TOKEN.findall(composed(text))


def is_searchable(text: str) -> bool:
    """Whether a text has anything to search for: a token or a symbol with a name."""
    # composing accents never adds or removes a letter, so it is not needed here
    return _TOKEN.search(text) is not None or bool(symbols(text))


def cjk_runs(text: str) -> list[str]:
    """The runs of Han, kana or Hangul in a text."""
    return _CJK_RUN.findall(text)


def has_cjk(text: str) -> bool:
    """Whether a text has Han, kana or Hangul."""
    return _CJK_RUN.search(text) is not None


def script_runs(token: str) -> list[str]:
    """Split a token where the script changes between CJK and others: ``Redis连接`` has two runs."""
    return _SCRIPT_RUN.findall(token)


def bigrams(run: str) -> list[str]:
    """The overlapping pairs of characters of a CJK run; a single character stays alone."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def split_token(token: str) -> list[str]:
    """The words in a token, in order: CJK bigrams, subwords of an identifier."""
    return [piece for run in script_runs(token) for piece in _split_run(run)]


def subwords(token: str) -> list[str]:
    """Split a token at camelCase and digit boundaries: ``getUserV2`` becomes get, user, v, 2.

    The hash of a commit stays whole.
    """
    if is_hash(token):
        return [token.lower()]
    return [piece.lower() for piece in _SUBWORD.findall(token)]


def all_subwords(identifier: str) -> list[str]:
    """The subwords of all tokens of an identifier, as the index has them in a row: 1.0a9 has 4."""
    return [piece for token in tokens(identifier) for piece in split_token(token)]


def symbols(text: str) -> list[str]:
    """The names of symbols that a tokenizer drops: C++, C#, .NET and emoji."""
    found = [f"{c.lower()}plusplus" for c in _PLUS_PLUS.findall(text)] if "++" in text else []
    found += [f"{c.lower()}sharp" for c in _SHARP.findall(text)] if "#" in text else []
    found += [f"dot{name.lower()}" for name in _DOT_NAME.findall(text)]
    return found if text.isascii() else found + list(_emoji(text))


def joined_neighbours(text: str) -> Iterator[str]:
    """Neighbouring subwords joined into one word: `SessionStore` finds `session_store_v2`."""
    for identifier in filter(is_compound, dict.fromkeys(_JOINABLE.findall(text))):
        yield from _join_subwords(identifier)


def is_compound(identifier: str) -> bool:
    """Whether a word may have subwords; few words do."""
    return not (identifier.isalpha() and identifier.isascii() and identifier[1:].islower())


@lru_cache(maxsize=MAX_CACHED)
def _join_subwords(identifier: str) -> tuple[str, ...]:
    found = _TOKEN.findall(identifier)
    inner = [piece for token in found if not has_cjk(token) for piece in subwords(token)]
    pairs = (left + right for left, right in pairwise(inner))
    return tuple(pair for pair in pairs if not pair.isdigit() and pair != identifier.lower())


def composed(text: str) -> str:
    """The text with each accented letter as one character, if there is one.

    Characters that NFC would decompose stay as they are, as they do in the index.
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    kept = {char for char in text if not unicodedata.is_normalized("NFC", char)}
    stretches = re.split(f"([{re.escape(''.join(kept))}])", text) if kept else [text]
    return "".join(
        each if each in kept else unicodedata.normalize("NFC", each) for each in stretches
    )


def _emoji(text: str) -> Iterator[str]:
    found = (c for c in text if not c.isascii() and unicodedata.category(c) == "So")
    return (f"emoji{ord(char):x}0" for char in found)


def _split_run(run: str) -> list[str]:
    return bigrams(run) if has_cjk(run) else subwords(run)
