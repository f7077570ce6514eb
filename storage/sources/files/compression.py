"""Unpacks compressed text piece by piece, as Spark does it: which codec it takes a file for, its name alone says.

gzip, bzip2 and Zstandard are streams of members, and a file that was appended to has several. LZ4 and Snappy are
Hadoop's (`storage.sources.files.hadoop_blocks`). What other tools call LZ4 and Snappy are frames, which Spark reads as
nothing at all, or as an error.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import zstandard

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.sources.files.hadoop_blocks import WRONG, Blocks, chunk_of_lz4, chunk_of_snappy

PIECE = 1 << 20
"""About how many bytes are unpacked at once."""
_SLICE = 256
"""How much of Zstandard is unpacked at once: nothing bounds its output but its input, and four bytes may be 128 KB."""
TORN = (zlib.error, OSError, zstandard.ZstdError, *WRONG)
"""What is raised for what is torn, or packed otherwise."""


@dataclass(frozen=True)
class Codec:
    """A compression, by the names of its files."""

    name: str
    endings: tuple[str, ...]
    begins: bytes
    """What its content begins with; nothing that can be told from text, if empty."""
    unpacker: "Callable[[], Unpacking]"


class Unpacking(Protocol):
    """The state within a file, or within a member of it."""

    rest: bytes
    """What stands behind the end of a member; nothing before its end."""
    ended: bool

    @property
    def is_begun(self) -> bool:
        """Whether something was read that is not done with, unless the member has ended."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unpack what comes next. Raises one of `TORN`."""


class Inflating:
    """The state within what zlib has deflated: with the header of gzip, or with none."""

    def __init__(self, wbits: int) -> None:
        self._member = zlib.decompressobj(wbits)
        self.is_begun, self.ended, self.rest = False, False, b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unpack what comes next."""
        self.is_begun = True
        while data and not self._member.eof:
            yield self._member.decompress(data, PIECE)
            data = self._member.unconsumed_tail
        self.ended, self.rest = self._member.eof, self._member.unused_data


class Buffering:
    """The state within what a library unpacks that holds back what it was not asked for yet."""

    def __init__(self, member: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._member = member
        self.is_begun, self.ended, self.rest = False, False, b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unpack what comes next."""
        self.is_begun = True
        yield self._member.decompress(data, PIECE)
        while not (self._member.needs_input or self._member.eof):
            yield self._member.decompress(b"", PIECE)
        self.ended, self.rest = self._member.eof, self._member.unused_data


class _Zstandard:
    def __init__(self) -> None:
        self._member = zstandard.ZstdDecompressor().decompressobj()
        self.is_begun, self.ended, self.rest = False, False, b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        self.is_begun = True
        for start in range(0, len(data), _SLICE):
            yield self._member.decompress(data[start : start + _SLICE])
            if self._member.eof:
                self.ended, self.rest = True, self._member.unused_data + data[start + _SLICE :]
                return


CODECS = (
    Codec("gzip", (".gz", ".gzip"), b"\x1f\x8b", lambda: Inflating(31)),
    Codec("bzip2", (".bz2",), b"BZh", lambda: Buffering(bz2.BZ2Decompressor())),
    Codec("zstd", (".zst", ".zstd"), b"\x28\xb5\x2f\xfd", _Zstandard),
    Codec("lz4", (".lz4",), b"", lambda: Blocks(chunk_of_lz4)),
    Codec("snappy", (".snappy",), b"", lambda: Blocks(chunk_of_snappy)),
)
_UNREAD: Mapping[bytes, str] = {
    b"\x04\x22\x4d\x18": "as frames of LZ4, as its command line writes them",
    b"\xff\x06\x00\x00sNaPpY": "as frames of Snappy",
    b"\xfd7zXZ\x00": "with xz",
    b"PK\x03\x04": "as ZIP",
    b"7z\xbc\xaf\x27\x1c": "as 7z",
}
_UNREAD_ENDINGS = (".deflate", ".lzo", ".xz", ".zip")
_READ = "gzip (.gz), zstd (.zst), bzip2 (.bz2), or Hadoop's blocks of LZ4 (.lz4) or Snappy (.snappy)"


def codec_of(path: str) -> Codec | None:
    """Return the codec that Spark reads a file with; None for plain text."""
    return next((codec for codec in CODECS if path.lower().endswith(codec.endings)), None)


def check_name(path: str, beginning: bytes) -> None:
    """Refuse a file whose name does not say what its content is. Raises `SourceBroken`.

    `beginning`: the first bytes of its content; an empty one says nothing.
    """
    if path.lower().endswith(_UNREAD_ENDINGS):
        raise SourceBroken(f"{path}: expected plain text, or {_READ}; unpack the file or use gzip")
    for begins, what in _UNREAD.items():
        if beginning.startswith(begins):
            raise SourceBroken(
                f"{path}: is compressed {what}, which Spark does not read; expected plain text, or {_READ}"
            )
    named = codec_of(path)
    found = next((codec for codec in CODECS if codec.begins and _begins(beginning, codec)), None)
    if found is not None and found is not named:
        is_named = "" if named is None else f", and named as {named.name}"
        raise SourceBroken(
            f"{path}: is compressed with {found.name}{is_named}; give it a name that ends in {found.endings[0]}"
        )


def _begins(beginning: bytes, codec: Codec) -> bool:
    """Whether content begins as that of a codec; that of bzip2 with letters, and the digits of pi behind them."""
    return beginning.startswith(codec.begins) and (
        codec.name != "bzip2" or beginning[4:10] in {b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"}
    )


class Unpacker:
    """Unpacks a file chunk by chunk, member after member; a small chunk may hold much text."""

    def __init__(self, path: str, codec: Codec) -> None:
        self._path, self._codec = path, codec
        self._member = codec.unpacker()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the text of what comes next, in pieces that fit memory. Raises `SourceBroken`."""
        while data:
            if self._member.ended:
                if not data.strip(b"\0"):  # as tapes and some copies pad a file; Hadoop reads no such file
                    raise SourceBroken(
                        f"{self._path}: has zeros behind the end of the {self._codec.name} file; write it again "
                        "without them"
                    )
                self._member = self._codec.unpacker()
            try:
                yield from self._member.pieces(data)
            except TORN as error:
                raise SourceBroken(
                    f"{self._path}: is no whole {self._codec.name} file ({error}); write it again under another name, "
                    "then rename it"
                ) from error
            data = self._member.rest

    def close(self) -> None:
        """Raises `SourceBroken` where the file ends within a member."""
        if self._member.is_begun and not self._member.ended:
            raise SourceBroken(
                f"{self._path}: the {self._codec.name} file ends in the middle; if it is still being written, set "
                "`settle`, or write to another name and rename it when it is finished"
            )
