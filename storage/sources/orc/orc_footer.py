"""Reads the footer of an ORC file, of which the library that we use shows too little: what the values become in memory.

A file ends with its footer in packed chunks, a postscript that says how they are packed, and a byte with the length of
that. All are messages of protocol buffers. (ORC 1: "File Tail".)
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakejoin.storage.sources.files.compression import CODECS
from lakejoin.storage.sources.files.hadoop_blocks import chunk_of_lz4, chunk_of_snappy
from lakejoin.storage.sources.files.limits import FileLimits

_ZSTD = next(codec.unpacker for codec in CODECS if codec.name == "zstd")
_Message = dict[int, list[int | bytes]]
"""The fields of a message by their numbers."""

_FIXED = {1: 8, 5: 4}
"""Bytes of the kinds of fields that are neither a number (0) nor a text or message (2)."""
_LONGEST_NUMBER, _MORE = 63, 128
_LONGEST_POSTSCRIPT, _MAGIC = 256, b"ORC"
_PACKED, _CODEC, _CHUNK = 1, 2, 3
"""Of a postscript: the length of the footer, how it is packed, and bytes of a chunk at most."""
_TYPES, _ROWS, _STATISTICS = 4, 6, 7
"""Of a footer."""
_VALUES, _SUMS = 1, (4, 8)
"""Of the statistics of a column: how many values it has, and about those of texts and of bytes."""
_SUM = {4: 3, 8: 1}
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 4, 6: 8, 9: 12, 14: 16, 15: 4, 18: 12}
"""Bytes of a value by the number of its type; texts and bytes have their sums, and what holds others none."""


@dataclass(frozen=True)
class Footer:
    """What a footer says of the rows."""

    rows: int
    bytes: int
    """Bytes of all values, unpacked."""


def read_footer(path: str, file: pa.NativeFile, size: int, limits: FileLimits) -> Footer:
    """Read a footer. Raises one of `TORN` or `ValueError` for what is none, and `SourceTooLarge`."""
    tail = file.read_at(min(_LONGEST_POSTSCRIPT, size), max(size - _LONGEST_POSTSCRIPT, 0))
    if not tail or not tail[:-1].endswith(_MAGIC):
        raise ValueError("its last bytes are not those of one")
    postscript = _message(tail[-1 - tail[-1] : -1])
    packed, most = _one(postscript, _PACKED), _one(postscript, _CHUNK)
    start = size - 1 - tail[-1] - packed
    if start < 0:
        raise ValueError("its footer is longer than the file")
    limits.check_memory(path, "its footer", packed)
    content = file.read_at(packed, start)
    if codec := _one(postscript, _CODEC):
        limits.check_memory(path, "a chunk of it, unpacked,", most)
        content = _unpacked(path, content, _codec(codec), most, limits)
    footer = _message(content)
    return Footer(_one(footer, _ROWS), _bytes(footer))


def _bytes(footer: _Message) -> int:
    """Add up what the statistics of each column say."""
    found = 0
    for kind, column in zip(_messages(footer, _TYPES), _messages(footer, _STATISTICS), strict=False):
        sums = [_signed(_one(said, _SUM[place])) for place in _SUMS for said in _messages(column, place)]
        found += max(sum(sums), _one(column, _VALUES) * _WIDTHS.get(_one(kind, 1), 1))
    return max(found, _one(footer, _ROWS))


def _unpacked(
    path: str, content: bytes, unpack: Callable[[bytes, int], bytes], most: int, limits: FileLimits
) -> bytes:
    found, at = b"", 0
    while at < len(content):
        head = int.from_bytes(content[at : at + 3], "little")
        chunk, at = content[at + 3 : at + 3 + (head >> 1)], at + 3 + (head >> 1)
        found += chunk if head & 1 else unpack(chunk, most)
        limits.check_memory(path, "its footer, unpacked,", len(found), about="at least ")
    return found


def _deflated(chunk: bytes, most: int) -> bytes:
    return zlib.decompressobj(wbits=-15).decompress(chunk, most)


def _of_zstd(chunk: bytes, most: int) -> bytes:
    found = b""
    for piece in _ZSTD().pieces(chunk):
        found += piece
        if len(found) > most:
            raise ValueError(f"a chunk of its footer has over {most:,} bytes, unpacked")
    return found


_CODECS: Mapping[int, Callable[[bytes, int], bytes]] = {
    1: _deflated, 2: chunk_of_snappy, 4: chunk_of_lz4, 5: _of_zstd,
}  # fmt: skip


def _codec(number: int) -> Callable[[bytes, int], bytes]:
    if number not in _CODECS:
        raise ValueError(f"it is packed by codec {number}; expected zlib, snappy, lz4, zstd or none")
    return _CODECS[number]


def _message(data: bytes) -> _Message:
    found: _Message = {}
    at = 0
    while at < len(data):
        head, at = _number(data, at)
        value: int | bytes
        match head & 7:
            case 0:
                value, at = _number(data, at)
            case 2:
                length, at = _number(data, at)
                value, at = data[at : at + length], at + length
            case kind if kind in _FIXED:
                at += _FIXED[kind]
                continue
            case kind:
                raise ValueError(f"its footer has a field of kind {kind}")
        found.setdefault(head >> 3, []).append(value)
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > _LONGEST_NUMBER:
            raise ValueError("its footer ends in the middle")
        value |= (data[at] & _MORE - 1) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < _MORE:
            return value, at


def _one(message: _Message, number: int) -> int:
    """A number that stands there once, else none."""
    value = message.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _messages(message: _Message, number: int) -> list[_Message]:
    return [_message(part) for part in message.get(number, []) if isinstance(part, bytes)]


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)
