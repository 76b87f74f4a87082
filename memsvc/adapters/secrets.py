"""Masks secrets: the rules of Kingfisher (MongoDB), and ours in `secrets.yml` beside this file."""

import re
import threading
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from memsvc.core.ports.masking import Masked

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

MAX_PASSES = 4
"""A secret may hide the one beside it, so a masked text is looked at again."""

WINDOW, OVERLAP, MAX_SECRET = 8_000, 500, 8_000
"""Bytes of a long text that are looked at together; of these, the bytes that the next look sees
again; and the bytes of the longest secret besides private keys.
"""

_SHORTEST: Final = 10  # characters of the shortest text that can name and hold a secret


class Span(NamedTuple):
    """Where a secret stands in a text as UTF-8, and its kind."""

    start: int
    end: int
    kind: str


def mask_secrets(text: str) -> Masked:
    """The text with a mark for each secret."""
    if len(text) < _SHORTEST:
        return Masked(text)
    kinds: list[str] = []
    for _ in range(MAX_PASSES):
        data = text.encode("utf-8", "replace")
        spans = _apart([*_private_keys(data), *_found(data)])
        if not spans:
            break
        kinds += [span.kind for span in spans]
        text = _marked(data, spans).decode()
    return Masked(text, tuple(kinds))


def _marked(data: bytes, spans: list[Span]) -> bytes:
    pieces, start = [], 0
    for span in spans:
        pieces += [data[start : span.start], f"[secret: {span.kind}]".encode()]
        start = span.end
    return b"".join([*pieces, data[start:]])


def _apart(spans: list[Span]) -> list[Span]:
    """The spans in order; those that overlap are one, of the kind of the longest."""
    apart: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.kind)):
        if apart and span.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = last._replace(end=max(last.end, span.end))
        else:
            apart.append(span)
    return apart


# -- private keys ---------------------------------------------------------------------------------

_BEGIN = re.compile(rb"-----BEGIN[ A-Z0-9_-]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_END = re.compile(rb"-----END[ A-Z0-9_-]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
# of a key that breaks off, the lines of its header and of base64
_BODY = re.compile(rb"(?:(?:\s|\\n)*(?:[A-Za-z-]{3,20}: [^\n]{1,80}|[A-Za-z0-9+/=]{16,}))+")


def _private_keys(data: bytes) -> Iterator[Span]:
    """Whole private keys, from their first line to their last."""
    if b"PRIVATE KEY" not in data.upper():
        return
    end, is_closed = 0, True
    for begin in _BEGIN.finditer(data):
        if begin.start() < end:
            continue
        closing = _END.search(data, begin.end()) if is_closed else None
        is_closed = closing is not None
        rest = closing or _BODY.match(data, begin.end())
        if rest:
            end = rest.end()
            yield Span(begin.start(), end, "private key")


# -- everything else ------------------------------------------------------------------------------


_LOADING: Final = threading.Lock()


def _scanner() -> "Scanner":
    """The scanner; whoever asks first waits for it, 7 s after an install and then half a second."""
    with _LOADING:
        return _load()


@cache
def _load() -> "Scanner":
    """The scanner with its compiled rules, which are kept in the user's cache folder."""
    from kingfisher_sdk import Rules, Scanner

    with resources.as_file(resources.files("memsvc.adapters") / "secrets.yml") as own:
        return Scanner(Rules([own]), base64=False)


# many rules know a secret only by what follows it: a quote, a blank or the end. In prose it may
# also be a full stop or a bracket
_BLANKED: Final = bytes.maketrans(b",.!?()[]{}<>|*#&", b" " * 16)
_BLANK = re.compile(rb"\s")
_KEY_HEADER = re.compile(rb"PRIVATE KEY", re.IGNORECASE)


def _found(data: bytes) -> Iterator[Span]:
    # whole keys are found above; their rule takes minutes for many that do not end
    data = _KEY_HEADER.sub(b"PRIVATE_KEY", data) if b"PRIVATE KEY" in data.upper() else data
    for start, end in _windows(data):
        for span in _findings(data[start:end]):
            yield span._replace(start=start + span.start, end=start + span.end)


def _windows(data: bytes) -> Iterator[tuple[int, int]]:
    """Pieces of a long text that overlap: the scanner's time grows with the square of its text.

    They begin and end at blanks, so that none cuts a secret in two.
    """
    start = 0
    while start < len(data):
        end = _next_blank(data, start + WINDOW)
        yield start, end
        if end == len(data):
            return
        start = min(end, _next_blank(data, end - OVERLAP))


def _next_blank(data: bytes, place: int) -> int:
    found = _BLANK.search(data, place, place + MAX_SECRET)
    return found.start() if found else min(len(data), place + MAX_SECRET)


def _findings(data: bytes) -> Iterator[Span]:
    """What the scanner finds in a text and in its blanked copy, which stands behind it."""
    copy = len(data) + 1
    for finding in _scanner().scan(b"\n".join((data, data.translate(_BLANKED)))):
        location = finding.location
        start, end = location["start_offset"], location["end_offset"]
        if start < copy < end:
            continue
        shift = copy if start >= copy else 0
        span = Span(start - shift, end - shift, kind_of(finding.rule_id))
        secret = data[span.start : span.end].decode("utf-8", "replace")
        if _is_secret(finding.rule_id, secret):
            yield span


def kind_of(rule: str) -> str:
    """The kind of secret that a rule finds, in words."""
    name = re.split(r"[./]", rule)[-1]
    return _KINDS.get(name) or name.replace("-", " ")


_KINDS: Final = {
    "generic-credential-uri": "password in url",
    "password-in-url": "password in url",
    "quoted-password": "password",
    "assigned-password": "password",
    "password-option": "password",
    "quoted-secret": "secret",
    "assigned-secret": "secret",
    "npmjsaccesstoken": "npm token",
    "slackappleveltoken": "slack app token",
    "digitaloceanapikey": "digitalocean token",
}
"""Kinds whose words are not those of the rule's id."""

_PLACEHOLDER = re.compile(
    r"""\[secret|<|\$|\{|%\w*%$|%[sdr]$|%\(|\*\*|\.\.|x{3}|-|your|my[_-]|some|example|changeme|change[_-]me
    |redacted|none\b|null\b|true\b|false\b|undefined|nil\b|os\.|env|process\.|self\.|this\.|config
    |settings|args|params|request|getenv|base64|sha256|https?://|/|~/|\./""",
    re.IGNORECASE | re.VERBOSE,
)


def _is_secret(rule: str, secret: str) -> bool:
    """Whether a finding is clearly a literal secret."""
    if secret.startswith("[secret"):
        return False
    needs = _NEEDS.get(rule)
    return needs is None or (not _PLACEHOLDER.match(secret) and bool(needs.search(secret)))


_ANY = re.compile(r"")
# letters and digits, or letters whose case changes as in no name
_MIXED = re.compile(r"^(?=.*[0-9!#%&*^@?+])(?=.*[A-Za-z])|^(?=.{12})(?=.*[A-Z]{2})(?=.*[a-z][A-Z])")
_NEEDS: Final = {
    "memsvc.quoted-password": _ANY,
    "memsvc.quoted-secret": _MIXED,
    "memsvc.assigned-password": _MIXED,
    "memsvc.assigned-secret": _MIXED,
    "memsvc.password-option": _MIXED,
}
