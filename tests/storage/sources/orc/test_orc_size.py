"""ORC files are counted and measured by their footers, and refused where these are torn; no JVM is started."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from lakejoin.storage.errors import SourceBroken, SourceChanged, SourceTooLarge
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile, stat_file
from lakejoin.storage.sources.formats.orc import Orc
from lakejoin.storage.sources.orc.orc_footer import read_footer

Write = Callable[..., FoundFile]
ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": ["x" * n for n in range(1000)],
        "raw": [b"yy"] * 1000,
        "at": pa.array([0] * 1000, pa.timestamp("ns")),
        "tags": [[1, 2]] * 1000,
    }
)
"""8 bytes of each number, 499,500 of texts, 2,000 of bytes, 12 of each time, 16,000 in lists, and rows and lists."""
BYTES = 8_000 + 499_500 + 2_000 + 12_000 + 16_000 + 2 * 1000


def in_orc(folder: Path, rows: pa.Table, compression: str = "zstd") -> FoundFile:
    """A file of rows."""
    path = folder / "x.orc"
    orc.write_table(rows, path, compression=compression, dictionary_key_size_threshold=1.0)
    return stat_file(str(path), "x.orc", None)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_footer_says_how_many_rows_and_bytes_there_are(tmp_path: Path, compression: str) -> None:
    """Whatever packs it."""
    found = in_orc(tmp_path, ROWS, compression)

    assert Orc().measure(found).lines == 1000
    with pa.OSFile(found.path) as file:
        footer = read_footer(found.path, file, found.size, FileLimits())
    assert (footer.rows, footer.bytes) == (1000, BYTES)


@pytest.mark.bad_input(41)
def test_file_that_is_cut_or_altered_at_its_end_is_told(tmp_path: Path, write: Write) -> None:
    """Wherever: nothing but the footer says where anything is."""
    content = Path(in_orc(tmp_path, ROWS).path).read_bytes()
    for end in (0, 1, 3, 100, len(content) // 2, len(content) - 1):
        with pytest.raises(SourceBroken, match=r"y\.orc: is no whole ORC file .*; write it again"):
            Orc().measure(write("y.orc", content[:end]))
    for place in range(len(content) - 60, len(content)):
        altered = bytearray(content)
        altered[place] ^= 0xFF
        try:
            assert (
                Orc().measure(write("y.orc", bytes(altered))).lines == 1000
            )  # a part that only writers look at
        except (SourceBroken, SourceTooLarge) as error:
            assert "y.orc: " in str(error)  # noqa: PT017 - each of the last bytes
    assert Orc().columns_of(write("y.orc", b"none"), None) == []  # type: ignore[arg-type] # no row says anything


@pytest.mark.bad_input(46)
def test_bomb_is_refused_by_its_footer(tmp_path: Path) -> None:
    """Bytes that are the same in each row take no room in the file."""
    found = in_orc(tmp_path, pa.table({"raw": [b"x" * 400_000] * 300}))
    assert found.size < 50_000

    with pytest.raises(
        SourceTooLarge, match=r"x\.orc: its first .* unpack to over 120,000,[0-9]+; expected at most"
    ):
        Orc().measure(found)
    with pytest.raises(SourceTooLarge, match=r"a row, on average, has 400,00[0-9] bytes"):
        Orc().measure(found, limits=FileLimits(ratio=10**6, memory=350_000))
    with pytest.raises(SourceTooLarge, match=r"has over 100,000,000 bytes, unpacked"):
        Orc().measure(found, limits=FileLimits(file=100_000_000))
    assert Orc().measure(found, limits=FileLimits(ratio=10**6)).lines == 300


def test_file_that_was_written_anew_is_a_change(tmp_path: Path) -> None:
    """As it is of Parquet."""
    known = Orc().measure(in_orc(tmp_path, ROWS))

    with pytest.raises(SourceChanged, match="changed after it was read"):
        Orc().measure(in_orc(tmp_path, pa.concat_tables([ROWS, ROWS])), known)
