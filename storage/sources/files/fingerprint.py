"""Computes the fingerprint of a source file and counts its lines, in one pass over its bytes.

The fingerprint is 128 bits of XXH3 over the bytes as they are stored. Lines are counted in the text, unpacked and in
UTF-8. The pass also tells whether the last line is finished.
"""

import codecs
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import xxhash

from lakejoin.storage.errors import SourceBroken, SourceChanged
from lakejoin.storage.filesystem import open_file_system, reading
from lakejoin.storage.sources.files.compression import Codec, Unpacker, check_name, codec_of
from lakejoin.storage.sources.files.limits import NO_LIMITS, WIDE, WIDE_TEXT, FileLimits
from lakejoin.storage.sources.files.text_counts import TextCounts
from lakejoin.transforms.parsing.csv_dialect import CsvDialect

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK = 1 << 20
_AT_FIRST = 1 << 16
"""How much of a packed file is read where perhaps only its beginning is wanted."""


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
    size: int = 0
    """Bytes of the text, unpacked."""
    long_record: bool = False
    """Of CSV: a record is longer than may be in memory, if each quote in the file opens or closes a field."""


def scan_text(
    path: str,
    size: int,
    *,
    boundary: int | None = None,
    dialect: CsvDialect | None = None,
    limits: FileLimits = NO_LIMITS,
) -> FileContent:
    """Read the first `size` bytes of a text file, plain or packed; no more than some chunks are held in memory.

    `boundary`: also fingerprint as many bytes from the start. `dialect`: of CSV; an open quote at the end makes the
    file incomplete, and carriage returns are looked for. Raises `SourceBroken` for a compression that is torn or
    unknown, `SourceChanged` where there are fewer bytes, and `SourceTooLarge` as soon as the limits are passed.
    """
    limits.check_size(path, size)
    codec = codec_of(path)
    digest, text = xxhash.xxh3_128(), _counts(dialect)
    unpacker = None if codec is None else Unpacker(path, codec)
    beginning = digest.hexdigest() if boundary == 0 else None
    width, wide = (1, "") if dialect is None else (WIDE, WIDE_TEXT)
    quoted, decode = dialect is not None and bool(dialect.quote), _decoder(path, dialect)
    position = 0
    if not size:
        check_name(path, b"")
    for chunk in _chunks(path, size, boundary):
        if position == 0:
            check_name(path, chunk)
        digest.update(chunk)
        position += len(chunk)
        for part in [chunk] if unpacker is None else unpacker.feed(chunk):
            text.feed(decode(part))
            limits.check_size(path, text.size)
            limits.check_ratio(path, position, text.size)
            limits.check_memory(
                path, f"line {text.newlines + 1:,}{wide}", text.open_line * width, about="at least "
            )
        if position == boundary:
            beginning, text.at_boundary = digest.hexdigest(), True
    if unpacker is not None:
        unpacker.close()
    text.feed(decode(None))
    ended = text.last in {b"", b"\n"}
    complete = ended and (not quoted or text.quotes % 2 == 0)
    lines, continued = text.newlines + (not ended), quoted and text.continued
    return FileContent(
        digest.hexdigest(), beginning, lines, complete, text.appended, continued, text.returns,
        size=text.size, long_record=text.longest_record * width > limits.memory,
    )  # fmt: skip


def _counts(dialect: CsvDialect | None) -> TextCounts:
    return TextCounts() if dialect is None else TextCounts(quote=dialect.quote, escape=dialect.escape)


def _decoder(path: str, dialect: CsvDialect | None) -> Callable[[bytes | None], bytes]:
    """Makes UTF-8 of a text in UTF-16, piece by piece, None behind the last; other encodings have signs of one byte."""
    if dialect is None:
        return lambda piece: piece or b""
    is_wide, begun = dialect.encoding == "utf-16", False
    decoder = codecs.getincrementaldecoder("utf-16")("strict")

    def decode(piece: bytes | None) -> bytes:
        nonlocal begun
        if piece and not begun:
            begun = True
            _check_mark(path, piece, is_wide=is_wide)
        if not is_wide:
            return piece or b""
        try:
            return decoder.decode(piece or b"", final=piece is None).encode()
        except UnicodeError as error:
            raise SourceBroken(f"{path}: is no UTF-16 ({error}); correct `encoding`, or the file") from error

    return decode


def _check_mark(path: str, beginning: bytes, *, is_wide: bool) -> None:
    """Refuse UTF-16 that is declared as something else, or that nothing says the order of bytes of."""
    has_mark = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if has_mark and not is_wide:
        raise SourceBroken(
            f"{path}: is UTF-16; write `csv: {{encoding: utf-16}}` under source, or convert it to UTF-8"
        )
    if is_wide and not has_mark:
        raise SourceBroken(
            f"{path}: begins with no byte order mark, so that nothing says which UTF-16 it is; convert it to UTF-8 "
            "(`iconv -f UTF-16LE -t UTF-8`), and leave `encoding` out"
        )


def scan_whole(
    path: str, size: int, count: Callable[[str, int, FileLimits], int], limits: FileLimits = NO_LIMITS
) -> FileContent:
    """Fingerprint a file that is written once, and count its records.

    `count`: returns how many there are, and raises `SourceBroken` for a file that is none of its format,
    `SourceTooLarge` for one that becomes more than the limits allow.
    """
    limits.check_size(path, size)
    digest = xxhash.xxh3_128()
    for chunk in _chunks(path, size, None):
        digest.update(chunk)
    return FileContent(digest.hexdigest(), None, count(path, size, limits), complete=True, appended=b"")


def open_text(path: str) -> BinaryIO:
    """Open a text file for reading its bytes, unpacked where it is packed.

    Reading raises `OSError` or `SourceBroken` for what is torn.
    """
    system, inner = open_file_system(path)
    codec = codec_of(path)
    if codec is None or codec.name == "gzip":
        stream: BinaryIO = system.open_input_stream(inner, compression=None if codec is None else "gzip")
        return stream
    return io.BufferedReader(_Unpacked(system.open_input_stream(inner, compression=None), path, codec))


class _Unpacked(io.RawIOBase):
    """The text of a packed file; a last member that is cut just ends it."""

    def __init__(self, packed: BinaryIO, path: str, codec: Codec) -> None:
        super().__init__()
        self._packed, self._text, self._held = packed, self._pieces(Unpacker(path, codec)), b""

    def _pieces(self, unpacker: Unpacker) -> Iterator[bytes]:
        while chunk := self._packed.read(_AT_FIRST):
            yield from unpacker.feed(chunk)

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill a buffer with what comes next; nothing at the end."""
        view = memoryview(buffer).cast("B")
        while not self._held and (piece := next(self._text, None)) is not None:
            self._held = piece
        count = min(len(view), len(self._held))
        view[:count], self._held = self._held[:count], self._held[count:]
        return count

    def close(self) -> None:
        """Close the packed file, too."""
        self._packed.close()
        super().close()


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
