"""Unpacks the blocks of Avro files piece by piece, as Spark does it, and keeps nothing but their sizes."""

import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping

from lakejoin.storage.sources.files import compression
from lakejoin.storage.sources.files.compression import CODECS, Buffering, Inflating, Unpacking
from lakejoin.storage.sources.files.hadoop_blocks import chunk_of_snappy, size_of_snappy
from lakejoin.storage.sources.files.limits import AT_ONCE, FileLimits

TORN = (*compression.TORN, lzma.LZMAError)
"""What is raised for a block that is torn, beside `ValueError`."""
_CHECKSUM = 4
"""Bytes behind a block in Snappy."""


_OF_FILES = {codec.name: codec.unpacker for codec in CODECS}
_UNPACKERS: Mapping[str, Callable[[], Unpacking]] = {
    "deflate": lambda: Inflating(-15),  # without the header and checksum of gzip
    "bzip2": _OF_FILES["bzip2"],
    "xz": lambda: Buffering(lzma.LZMADecompressor(memlimit=AT_ONCE)),
    "zstandard": _OF_FILES["zstd"],
}
_HAS_FRAMES = "zstandard"
"""Packs a block in one frame or several. What stands behind the end in another codec, such as a part of a checksum that
some writers leave there, Spark passes over."""
READ = ("null", "snappy", *_UNPACKERS)


def unpacked_sizes(
    block: Iterator[bytes], codec: str, path: str, what: str, limits: FileLimits
) -> Iterator[int]:
    """Yield how many bytes each piece of a block unpacks to.

    `what` the block is called. Raises one of `TORN` or `ValueError`, and `SourceTooLarge` for one in Snappy, which is
    unpacked whole.
    """
    if codec == "snappy":
        yield _size_in_snappy(b"".join(block), path, what, limits)
        return
    unpacker = _UNPACKERS.get(codec)
    if unpacker is None:
        yield from map(len, block)
        return
    unpacking = unpacker()
    for part in block:
        piece = part
        while piece and not (unpacking.ended and codec != _HAS_FRAMES):
            unpacking = unpacker() if unpacking.ended else unpacking
            yield from map(len, unpacking.pieces(piece))
            piece = unpacking.rest
    if not unpacking.ended:
        raise ValueError("what is packed has no end")


def _size_in_snappy(block: bytes, path: str, what: str, limits: FileLimits) -> int:
    limits.check_memory(path, what, size_of_snappy(block))
    text = chunk_of_snappy(block[:-_CHECKSUM], size_of_snappy(block))
    if zlib.crc32(text) != int.from_bytes(block[-_CHECKSUM:]):
        raise ValueError("a checksum is wrong")
    return len(text)
