"""Packs texts as the tools do that write such files."""

import bz2
import gzip
from collections.abc import Callable, Mapping

import lz4.block
import pyarrow as pa
import zstandard

Pack = Callable[[bytes], bytes]


def in_blocks(text: bytes, pack: Pack, chunk: int = 200_000, block: int = 600_000) -> bytes:
    """Write a text as Hadoop does: the length of a block, and its chunks, each behind its length."""
    written = b""
    for start in range(0, len(text), block):
        whole = text[start : start + block]
        written += len(whole).to_bytes(4)
        for at in range(0, len(whole), chunk):
            packed = pack(whole[at : at + chunk])
            written += len(packed).to_bytes(4) + packed
    return written


def chunk_of_lz4(text: bytes) -> bytes:
    """Pack a chunk with LZ4."""
    packed: bytes = lz4.block.compress(text, store_size=False)
    return packed


def chunk_of_snappy(text: bytes) -> bytes:
    """Pack a chunk with Snappy."""
    packed: bytes = pa.Codec("snappy").compress(text, asbytes=True)
    return packed


PACK: Mapping[str, Pack] = {
    ".gz": gzip.compress,
    ".bz2": lambda text: bz2.compress(text, 1),
    ".zst": zstandard.compress,
    ".lz4": lambda text: in_blocks(text, chunk_of_lz4),
    ".snappy": lambda text: in_blocks(text, chunk_of_snappy),
}
"""How a text becomes a file of each ending."""
