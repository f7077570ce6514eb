"""Takes dumps of a query to a database, and reads them as snapshots in Parquet files.

A query has no state that could be read again. So its rows are written below the lake first, and from there on they are
files like any other. A dump is taken when the last one was taken long enough ago; nobody asks the database before.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.database.dumping import take_dump
from lakejoin.storage.sources.database.dumps import Dump, dumps, folder_of, name_of, remove, time_of
from lakejoin.storage.sources.database.queries import Query
from lakejoin.storage.sources.files.limits import NO_LIMITS
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.parquet import Parquet
from lakejoin.storage.sources.formats.source_format import (
    NO_CSV,
    NO_OP,
    OF_EVENTS,
    OF_MEMBERS,
    Asked,
    Dumped,
    Look,
    Ranges,
    SourceFormat,
    SourceSpec,
    Waiting,
)
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile
from lakejoin.storage.sources.rows.schema_check import Difference
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Answer
from lakejoin.transforms.parsing.options import ParseOptions

_FOR_FILES = "is for files; a query is asked of the database at `url`. Remove it"
_LIMITS_FILES = "limits files that others write; found format 'jdbc'. Remove it"
_NOT_FOR: dict[tuple[str, ...], str] = {
    **OF_EVENTS,
    **OF_MEMBERS,
    **NO_OP,
    **NO_CSV,
    **{(name,): _FOR_FILES for name in ("path", "start", "settle", "file_order", "one_per_line")},
    **{("limits", name): _LIMITS_FILES for name in ("file", "ratio", "memory")},
    ("strict",): "only declared columns are asked for; remove it",
}
_FILES = Parquet()


class Jdbc(SourceFormat):
    """Rows of a database."""

    needs = ("url",)
    not_for = _NOT_FOR
    only_snapshots = True
    has_lines = False
    is_columnar = True
    unit = "dump"
    order = "time of the dump"

    def __init__(self, query: Query | None = None) -> None:
        """Query of a source; none where only the configuration is checked."""
        self._query = query

    def held(self, count: int) -> str:
        """Say what the source is."""
        return "is asked of a database"

    def share(self, waiting: int, held: int) -> str:
        """Say what waits."""
        return f"{waiting} {self.unit}"

    def waiting(self, source: SourceSpec, known: Known, look: Look) -> Waiting:
        """List the dump that is not read, or one that is due; nobody is asked."""
        found = [dump for dump in dumps(folder_of(source.path)) if dump.is_whole]
        last, due = self._times(found, known)
        if due is None or due <= look.now:
            parts = [_to_be_taken(self._known_query.url, due)]
        else:
            parts = [file for dump in _unread(found, known) for file in dump.files]
        return Waiting(tuple(parts), 1, dumped=Dumped(last, due))

    def unread(
        self, source: SourceSpec, known: Known, look: Look, spark: SparkSession | None
    ) -> Iterator[PlannedFile]:
        """Take a dump if one is due and there is a session; yield the newest one's files unless they were read."""
        folder = folder_of(source.path)
        found = dumps(folder)
        whole = [dump for dump in found if dump.is_whole]
        last, due = self._times(whole, known)
        if spark is not None and (due is None or due <= look.now):
            # what was read is in the lake, and what was not is old by now
            remove(folder, found)
            begun = look.now if last is None else max(look.now, last + timedelta(microseconds=1))
            take_dump(spark, self._known_query, source.columns, f"{folder}/{name_of(begun)}")
            whole = [dump for dump in dumps(folder) if dump.is_whole]
        for dump in _unread(whole, known):
            for file in dump.files:
                yield PlannedFile.behind(0, _FILES.measure(file), source.table)

    def discard(self, source: SourceSpec, parts: Ranges) -> None:
        """Remove the dumps of parts, so that the next run asks anew."""
        names, folder = {part.name.partition("/")[0] for part in parts}, folder_of(source.path)
        remove(folder, [dump for dump in dumps(folder) if dump.name in names])

    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """Hold the files against what was measured of them."""
        _FILES.check_same(replace(source, limits=NO_LIMITS), parts, thoroughly=thoroughly)

    def columns(self, source: SourceSpec, newest: FoundFile | None) -> list[str]:
        """Return none: only declared columns are asked for."""
        return []

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read files of dumps."""
        return _FILES.read(spark, table, options, ranges)

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Ask files of dumps."""
        return _FILES.ambiguities(spark, table, options, ranges, records, begun=begun)

    def differences(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, strict: bool
    ) -> list[Difference]:
        """Compare the schemas of files of dumps."""
        return _FILES.differences(spark, table, options, ranges, strict=strict)

    @property
    def _known_query(self) -> Query:
        assert self._query is not None  # only the checks of a configuration know none
        return self._query

    def _times(self, whole: list[Dump], known: Known) -> tuple[datetime | None, datetime | None]:
        """When the last dump was taken, read or not, and when the next one is due; None where there was none."""
        times = [*[dump.taken for dump in whole], *map(time_of, known)]
        last = max(times, default=None)
        return last, last and last + self._known_query.every


def _unread(whole: list[Dump], known: Known) -> list[Dump]:
    """The newest dump, unless it or a newer one was read."""
    read = max(map(time_of, known), default=None)
    return [dump for dump in whole[-1:] if read is None or dump.taken > read]


def _to_be_taken(url: str, due: datetime | None) -> FoundFile:
    """A dump that is not taken yet, in the place of a file; it is the same until it is taken."""
    if due is None:
        return FoundFile(url, "the first", None, 0, 0)
    return FoundFile(url, f"one due since {due:%Y-%m-%d %H:%M:%S} UTC", None, 0, int(due.timestamp() * 1e9))
