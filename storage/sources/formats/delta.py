"""Reads the Change Data Feed of a Delta table: its log says what is new, and each version is read whole.

What imports `deltalake` is imported where it is used: a configuration is checked without.
"""

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.source_format import (
    NO_CSV,
    NO_LINES,
    NO_OP,
    OF_EVENTS,
    OF_MEMBERS,
    Asked,
    Look,
    Ranges,
    SourceFormat,
    SourceSpec,
    Waiting,
)
from lakejoin.storage.sources.planned.planned_file import FEED, Known, PlannedFile
from lakejoin.storage.sources.rows.ambiguous_rows import ask_typed
from lakejoin.storage.sources.rows.schema_check import Difference, of_schema
from lakejoin.transforms.model.schemas import is_internal
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Answer
from lakejoin.transforms.parsing.options import ParseOptions

if TYPE_CHECKING:
    from lakejoin.storage.sources.change_data_feed.feed_log import Feed, FeedVersion

_FOR_FILES = "is for files; the log of a Delta table says what is new. Remove it"
_LIMITS_FILES = (
    "limits files that are read whole, and found format 'delta', whose rows Spark reads. Remove it"
)
_NOT_FOR = {
    **OF_EVENTS,
    **OF_MEMBERS,
    **NO_OP,
    **NO_CSV,
    **NO_LINES,
    ("start",): _FOR_FILES,
    ("file_order",): _FOR_FILES,
    ("settle",): _FOR_FILES,
    ("limits", "file"): _LIMITS_FILES,
    ("limits", "ratio"): _LIMITS_FILES,
    ("limits", "memory"): _LIMITS_FILES,
}


class Delta(SourceFormat):
    """Versions of one table."""

    not_for = _NOT_FOR
    one_place = "{date} and wildcards stand for files; write the directory of one Delta table"
    has_lines = is_dense = False
    unit = "versions"
    order = "commit version"

    def held(self, count: int) -> str:
        """Say what the source is."""
        return "is a Delta table"

    def share(self, waiting: int, held: int) -> str:
        """Say how many versions wait; nobody counts those that were read."""
        return f"{waiting} {self.unit}"

    def waiting(self, source: SourceSpec, known: Known, look: Look) -> Waiting:
        """List the versions that changed a row."""
        unread = self.unread(source, known, look, None)
        parts = [part for part in unread if part.records or source.is_snapshot]
        found = (FoundFile(part.path, f"version {part.to_line}", None, 0, part.modified) for part in parts)
        return Waiting(tuple(found), 1)

    def unread(
        self, source: SourceSpec, known: Known, look: Look, spark: SparkSession | None
    ) -> Iterator[PlannedFile]:
        """Yield the versions behind the last one that was planned, each as a part of its own.

        Of a source of snapshots the newest version alone: what came between has no effect on the rows.
        """
        feed, before = _feed(source.place), known.get(FEED)
        if source.is_snapshot:
            newest = feed.newest(before.to_line if before else None)
            return iter([_part(source, newest)] if newest else [])
        versions = (
            [feed.whole()]
            if before is None
            else feed.after(before.to_line, before.fingerprint, before.modified)
        )
        return (_part(source, version) for version in versions)

    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """See that the table is the same, and `thoroughly` that the log and files of the range are there."""
        for part in parts:
            feed = _feed(part.path)
            if source.is_snapshot:
                feed.check_whole(part.to_line, part.modified)
            elif thoroughly or feed.identity != part.fingerprint:
                feed.check_range(part.from_line, part.to_line, part.fingerprint, part.modified)

    def columns(self, source: SourceSpec, newest: FoundFile | None) -> list[str]:
        """Return the table's columns; of a joined table those that are its own business are nobody's to declare."""
        return [name for name in _feed(source.place).columns if not is_internal(name)]

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read ranges of versions into the records that `storage.sources.change_data_feed.feed_reader` tells of."""
        from lakejoin.storage.sources.change_data_feed.feed_reader import parse_feed

        return reduce(DataFrame.unionByName, parse_feed(spark, table, options, ranges))

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Ask the schema of the last version for names, and columns of whole numbers that are read as times."""
        schema = _schema_of(spark, ranges[-1])
        return ask_typed(
            table,
            options,
            [(ranges[-1], schema)],
            lambda other, options: self.read(spark, other, options, ranges),
        )

    def differences(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, strict: bool
    ) -> list[Difference]:
        """Compare the schema of the last version."""
        place = f"{ranges[-1].path} (version {ranges[-1].to_line})"
        return list(of_schema(place, _schema_of(spark, ranges[-1]), table.as_written, options, strict=strict))


def _schema_of(spark: SparkSession, part: PlannedFile) -> dict[str, DataType | None]:
    """The columns of the last version of a part."""
    from lakejoin.storage.sources.change_data_feed.feed_reader import state_of

    return {field.name: field.dataType for field in state_of(spark, part.path, part.to_line).schema}


def _feed(path: str) -> "Feed":
    from lakejoin.storage.sources.change_data_feed.feed_log import Feed

    return Feed(path)


def _part(source: SourceSpec, version: "FeedVersion") -> PlannedFile:
    return PlannedFile(
        table=source.table, path=source.place, name=FEED, date=None, size=0, modified=version.modified,
        fingerprint=version.identity, lines=version.records, complete=True, from_line=version.after,
        to_line=version.number,
    )  # fmt: skip
