"""Computes how large a Parquet file becomes in memory at most, before a batch is planned with it.

A page of some bytes may stand for any number of values, each as long as the longest text of the column's dictionary, or
as the text before it. The headers of the pages bound that. Where the bound is beyond the limits, as with most
dictionaries it is, the dictionaries are read without the values, and if that does not do the lengths of all values,
piece by piece.
"""

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.lib import ArrowException

from lakejoin.storage.errors import SourceBroken, SourceTooLarge
from lakejoin.storage.filesystem import open_file_system
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.parquet.parquet_pages import Window, read_pages
from lakejoin.storage.sources.parquet.parquet_values import (
    Chunk,
    Columns,
    narrow_by_lengths,
    narrow_by_longest,
)

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_DECIMAL = 16
"""Bytes of the widest decimal that anybody reads, however many of it are in the file."""
_FOOTER_GROWS = 4
"""How much larger the footer is in a JVM than in the file, about."""
_TAIL = 8
"""Bytes behind the footer: its length and the mark of the format."""


def check_parquet(path: str, size: int, limits: FileLimits) -> int:
    """Return how many rows a Parquet file has.

    Raises `SourceBroken` for one that is none, and `SourceTooLarge` for one that becomes more than the limits allow.
    """
    system, inner = open_file_system(path)
    try:
        with system.open_input_file(inner) as file:
            _check_footer(path, file, size, limits)
            footer = pq.read_metadata(file)
            _check_values(path, file, footer, size, limits)
            return int(footer.num_rows)
    except (ArrowException, OSError, ValueError) as error:
        if "too deeply nested" in str(error):
            raise SourceTooLarge(
                f"{path}: its schema has more levels than a Parquet file may have; found {error}. No setting raises "
                "it: write flatter columns"
            ) from error
        raise SourceBroken(
            f"{path}: is no whole Parquet file ({str(error).splitlines()[0]}); write it again under "
            "another name, then rename it"
        ) from error


def _check_footer(path: str, file: pa.NativeFile, size: int, limits: FileLimits) -> None:
    tail = file.read_at(_TAIL, max(size - _TAIL, 0))
    grown = int.from_bytes(tail[:4], "little") * _FOOTER_GROWS
    if tail.endswith(b"PAR1") and grown // _FOOTER_GROWS < size:
        limits.check_memory(path, "its footer, taken apart,", grown)


def _check_values(
    path: str, file: pa.NativeFile, footer: pq.FileMetaData, size: int, limits: FileLimits
) -> None:
    chunks: list[Chunk] = []
    found, window = 0, Window(file)
    for number in range(footer.num_row_groups):
        group, in_group = footer.row_group(number), 0
        for column in range(footer.num_columns):
            chunk = _measure(path, window, footer, number, column, limits)
            in_group += chunk.least
            limits.check(path, size, found + in_group)
            if chunk.most > chunk.least:
                chunks.append(chunk)
        found += in_group
        rows = f"a row of row group {number}, on average,"
        limits.check_memory(path, rows, in_group // max(group.num_rows, 1))
    limits.check(path, size, footer.num_rows)  # of a file without columns
    most = found + sum(chunk.most - chunk.least for chunk in chunks)
    columns, allowed = Columns(file, footer), limits.most(size)
    for narrow in (narrow_by_longest, partial(narrow_by_lengths, most=allowed)):
        for chunk in sorted(chunks, key=lambda chunk: -chunk.most):
            if most <= allowed:
                return
            before, chunk.most = chunk.most, narrow(columns, chunk)
            most += chunk.most - before
    limits.check(path, size, most)


def _measure(
    path: str, file: Window, footer: pq.FileMetaData, group: int, column: int, limits: FileLimits
) -> Chunk:
    """Add up what the headers of a column's pages say."""
    stored, kind = footer.row_group(group).column(column), footer.schema.column(column)
    start = stored.data_page_offset
    if stored.dictionary_page_offset is not None:
        start = min(start, stored.dictionary_page_offset)
    end = (
        start + stored.total_compressed_size if stored.num_values else start
    )  # without values there is no page
    chunk, values = Chunk(group, kind.path, kind.max_repetition_level > 0), 0
    for page in read_pages(file, start, end):
        what = f"a page of column {kind.path} in row group {group}, unpacked,"
        limits.check_memory(path, what, page.unpacked)
        values += page.values
        chunk.add(page)
    width = _width(kind)
    if width is None:
        chunk.least = max(chunk.least, values)
        chunk.most = max(chunk.most + chunk.from_dictionary * chunk.dictionary, chunk.least)
    else:
        nulls = (stored.statistics.null_count if stored.is_stats_set else None) or 0
        chunk.least = chunk.most = max(values, (values - nulls) * width)
    return chunk


def _width(column: pq.ColumnSchema) -> int | None:
    """Bytes of each value of a column, None where they differ."""
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    if column.logical_type.type == "DECIMAL" and column.physical_type == "BYTE_ARRAY":
        return _DECIMAL
    return _WIDTHS.get(column.physical_type)
