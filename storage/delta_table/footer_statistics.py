"""Takes the statistics of text columns from the footers of Parquet files instead of from the rows.

Delta gathers the least and the greatest value of each column while it writes, and copies each text twice for that. This
takes a tenth of a load. Parquet's writer compares the values as well and keeps the bounds in its footers. So Delta is
told to leave texts out, and their bounds are added to what it gathered. Readers find the same statistics as otherwise.
(Delta protocol, "Per-file Statistics"; texts are shortened as Delta shortens them.)
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.filesystem import open_file_system
from lakejoin.transforms.model.printable_text import printable
from lakejoin.transforms.model.schemas import quoted

STATISTICS = "delta.dataSkippingStatsColumns"
"""The property of a table that names the columns of which Delta gathers statistics."""
INDEXED = "delta.dataSkippingNumIndexedCols"
"""The property that says of how many,"""
_USUAL = 32
"""and of how many where neither is stated; the fields of structs count."""
_PREFIX = 32
"""How many characters of a text its bounds have."""
_GATHERED = (NumericType, DateType, TimestampType, TimestampNTZType)
_FROM_FOOTER = (StringType, BooleanType)
"""Delta cannot be asked for the nulls of a boolean by its name, only where all columns are meant."""

Path = tuple[str, ...]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Footers:
    """The footers of the files of a table."""

    system: fs.FileSystem
    root: str

    @classmethod
    def of(cls, path: str) -> Self | None:
        """Those of a table at a path; None in a store that only Hadoop knows how to open."""
        try:
            system, root = open_file_system(path)
        except SourceRefused:
            return None
        return cls(system, root.rstrip("/"))

    def read(self, name: str) -> pq.FileMetaData | None:
        """The footer of a file; None, and a warning, where it cannot be read just now."""
        try:
            return pq.read_metadata(f"{self.root}/{name}", filesystem=self.system)
        except OSError as error:
            logger.warning(
                "%s/%s: no statistics of its texts: %s",
                printable(self.root),
                printable(name),
                printable(error),
            )
            return None


def columns_but_texts(schema: StructType) -> str | None:
    """Return what `STATISTICS` has to say that texts are left out.

    None where there are no texts, and where a column is of a type that the footers do not tell as Delta would.
    """
    indexed = _indexed(schema)
    if any(not isinstance(dtype, (*_GATHERED, *_FROM_FOOTER)) for _, dtype in indexed):
        return None
    others = [".".join(map(quoted, path)) for path, dtype in indexed if isinstance(dtype, _GATHERED)]
    return ",".join(others) if others and any(isinstance(dtype, StringType) for _, dtype in indexed) else None


def with_texts(
    statistics: str, footer: pq.FileMetaData, schema: StructType, upper: Callable[[int, str], str | None]
) -> str:
    """Return a file's statistics, gathered without texts, with those of its texts.

    `footer`: of the file, which has the columns of `schema` in their order. `upper`: Delta's own way to cut off a
    greatest value behind so many characters, None where nothing as short is greater.
    """
    found = json.loads(statistics, parse_float=_Number)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for number, (path, dtype) in enumerate(_indexed(schema)):
        if not isinstance(dtype, _FROM_FOOTER):
            continue
        chunks = [group.column(number).statistics for group in groups]
        if any(chunk is None or not chunk.has_null_count for chunk in chunks):
            continue
        _put(found["nullCount"], path, sum(chunk.null_count for chunk in chunks))
        if isinstance(dtype, StringType) and (bounds := _bounds(chunks)):
            least, greatest = bounds[0][:_PREFIX], upper(_PREFIX, bounds[1])
            _put(found["minValues"], path, least)
            if greatest is not None:
                _put(found["maxValues"], path, greatest)
    return _text(found)


class _Number(str):
    """A number with a point as it was written: more digits than a float holds may be right."""

    __slots__ = ()


def _indexed(schema: StructType) -> list[tuple[Path, DataType]]:
    return list(_leaves(schema))[:_USUAL]


def _leaves(schema: StructType, above: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """The columns that a Parquet file has, in its order."""
    for field in schema:
        path = (*above, field.name)
        if isinstance(field.dataType, StructType):
            yield from _leaves(field.dataType, path)
        else:
            yield path, field.dataType


def _bounds(chunks: Sequence[Any]) -> tuple[str, str] | None:
    """The least and the greatest text of a file; None where it has none, and where a footer does not say."""
    told = [chunk for chunk in chunks if chunk.num_values]
    if not told or not all(chunk.has_min_max for chunk in told):
        return None
    try:
        return min(chunk.min for chunk in told), max(chunk.max for chunk in told)
    except UnicodeDecodeError:  # bytes that are no text, which Spark takes for one
        return None


def _put(members: dict[str, Any], path: Path, value: Any) -> None:
    *above, name = path
    for part in above:
        members = members.setdefault(part, {})
    members[name] = value


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{_text(member)}" for name, member in value.items()) + "}"
    return value if isinstance(value, _Number) else json.dumps(value)
