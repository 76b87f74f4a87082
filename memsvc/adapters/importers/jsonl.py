"""Reads JSON Lines: one record per line, plain or gzipped, from a file or standard input."""

import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, cast

from marshmallow import ValidationError

from memsvc.core.errors import SourceUnreadable
from memsvc.core.ports.sources import Counter, Item, Reading, Refused, UnknownFields
from memsvc.core.records import Kind
from memsvc.schemas.records import ALIASES, load_record, read_kind, record_fields

SAMPLE = Path(__file__).with_name("sample.jsonl")
"""The bundled sample: the records of a fictional team, to try things out."""

STANDARD_INPUT = "-"
MAX_LINE = 5 * 1024 * 1024  # bytes; the same limit as for request bodies
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(path: str | Path, *, source: str | None = None) -> Reading:
    """Read a JSON Lines file, or standard input for `-`.

    The source of the records is `jsonl:<file name>` unless `source` or the line itself names
    another. Raises SourceUnreadable if the file cannot be opened; a bad line alone is refused.
    """
    counter = Counter()
    if str(path) == STANDARD_INPUT:
        items = _read_lines(_standard_input(), source or "jsonl:stdin", counter)
        return Reading("standard input", items, "lines", None, counter.position)
    file = _open(Path(path))
    items = _read_and_close(file, source or jsonl_source(Path(path)), counter)
    size = Path(path).stat().st_size
    return Reading(str(path), items, "bytes", size, lambda: size if file.closed else file.tell())


def jsonl_source(path: Path) -> str:
    """The source name for a file: `backup.jsonl.gz` becomes `jsonl:backup`."""
    return f"jsonl:{path.name.removesuffix('.gz').removesuffix('.jsonl')}"


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceUnreadable(
            f"{path} cannot be read ({error.strerror}); give a .jsonl or .jsonl.gz file, or - for "
            "standard input."
        ) from error


def _standard_input() -> io.BufferedReader:
    raw = sys.stdin.buffer
    return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))


def _read_and_close(file: io.BufferedReader, source: str, counter: Counter) -> Iterator[Item]:
    with file:
        yield from _read_lines(file, source, counter)


def _read_lines(raw: io.BufferedReader, source: str, counter: Counter) -> Iterator[Item]:
    compressed = raw.peek(2)[:2] == _GZIP_MAGIC
    file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if compressed else raw
    for line in _lines(file):
        counter.done += 1
        yield from _read_line(line, f"line {counter.done}", source)


def _lines(file: BinaryIO | io.BufferedReader) -> Iterator[bytes | Refused]:
    """The lines of a file; a line that is too long, or damage to the file, as a refusal."""
    try:
        while line := file.readline(MAX_LINE + 1):
            yield _refuse_rest(file) if len(line) > MAX_LINE else line
    except (EOFError, zlib.error, OSError) as error:
        yield Refused("", f"the file cannot be read from here on ({error})")


def _refuse_rest(file: BinaryIO | io.BufferedReader) -> Refused:
    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
        pass
    return Refused("", f"longer than {MAX_LINE // 1024 // 1024} MiB")


def _read_line(line: bytes | Refused, place: str, source: str) -> Iterator[Item]:
    if isinstance(line, Refused):
        yield Refused(place, line.reason)
    elif text := line.removeprefix(_BYTE_ORDER_MARK).strip():
        try:
            yield from _read_body(json.loads(text.decode("utf-8")), source)
        except (ValidationError, ValueError, OverflowError, RecursionError) as error:
            yield Refused(place, _reason(error))


def _read_body(body: object, source: str) -> Iterator[Item]:
    if not isinstance(body, dict):
        raise ValidationError({"record": [f"expected a JSON object; given {_shortened(body)}"]})
    record = load_record(body, source=source)
    if unknown := body.keys() - _known_fields(read_kind(body)):
        yield UnknownFields(tuple(unknown))
    yield record


@cache
def _known_fields(kind: Kind) -> frozenset[str]:
    return frozenset({*record_fields(kind), *ALIASES})


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return _shortened("; ".join(_messages(error)), 300)
    if isinstance(error, UnicodeDecodeError):
        return f"not valid UTF-8 at byte {error.start + 1}"
    if isinstance(error, RecursionError):
        return "not valid JSON: nested too deeply"
    return f"not valid JSON: {_shortened(str(error), 200)}"


def _messages(error: ValidationError) -> Iterator[str]:
    given = error.messages
    for name, messages in given.items() if isinstance(given, dict) else [("record", given)]:
        texts = messages if isinstance(messages, list) else [str(messages)]
        yield f"{name}: {' '.join(map(str, texts))}"


def _shortened(value: object, width: int = 60) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."
