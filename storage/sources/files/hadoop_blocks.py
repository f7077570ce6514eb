"""Unpacks LZ4 and Snappy as Hadoop writes them: blocks, each behind the length of its text, of chunks behind their own.

A chunk that is larger than Hadoop's buffers ends the JVM (https://github.com/xerial/snappy-java/issues/728), and at a
block without bytes Spark stops reading, whatever stands behind it.
"""

from collections.abc import Callable, Iterator

import lz4.block
import pyarrow as pa

WRONG = (lz4.block.LZ4BlockError, pa.ArrowException, ValueError)
"""What is raised for chunks that are torn."""
_BUFFER = 256 * 1024
"""What a chunk may have, packed or not: the size of Hadoop's buffers."""
_LENGTH = 4


class Blocks:
    """The state within a file."""

    def __init__(self, unpack: Callable[[bytes, int], bytes]) -> None:
        self._unpack = unpack
        self._held, self._left, self._is_over = b"", 0, False
        self.ended, self.rest = False, b""

    @property
    def is_begun(self) -> bool:
        """Whether something was read that is not done with."""
        return bool(self._held) or self._left > 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Unpack what comes next, chunk by chunk. Raises one of `WRONG`."""
        self._held += data
        while len(self._held) >= _LENGTH:
            if self._is_over:
                raise ValueError("more stands behind a block without bytes, at which Spark stops")
            length = int.from_bytes(self._held[:_LENGTH])
            if not self._left:
                self._left, self._is_over = length, not length
                self._held = self._held[_LENGTH:]
                continue
            if not 0 < length <= _BUFFER:
                raise ValueError(f"a chunk of {length:,} bytes; Spark reads them up to {_BUFFER:,}")
            end = _LENGTH + length
            if len(self._held) < end:
                return
            text = self._unpack(self._held[_LENGTH:end], min(self._left, _BUFFER))
            self._left, self._held = self._left - len(text), self._held[end:]
            yield text


def chunk_of_lz4(chunk: bytes, most: int) -> bytes:
    """Unpack a chunk that has at most so many bytes of text. Raises one of `WRONG`."""
    unpacked: bytes = lz4.block.decompress(chunk, uncompressed_size=most)
    return unpacked


def chunk_of_snappy(chunk: bytes, most: int) -> bytes:
    """Unpack a chunk that has at most so many bytes of text. Raises one of `WRONG`."""
    size = size_of_snappy(chunk)
    if size > most:
        raise ValueError(f"a chunk of {size:,} bytes, unpacked; expected at most {most:,}")
    unpacked: bytes = pa.Codec("snappy").decompress(chunk, size, asbytes=True)
    return unpacked


def size_of_snappy(chunk: bytes) -> int:
    """How many bytes a chunk says that it unpacks to."""
    size = shift = 0
    for byte in chunk[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return size
