"""Reads JSON Lines: one record per line, plain or gzipped, from a file or standard input."""

import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, cast

from marshmallow import ValidationError

from memsvc.core.errors import SourceUnreadable
from memsvc.core.ports.sources import Counter, Item, Reading, Refused, UnknownFields, Whole
from memsvc.core.records import Kind
from memsvc.schemas.exports import FIRST, read_first, read_last, read_piece
from memsvc.schemas.records import ALIASES, load_record, read_kind, record_fields

SAMPLE = Path(__file__).with_name("sample.jsonl")
"""The bundled sample: the records of a fictional team, to try things out."""

STANDARD_INPUT = "-"
MAX_LINE = 5 * 1024 * 1024  # bytes; the same limit as for request bodies
MAX_EXPORTED_LINE = 8 * MAX_LINE  # whatever was stored, also with every letter escaped
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(path: str | Path, *, source: str | None = None) -> Reading:
    """Read a JSON Lines file, or standard input for `-`.

    The source of the records is `jsonl:<file name>` unless `source` or the line itself names
    another. An export gives each record its own source and id. Raises SourceUnreadable if the file
    cannot be opened; a bad line alone is refused.
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
    read: Read = partial(_read_body, source=source)
    export: _ExportReader | None = None
    lines = _Lines(file)
    for line in lines:
        counter.done += 1
        if counter.done == 1 and _begins_export(line):
            export = _ExportReader()
            read, lines.max_length = export.read, MAX_EXPORTED_LINE
        yield from _read_line(line, f"line {counter.done}", read)
    if export:
        yield from export.end()


Read = Callable[[object], Iterator[Item]]
"""What is read from the JSON of one line. Raises ValidationError."""


class _ExportReader:
    """Reads the lines of an export, and notices whether any is missing."""

    def __init__(self) -> None:
        self._last_ids: Mapping[Kind, int] = {}
        self._count: int | None = None
        self._read = 0

    def read(self, body: object) -> Iterator[Item]:
        """What one line holds; nothing for the last."""
        if begin := read_first(body):
            self._last_ids = begin.last_ids
            yield begin
        elif (count := read_last(body)) is not None:
            self._count = count
        else:
            self._read += 1
            yield read_piece(body)

    def end(self) -> Iterator[Whole | Refused]:
        """What comes last: a refusal if the export is not whole."""
        if self._count is None:
            yield Refused("end", "the export breaks off here; its last line is missing")
        elif self._read != self._count:
            counts = f"{self._read:,} of its {self._count:,} lines"
            yield Refused("end", f"the export is not whole: {counts} are here")
        else:
            yield Whole(self._last_ids)


def _begins_export(line: bytes | Refused) -> bool:
    try:
        return isinstance(line, bytes) and FIRST in json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return False


class _Lines:
    """The lines of a file; a line that is too long, or damage to the file, as a refusal."""

    def __init__(self, file: BinaryIO | io.BufferedReader) -> None:
        self._file = file
        self.max_length = MAX_LINE

    def __iter__(self) -> Iterator[bytes | Refused]:
        try:
            while line := self._file.readline(self.max_length + 1):
                yield self._refuse_rest() if len(line) > self.max_length else line
        except (EOFError, zlib.error, OSError) as error:
            yield Refused("", f"the file cannot be read from here on ({error})")

    def _refuse_rest(self) -> Refused:
        while (rest := self._file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        return Refused("", f"longer than {self.max_length // 1024 // 1024} MiB")


def _read_line(line: bytes | Refused, place: str, read: Read) -> Iterator[Item]:
    if isinstance(line, Refused):
        yield Refused(place, line.reason)
    elif text := line.removeprefix(_BYTE_ORDER_MARK).strip():
        try:
            yield from read(json.loads(text.decode("utf-8")))
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
