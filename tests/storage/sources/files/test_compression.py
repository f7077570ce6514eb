"""Texts of each compression that Spark reads: counted as Spark reads them, and refused where it would not."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from itertools import pairwise

import lz4.frame
import pytest
import zstandard

from lakejoin.storage.errors import SourceBroken, SourceTooLarge
from lakejoin.storage.sources.files.compression import PIECE
from lakejoin.storage.sources.files.fingerprint import open_text
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.jsonl import Jsonl
from packed_text import PACK, chunk_of_lz4, chunk_of_snappy, in_blocks

Write = Callable[..., FoundFile]
LINES = 30_000
TEXT = b"".join(b"%d %s\n" % (n, random.Random(n).randbytes(20).hex().encode()) for n in range(LINES))
SKIPPED = b"\x50\x2a\x4d\x18\x05\0\0\0hello"
"""A frame of Zstandard that is no text."""


@pytest.mark.parametrize("ending", PACK)
def test_packed_text_is_counted_and_read(write: Write, ending: str) -> None:
    """Several members as well (https://github.com/apache/datafusion/issues/10435 read none of the later ones)."""
    packed = PACK[ending](TEXT[:-1]) + PACK[ending](b"\n" + TEXT)
    found = write(f"x.jsonl{ending}", packed)

    measured = Jsonl().measure(found)

    assert (measured.lines, measured.complete) == (2 * LINES, True)
    with open_text(found.path) as text:
        assert text.read() == TEXT + TEXT
    grown = write(f"x.jsonl{ending}", packed + PACK[ending](b"{}\n"), modified=2)
    assert Jsonl().measure(grown, measured).lines == 2 * LINES + 1


@pytest.mark.parametrize("ending", [*PACK, ".GZ", ".gzip", ".zstd"])
def test_file_without_bytes_has_no_lines(write: Write, ending: str) -> None:
    """Whatever its name says: it may have only been created yet."""
    assert Jsonl().measure(write(f"x.jsonl{ending}")).lines == 0


@pytest.mark.bad_input(41)
@pytest.mark.parametrize("ending", PACK)
def test_torn_file_is_told(write: Write, ending: str) -> None:
    """Spark reads such a file to where it was cut, stops with an error, or ends with its JVM."""
    packed = PACK[ending](TEXT)
    for cut in (len(packed) - 1, len(packed) // 2, 3):
        with pytest.raises(SourceBroken, match=r"the [a-z0-9]+ file ends in the middle"):
            Jsonl().measure(write(f"x.jsonl{ending}", packed[:cut]))
    for wrong in (packed + b"rest of it", packed[:99] + b"\x7f" + packed[100:-50] + b"\0" * 50):
        with pytest.raises(SourceBroken, match=r"is no whole [a-z0-9]+ file|ends in the middle|zeros behind"):
            Jsonl().measure(write(f"x.jsonl{ending}", wrong))


@pytest.mark.bad_input(46)
@pytest.mark.parametrize("ending", PACK)
def test_bomb_is_not_unpacked_at_once(write: Write, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are held against each piece, none of which is much more than a megabyte."""
    bomb, pieces = write(f"x.jsonl{ending}", PACK[ending](bytes(40_000_000))), list[int]()
    monkeypatch.setattr(FileLimits, "check_size", lambda self, path, size: pieces.append(size))

    with pytest.raises(SourceTooLarge, match="all in memory at once"):
        Jsonl().measure(bomb, limits=FileLimits(memory=39_000_000))

    assert max(b - a for a, b in pairwise(pieces[1:])) <= 8 * PIECE


@pytest.mark.bad_input(41)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", zstandard.compress(b"{}\n"), "compressed with zstd; give it a name that ends in .zst"),
        ("x.jsonl", bz2.compress(b"{}\n"), "compressed with bzip2; give it a name that ends in .bz2"),
        ("x.jsonl", bz2.compress(b""), "compressed with bzip2"),
        ("x.jsonl.gz", bz2.compress(b"{}\n"), "compressed with bzip2, and named as gzip"),
        (
            "x.jsonl.lz4",
            gzip.compress(b"{}\n", mtime=0),
            "compressed with gzip, and named as lz4; give it .* .gz",
        ),
        # read as an empty file, without an error: https://github.com/lhns/fs2-compress/pull/145
        ("x.jsonl.lz4", lz4.frame.compress(b"{}\n"), "as frames of LZ4.*, which Spark does not read"),
        ("x.jsonl", lz4.frame.compress(b"{}\n"), "as frames of LZ4"),
        ("x.jsonl.snappy", b"\xff\x06\x00\x00sNaPpY" + bytes(9), "as frames of Snappy, which Spark does not"),
        (
            "x.jsonl",
            lzma.compress(b"{}\n"),
            "with xz, which Spark does not read; expected plain text, or gzip",
        ),
        ("x.jsonl.zip", b"PK\x03\x04", "unpack the file or use gzip"),
        # the JVM ends at these: https://github.com/xerial/snappy-java/issues/728
        (
            "x.jsonl.snappy",
            in_blocks(TEXT, chunk_of_snappy, 600_000),
            "a chunk of [0-9,]+ bytes; Spark reads",
        ),
        ("x.jsonl.snappy", in_blocks(bytes(600_000), chunk_of_snappy, 600_000), "of 600,000 bytes, unpacked"),
        ("x.jsonl.lz4", in_blocks(TEXT, chunk_of_lz4, 300_000), "is no whole lz4 file"),
        ("x.jsonl.lz4", PACK[".lz4"](TEXT) + bytes(4) + PACK[".lz4"](TEXT), "at which Spark stops"),
        ("x.jsonl.zst", zstandard.compress(TEXT) + bytes(9), "zeros behind the end of the zstd file"),
    ],
)
def test_what_spark_would_not_read_is_refused(write: Write, name: str, content: bytes, message: str) -> None:
    """With the name or the compression that it would read."""
    with pytest.raises(SourceBroken, match=message):
        Jsonl().measure(write(name, content))


def test_what_looks_like_a_compression_is_text(write: Write) -> None:
    """Text may begin as bzip2 does; a block without bytes may end a file; frames that are no text are passed over."""
    assert Jsonl().measure(write("x.jsonl", b"BZhope\n")).lines == 1
    assert Jsonl().measure(write("x.lz4", PACK[".lz4"](TEXT) + bytes(4))).lines == LINES
    skipping = SKIPPED + zstandard.compress(TEXT) + SKIPPED
    assert Jsonl().measure(write("x.zst", skipping)).lines == LINES


def test_window_that_spark_has_no_memory_for_is_refused(write: Write) -> None:
    """As `zstd --long=28` writes it; up to 27 it is read."""
    for size in (27, 28):
        parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=size)
        packing = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        found = write(f"x{size}.zst", packing.compress(TEXT) + packing.flush())
        if size == 27:
            assert Jsonl().measure(found).lines == LINES
        else:
            with pytest.raises(SourceBroken, match="too much memory"):
                Jsonl().measure(found)
