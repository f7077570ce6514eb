"""Walks through the blocks of an Avro file, without decoding a record: how many there are, and how large they become.

A file is a header with a schema, and blocks: a count of records, a number of bytes, these bytes packed by the codec
that the header names, and the sixteen bytes that end each block. The libraries that read Avro unpack a block whole,
however large it becomes; here it is done piece by piece. (Avro 1.12: "Object Container Files".)
"""

import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from storage.errors import SourceBroken
from storage.filesystem import open_file_system, reading
from storage.sources.compression import CODECS, PIECE, TORN, Unpacking
from storage.sources.hadoop_blocks import chunk_of_snappy, size_of_snappy
from storage.sources.limits import NO_LIMITS, FileLimits

_MAGIC, _SYNC, _CHECKSUM = b"Obj\x01", 16, 4
_LONGEST_NUMBER = 63


@dataclass(frozen=True)
class Header:
    """What stands before the blocks."""

    schema: Mapping[str, Any]
    codec: str
    sync: bytes
    """What ends each block."""


class _Deflate:
    """The state within a block: deflate without the header and checksum of gzip."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=-15)
        self.is_begun, self.ended, self.rest = False, False, b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unpack what comes next."""
        self.is_begun = True
        while data and not self._member.eof:
            yield self._member.decompress(data, PIECE)
            data = self._member.unconsumed_tail
        self.ended, self.rest = self._member.eof, self._member.unused_data


class _Xz:
    """The state within a block."""

    def __init__(self) -> None:
        self._member = lzma.LZMADecompressor()
        self.is_begun, self.ended, self.rest = False, False, b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unpack what comes next."""
        self.is_begun = True
        yield self._member.decompress(data, PIECE)
        while not (self._member.needs_input or self._member.eof):
            yield self._member.decompress(b"", PIECE)
        self.ended, self.rest = self._member.eof, self._member.unused_data


_OF_FILES = {codec.name: codec.unpacker for codec in CODECS}
_UNPACKERS: Mapping[str, Callable[[], Unpacking]] = {
    "deflate": _Deflate, "bzip2": _OF_FILES["bzip2"], "xz": _Xz, "zstandard": _OF_FILES["zstd"],
}  # fmt: skip
_HAS_FRAMES = "zstandard"
"""Packs a block in one frame or several. What stands behind the end in another codec, such as a part of a checksum that
some writers leave there, Spark passes over."""
_READ = ("null", "snappy", *_UNPACKERS)
_BROKEN = (*TORN, lzma.LZMAError, ValueError, EOFError, RecursionError)


class _Reader:
    """A file that is read from its beginning on."""

    def __init__(self, stream: io.BufferedReader, size: int) -> None:
        self._stream, self.size, self.at = stream, size, 0

    def exactly(self, count: int) -> bytes:
        """So many bytes. Raises `EOFError` where there are fewer."""
        if not 0 <= count <= self.size - self.at:
            raise EOFError("it ends in the middle")
        found = self._stream.read(count)
        self.at += count
        if len(found) < count:
            raise EOFError("it ends in the middle")
        return found

    def number(self) -> int:
        """A number of one to ten bytes, the least first, whose lowest bit is its sign."""
        value = shift = 0
        while (byte := self.exactly(1)[0]) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > _LONGEST_NUMBER:
                raise ValueError("it has a number of more than 64 bits")
        value |= byte << shift
        return value >> 1 ^ -(value & 1)


def read_header(path: str, size: int, limits: FileLimits = NO_LIMITS) -> Header:
    """Return the header of an Avro file of so many bytes. Raises `SourceBroken` for what is none."""
    with _opened(path, size) as reader:
        return _header(path, reader, limits)


def check_avro(path: str, size: int, limits: FileLimits) -> int:
    """Return how many records an Avro file has.

    Raises `SourceBroken` for one that is torn or none, and `SourceTooLarge` for one that becomes more than the limits
    allow.
    """
    with _opened(path, size) as reader:
        header = _header(path, reader, limits)
        records = total = number = 0
        while reader.at < size:
            number += 1
            count, packed = reader.number(), reader.number()
            if count < 0:
                raise ValueError(f"block {number:,} has less than no records")
            limits.check_memory(path, f"block {number:,}", packed)
            unpacked, what = 0, f"block {number:,}, unpacked,"
            for piece in _pieces(path, reader, header.codec, packed, what, limits):
                unpacked += piece
                limits.check_memory(path, what, unpacked, about="at least ")
                limits.check(path, reader.at, total + unpacked)
            if reader.exactly(_SYNC) != header.sync:
                raise ValueError(f"block {number:,} does not end where it says")
            records += count
            total += max(unpacked, count)  # a record need not have a byte
            limits.check(path, reader.at, total)
        return records


@contextmanager
def _opened(path: str, size: int) -> Iterator[_Reader]:
    system, inner = open_file_system(path)
    with reading(path):
        file = system.open_input_file(inner)
    try:
        with io.BufferedReader(file, PIECE) as stream:
            yield _Reader(stream, size)
    except _BROKEN as error:
        raise SourceBroken(
            f"{path}: is no whole Avro file ({error}); write it again under another name, then rename it"
        ) from error


def _header(path: str, reader: _Reader, limits: FileLimits) -> Header:
    if reader.size < len(_MAGIC) or reader.exactly(len(_MAGIC)) != _MAGIC:
        raise ValueError("its first bytes are not those of one")
    said: dict[bytes, bytes] = {}
    while count := reader.number():
        if count < 0:
            reader.number()
        for _ in range(abs(count)):
            name, value = (_text(path, reader, limits) for _ in range(2))
            said[name] = value
    codec = said.get(b"avro.codec", b"null").decode()
    if codec not in _READ:
        raise ValueError(f"its codec is {codec!r}, and Spark reads {', '.join(_READ)}")
    schema = json.loads(said.get(b"avro.schema", b""))
    if not isinstance(schema, dict) or schema.get("type") != "record" or not _has_names(schema.get("fields")):
        raise ValueError("its schema is none of records")
    return Header(schema, codec, reader.exactly(_SYNC))


def _has_names(fields: Any) -> bool:
    return isinstance(fields, list) and all(
        isinstance(field, dict) and isinstance(field.get("name"), str) for field in fields
    )


def _text(path: str, reader: _Reader, limits: FileLimits) -> bytes:
    size = reader.number()
    limits.check_memory(path, "its header", size)
    return reader.exactly(size)


def _pieces(
    path: str, reader: _Reader, codec: str, packed: int, what: str, limits: FileLimits
) -> Iterator[int]:
    """Unpack a block, and yield how many bytes each piece has. Raises one of `_BROKEN`."""
    if codec == "snappy":
        block = reader.exactly(packed)
        limits.check_memory(path, what, size_of_snappy(block))
        yield _size_in_snappy(block)
        return
    unpacker = _UNPACKERS.get(codec)
    unpacking = None if unpacker is None else unpacker()
    for start in range(0, packed, PIECE):
        piece = reader.exactly(min(PIECE, packed - start))
        if unpacker is None or unpacking is None:
            yield len(piece)
            continue
        while piece:
            if unpacking.ended and codec != _HAS_FRAMES:
                break
            if unpacking.ended:
                unpacking = unpacker()
            yield from map(len, unpacking.pieces(piece))
            piece = unpacking.rest
    if packed and unpacking is not None and not unpacking.ended:
        raise ValueError("what is packed has no end")


def _size_in_snappy(block: bytes) -> int:
    """Unpack a block, which has a checksum behind it."""
    text = chunk_of_snappy(block[:-_CHECKSUM], size_of_snappy(block))
    if zlib.crc32(text) != int.from_bytes(block[-_CHECKSUM:]):
        raise ValueError("a checksum is wrong")
    return len(text)
