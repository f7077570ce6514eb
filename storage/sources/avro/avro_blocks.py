"""Walks through the blocks of an Avro file, without decoding a record: how many there are, and how large they become.

A file is a header with a schema, and blocks: a count of records, a number of bytes, these bytes packed by the codec
that the header names, and the sixteen bytes that end each block. The libraries that read Avro unpack a block whole,
however large it becomes; here it is done piece by piece. (Avro 1.12: "Object Container Files".)
"""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.filesystem import open_file_system, reading
from lakejoin.storage.sources.avro.avro_codecs import READ, TORN, unpacked_sizes
from lakejoin.storage.sources.files.compression import PIECE
from lakejoin.storage.sources.files.limits import NO_LIMITS, FileLimits

_MAGIC, _SYNC = b"Obj\x01", 16
_LONGEST_NUMBER = 63


@dataclass(frozen=True)
class Header:
    """What stands before the blocks."""

    schema: Mapping[str, Any]
    codec: str
    sync: bytes
    """What ends each block."""


_BROKEN = (*TORN, ValueError, EOFError, RecursionError)


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

    def pieces(self, count: int) -> Iterator[bytes]:
        """So many bytes, piece by piece."""
        if count < 0:
            raise EOFError("it ends before it begins")
        for start in range(0, count, PIECE):
            yield self.exactly(min(PIECE, count - start))

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
            for piece in unpacked_sizes(reader.pieces(packed), header.codec, path, what, limits):
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
    if codec not in READ:
        raise ValueError(f"its codec is {codec!r}, and Spark reads {', '.join(READ)}")
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
