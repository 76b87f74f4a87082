"""Reads rows straight from the pages of a SQLite file, whatever else in it is damaged.

The way from the root of a table to its rows leads through pages that may be lost; each page with
rows can be read by itself. The format is described in https://www.sqlite.org/fileformat2.html.
"""

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Value = None | int | float | str | bytes

MAGIC: Final = b"SQLite format 3\x00"
DEFAULT_PAGE_SIZE: Final = 4096
_PAGE_SIZES: Final = frozenset(2**power for power in range(9, 17))

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_FIRST_CELL: Final = {_TABLE_LEAF: 8, _INDEX_LEAF: 8, _INDEX_INTERIOR: 12}
"""The kinds of page that hold rows, and where the list of their cells begins."""

_WAL_HEADER, _FRAME_HEADER = 32, 24
_WAL_MAGIC: Final = 0x377F0682
_INTEGER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of some table: its values, and its rowid if it is one of a table that has them."""

    rowid: int | None
    values: tuple[Value, ...]


class Pages:
    """The pages of a file, with those that its log has newer."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(self._data[16:18]) if self._has_header() else 0
        self._size = {1: 65_536}.get(size, size) if size in {1, *_PAGE_SIZES} else DEFAULT_PAGE_SIZE
        self._usable = self._size - (self._data[20] if self._has_header() else 0)
        self._newer = _committed_frames(path.with_name(f"{path.name}-wal"), self._size)

    def close(self) -> None:
        """Let go of the file."""
        self._data.close()
        self._file.close()

    def rows(self) -> Iterator[Row]:
        """Every row on every page in use that can be read, of tables and of indexes."""
        unused = self._unused()
        last = max([len(self._data) // self._size, *self._newer])
        for number in range(1, last + 1):
            if number not in unused:
                yield from self._rows_on(number)

    def _has_header(self) -> bool:
        return self._data[:16] == MAGIC

    def _page(self, number: int) -> bytes:
        if number in self._newer:
            return self._newer[number]
        start = (number - 1) * self._size
        return self._data[start : start + self._size] if number > 0 else b""

    def _rows_on(self, number: int) -> Iterator[Row]:
        page = self._page(number)
        begin = 100 if number == 1 else 0
        if len(page) < self._size or page[begin] not in _FIRST_CELL:
            return
        kind, count = page[begin], int.from_bytes(page[begin + 3 : begin + 5])
        for cell in range(min(count, self._size // 4)):
            at = begin + _FIRST_CELL[kind] + 2 * cell
            try:
                yield self._row(page, kind, int.from_bytes(page[at : at + 2]))
            except (IndexError, ValueError, struct.error):
                continue  # no row, or not all of it

    def _row(self, page: bytes, kind: int, at: int) -> Row:
        length, at = _varint(page, at + (4 if kind == _INDEX_INTERIOR else 0))
        rowid = None
        if kind == _TABLE_LEAF:
            rowid, at = _varint(page, at)
        return Row(rowid, _decode(self._payload(page, at, length, kind == _TABLE_LEAF)))

    def _payload(self, page: bytes, at: int, length: int, in_table: bool) -> bytes:
        local = self._local(length, in_table)
        found = page[at : at + local]
        if local < length:
            found += self._overflow(
                int.from_bytes(page[at + local : at + local + 4]), length - local
            )
        if len(found) != length:
            raise ValueError("cut short")
        return found

    def _local(self, length: int, in_table: bool) -> int:
        """How many bytes of a row are on its own page."""
        most = self._usable - 35 if in_table else (self._usable - 12) * 64 // 255 - 23
        if length <= most:
            return length
        least = (self._usable - 12) * 32 // 255 - 23
        fitting = least + (length - least) % (self._usable - 4)
        return fitting if fitting <= most else least

    def _overflow(self, number: int, length: int) -> bytes:
        """The rest of a row, from page to page."""
        if length > len(self._data) + self._size * len(self._newer):
            raise ValueError("longer than the file")
        found = []
        while length > 0:
            page = self._page(number)
            number = int.from_bytes(page[:4])
            found.append(page[4 : min(self._usable, 4 + length)])
            if not found[-1]:
                raise ValueError("cut short")
            length -= len(found[-1])
        return b"".join(found)

    def _unused(self) -> set[int]:
        """The free pages: what is on them was deleted."""
        first = self._page(1)
        found: set[int] = set()
        trunk = int.from_bytes(first[32:36]) if first[:16] == MAGIC else 0
        while trunk and trunk not in found:
            found.add(trunk)
            page = self._page(trunk)
            count = min(int.from_bytes(page[4:8]), self._size // 4 - 2)
            found.update(struct.unpack_from(f">{count}I", page, 8) if page else ())
            trunk = int.from_bytes(page[:4])
        return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9


def _decode(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    body = end
    values = []
    while at < end:
        code, at = _varint(payload, at)
        value, body = _value(payload, body, code)
        values.append(value)
    if body != len(payload):
        raise ValueError("not a row")
    return tuple(values)


def _value(payload: bytes, at: int, code: int) -> tuple[Value, int]:
    if code >= 12:
        end = at + (code - 12) // 2
        piece = payload[at:end]
        return (piece.decode("utf-8") if code % 2 else piece), end
    if code <= 6:
        end = at + _INTEGER_BYTES[code]
        return (int.from_bytes(payload[at:end], signed=True) if code else None), end
    if code == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    return {8: (0, at), 9: (1, at)}[code] if code in (8, 9) else _unknown()


def _unknown() -> tuple[Value, int]:
    raise ValueError("a type that does not exist")


def _committed_frames(path: Path, page_size: int) -> dict[int, bytes]:
    """The pages in a log that were committed, each as it was last."""
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    if len(data) < _WAL_HEADER or int.from_bytes(data[:4]) & ~1 != _WAL_MAGIC:
        return {}
    order = ">" if data[3] & 1 else "<"
    sums = _checksum(order, data[:24], (0, 0))
    if data[24:32] != struct.pack(">2I", *sums) or int.from_bytes(data[8:12]) != page_size:
        return {}
    committed: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    for at in range(
        _WAL_HEADER, len(data) - _FRAME_HEADER - page_size + 1, _FRAME_HEADER + page_size
    ):
        header, page = (
            data[at : at + _FRAME_HEADER],
            data[at + _FRAME_HEADER : at + _FRAME_HEADER + page_size],
        )
        sums = _checksum(order, header[:8] + page, sums)
        if header[8:16] != data[16:24] or header[16:] != struct.pack(">2I", *sums):
            break  # left from before, or cut short
        waiting[int.from_bytes(header[:4])] = page
        if header[4:8] != bytes(4):
            committed |= waiting
            waiting = {}
    return committed


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
