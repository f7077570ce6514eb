"""Computes the fingerprint of a source file and counts its lines, in one pass over its bytes.

The fingerprint is 128 bits of XXH3 over the bytes as they are stored. Lines are counted in the text, after a gzip file
is unpacked (RFC 1952; one that was appended to has several members). The pass also tells whether the last line is
finished.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import xxhash

from storage.errors import SourceBroken, SourceChanged
from storage.filesystem import open_file_system, reading
from storage.sources.limits import NO_LIMITS, WIDE, WIDE_TEXT, FileLimits
from storage.sources.parquet_size import check_parquet
from storage.sources.text_counts import TextCounts

_CHUNK = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_OTHER_COMPRESSION = (".bz2", ".deflate", ".lz4", ".lzo", ".snappy", ".xz", ".zip", ".zst")


@dataclass(frozen=True)
class FileContent:
    """What a pass over a file found."""

    fingerprint: str
    beginning: str | None
    """Fingerprint of the first bytes, as many as were asked for."""
    lines: int
    """Line ends, and one more for a last line without."""
    complete: bool
    """The last line has its end, and no quoted CSV field is open."""
    appended: bytes
    """First two bytes behind the beginning, or as many as there are."""
    continued: bool = False
    """The beginning ends within a quoted CSV field, and there is more behind it."""
    returns: bool = False
    """Of CSV: some line ends with a carriage return and a line feed that are not within quotes."""
    long_record: bool = False
    """Of CSV: a record is longer than may be in memory, if each quote in the file opens or closes a field."""


class _Gunzip:
    """Decompresses chunk by chunk, member after member; a small chunk may hold much text."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._member = zlib.decompressobj(wbits=31)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                if not data.strip(b"\0"):  # as tapes and some copies pad a file; Hadoop reads no such file
                    raise SourceBroken(
                        f"{self._path}: has zeros behind the end of the gzip file; write it again without them"
                    )
                self._member, self._begun = zlib.decompressobj(wbits=31), False
                continue
            self._begun = True
            try:
                yield self._member.decompress(data, _CHUNK)
            except zlib.error as error:
                raise SourceBroken(
                    f"{self._path}: is no whole gzip file ({error}); write it again under another name, then "
                    "rename it"
                ) from error
            data = self._member.unconsumed_tail or self._member.unused_data

    def close(self) -> None:
        if self._begun and not self._member.eof:
            raise SourceBroken(
                f"{self._path}: the gzip file ends in the middle; if it is still being written, set "
                "`settle`, or write to another name and rename it when it is finished"
            )


def scan_text(
    path: str, size: int, *, boundary: int | None = None, quoted: bool = False, limits: FileLimits = NO_LIMITS
) -> FileContent:
    """Read the first `size` bytes of a text file, plain or gzip; no more than some chunks are held in memory.

    `boundary`: also fingerprint as many bytes from the start. `quoted`: an open double quote at the end makes
    the file incomplete, and carriage returns are looked for. Raises `SourceBroken` for a compression that is torn or
    unknown, `SourceChanged` where there are fewer bytes, and `SourceTooLarge` as soon as the limits are passed.
    """
    limits.check_size(path, size)
    _refuse_other_compression(path)
    digest, text = xxhash.xxh3_128(), TextCounts(quoted=quoted)
    gunzip = _Gunzip(path) if path.endswith(".gz") else None
    beginning = digest.hexdigest() if boundary == 0 else None
    width, wide = (WIDE, WIDE_TEXT) if quoted else (1, "")
    position = 0
    for chunk in _chunks(path, size, boundary):
        if position == 0 and gunzip is None and chunk.startswith(_GZIP):
            raise SourceBroken(f"{path}: is compressed with gzip; give it a name that ends in .gz")
        if position == 0 and chunk.startswith(_ZSTD):
            raise SourceBroken(f"{path}: is compressed with zstd; unpack the file or use gzip")
        digest.update(chunk)
        position += len(chunk)
        for part in [chunk] if gunzip is None else gunzip.feed(chunk):
            text.feed(part)
            limits.check_size(path, text.size)
            limits.check_ratio(path, position, text.size)
            limits.check_memory(
                path, f"line {text.newlines + 1:,}{wide}", text.open_line * width, about="at least "
            )
        if position == boundary:
            beginning, text.at_boundary = digest.hexdigest(), True
    if gunzip is not None:
        gunzip.close()
    ended = text.last in {b"", b"\n"}
    complete = ended and (not quoted or text.quotes % 2 == 0)
    lines, continued = text.newlines + (not ended), quoted and text.continued
    return FileContent(
        digest.hexdigest(), beginning, lines, complete, text.appended, continued, text.returns,
        long_record=text.longest_record * width > limits.memory,
    )  # fmt: skip


def scan_parquet(path: str, size: int, limits: FileLimits = NO_LIMITS) -> FileContent:
    """Fingerprint a Parquet file and count its rows by the footer.

    Raises `SourceBroken` without one, and `SourceTooLarge` for a file that becomes more than the limits allow.
    """
    limits.check_size(path, size)
    digest = xxhash.xxh3_128()
    for chunk in _chunks(path, size, None):
        digest.update(chunk)
    rows = check_parquet(path, size, limits)
    return FileContent(digest.hexdigest(), None, rows, complete=True, appended=b"")


def open_text(path: str) -> BinaryIO:
    """Open a text file for reading its bytes, decompressed where it is gzip."""
    system, inner = open_file_system(path)
    stream: BinaryIO = system.open_input_stream(inner, compression="gzip" if path.endswith(".gz") else None)
    return stream


def _chunks(path: str, size: int, boundary: int | None) -> Iterator[bytes]:
    """The first `size` bytes, in chunks that end at the boundary as well."""
    system, inner = open_file_system(path)
    position = 0
    with reading(path), system.open_input_stream(inner, compression=None) as stream:
        while position < size:
            stop = boundary if boundary is not None and position < boundary else size
            chunk = stream.read(min(_CHUNK, stop - position))
            if not chunk:
                raise SourceChanged(f"{path}: ends after {position} bytes, had {size} when listed; run again")
            position += len(chunk)
            yield chunk


def _refuse_other_compression(path: str) -> None:
    ending = path.lower()
    if ending.endswith(_OTHER_COMPRESSION) or (ending.endswith(".gz") and not path.endswith(".gz")):
        raise SourceBroken(f"{path}: expected plain text, or gzip named .gz; unpack the file or use gzip")
