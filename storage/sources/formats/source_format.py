"""Says what each format of change data has to tell of a source.

A source is read in parts (`PlannedFile`): lines of files, versions of a Delta table, or offsets of a topic. Nothing
here or in the modules of the formats starts a JVM; what reads with Spark is handed a session.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakejoin.storage.sources.files.file_names import FileOrder
from lakejoin.storage.sources.files.limits import NO_LIMITS, FileLimits
from lakejoin.storage.sources.files.path_patterns import plain
from lakejoin.storage.sources.files.source_files import Dates, FoundFile
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile
from lakejoin.storage.sources.rows.schema_check import Difference
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Answer
from lakejoin.transforms.parsing.csv_dialect import CsvDialect
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, RowOp

Ranges = Sequence[PlannedFile]
Asked = Callable[[], DataFrame]
"""Gives the records of parts as `read` returns them with `ParseOptions.asks`; the batch goes on with the same."""


@dataclass(frozen=True)
class SourceSpec:
    """Where the change data of a table or stream lies, as it is declared."""

    table: str
    path: str
    """As declared, with `{date}` and other fields, and wildcards."""
    start: date | None = None
    settle: timedelta | None = None
    limits: FileLimits = NO_LIMITS
    row_op: RowOp = DEFAULT_OP
    order: FileOrder | None = None
    """How files of a day follow each other."""
    is_snapshot: bool = False
    """Each part of it is the whole table."""
    columns: StructType = field(default_factory=StructType)
    """The declared columns, called as the source calls them."""

    @property
    def place(self) -> str:
        """The path as a person writes it; a Delta table's directory."""
        return plain(self.path)


@dataclass(frozen=True)
class Look:
    """When a source is looked at, and how much of it."""

    now: datetime
    settle: timedelta | None = None
    """How long files must have been left alone; None for what the source declares, or else no time."""
    dates: Dates | None = None
    """Dated files beyond these days, inclusive, are left out."""


@dataclass(frozen=True)
class Reached:
    """How far a partition of a topic is read."""

    part: str
    next: int
    """The offset that is read next."""
    end: int
    """The offset that the next record will have."""

    @property
    def lag(self) -> int:
        """How many offsets wait."""
        return max(self.end - self.next, 0)


@dataclass(frozen=True)
class Dumped:
    """When dumps of a query are taken."""

    last: datetime | None
    """When the last one was; None where there was none."""
    due: datetime | None
    """From when on the next one may be; None for now."""

    def __str__(self) -> str:
        """As it stands behind the name of a table."""
        if self.last is None or self.due is None:
            return "was never dumped"
        last, due = (f"{time:%Y-%m-%d %H:%M:%S}" for time in (self.last, self.due))
        return f"was dumped at {last} UTC, next from {due} UTC on"


@dataclass(frozen=True)
class Waiting:
    """What of a source is not read yet."""

    parts: tuple[FoundFile, ...]
    """Files, or versions of a Delta table under the name `version N`."""
    held: int
    """How many files the source has, read or not, among the days that were looked at; a Delta table has one."""
    young: int = 0
    """How many more files wait, but changed too short a time ago to be read."""
    reached: tuple[Reached, ...] = ()
    """Of topics: how far each partition is read."""
    dumped: Dumped | None = None
    """Of queries: when dumps are taken."""
    newest: FoundFile | None = None
    """The last of the files that were looked at."""


_ONLY_EVENTS = "only events of format debezium have it; remove it"
OF_EVENTS: dict[tuple[str, ...], str] = {
    ("tables",): "only events of format debezium, and rows of jsonl by a preset, say it; remove it",
    ("snapshots",): "only events of Debezium, and rows of jsonl taken out of them, have it; remove it",
    ("epochs",): _ONLY_EVENTS,
    ("trust_sequence",): _ONLY_EVENTS,
}
"""What a configuration says of events only."""
NO_OP: dict[tuple[str, ...], str] = {("op",): "each record says itself what it does; remove it"}
"""What a configuration says of rows only."""
OF_TOPICS: dict[tuple[str, ...], str] = {
    (name,): "only topics of format kafka have it; remove it"
    for name in ("bootstrap_servers", "topic", "value", "registry", "security")
}
"""What a configuration says of topics only."""
OF_QUERIES: dict[tuple[str, ...], str] = {
    (name,): "only queries of format jdbc have it; remove it" for name in ("url", "table", "query", "every")
}
"""What a configuration says of queries only."""
OF_MEMBERS: dict[tuple[str, ...], str] = {
    ("absent",): "all rows of a file or table have the same columns; remove it"
}
"""What a configuration says only where each record has names of its own."""


NO_CSV: dict[tuple[str, ...], str] = {("csv",): "says how CSV is written; only format csv has it, remove it"}
"""What a configuration says of CSV only."""
NO_LINES: dict[tuple[str, ...], str] = {
    ("one_per_line",): "says how JSON lies in files; only formats jsonl and debezium have it, remove it"
}
"""What a configuration says of files of JSON only."""


class SourceFormat(Protocol):
    """A format of change data. What most formats share is the default."""

    # What a configuration may say of a source.
    needs: Sequence[str] = ("path",)
    """Keys of a source that say where it is, and may not be left out."""
    not_for: Mapping[tuple[str, ...], str] = {}
    """Keys of a source that mean nothing in this format, with the reason; their paths below `source`."""
    one_place: str = ""
    """Why a path holds neither fields such as `{date}` nor wildcards; empty where it may."""
    envelope: Sequence[str] = ()
    """What a record carries beside its row that can order changes."""
    truncates: bool = False
    """A record may say that its table was emptied."""
    has_rows: bool = True
    """A record is a row, so that records may be a whole table; else it tells of a change."""
    only_snapshots: bool = False
    """Records are always a whole table."""
    is_text: bool = False
    """Values are texts, and so are the keys of maps."""
    may_nest: bool = False
    """A record may hold its row in a member, and columns deep within."""
    is_one_object: bool = False
    """What a row does stands among its columns, in names that Spark compares without regard to capitals."""

    # What a batch may do with its records.
    has_lines: bool = True
    """Each record has a line of its own, by which it is read again."""
    is_dense: bool = True
    """Each line of a part has a record; else there are fewer."""
    ignores: bool = False
    """Some records may be no change of a row: heartbeats, or events of other tables."""
    is_columnar: bool = False
    """Many records are rather read again than kept."""

    # How a person is told of it.
    unit: str = "files"
    order: str = "position in the files"
    """What orders the changes of a row where nothing else is declared."""

    def written_as(
        self, dialect: CsvDialect, *, one_per_line: bool = True, lists: Sequence[str] = ()
    ) -> "SourceFormat":
        """Return the format of files that are written so.

        `dialect`: of CSV; `one_per_line`: of JSON, whether each record has a line of its own, and `lists`: the members
        that hold a row for each that a statement changed.
        """
        return self

    def held(self, count: int) -> str:
        """Say how many files a source has."""
        return f"has {count} file{'s' * (count != 1)}"

    def share(self, waiting: int, held: int) -> str:
        """Say how many of its parts wait."""
        return f"{waiting} of {held} {self.unit}"

    # What is read without a JVM.
    @abstractmethod
    def waiting(self, source: SourceSpec, known: Known, look: Look) -> Waiting:
        """List what is not read; nothing is opened but a log. Raises `SourceError`."""

    @abstractmethod
    def unread(
        self, source: SourceSpec, known: Known, look: Look, spark: SparkSession | None
    ) -> Iterator[PlannedFile]:
        """Yield what is not read, measured, in the order of its positions.

        `spark`: for records that only Spark can count; None where nothing new is to be read. Raises `SourceError` for
        what changed after it was read, or cannot be read.
        """

    @abstractmethod
    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """Refuse parts that are no longer what was planned. Raises `SourceError`.

        `thoroughly`: see as well that all it needs is still there, where the reading itself would tell.
        """

    def paths(self, source: SourceSpec, names: Collection[str], now: datetime) -> dict[str, str]:
        """Return where these parts are now that may have moved since they were planned, by their names."""
        return {}

    def discard(self, source: SourceSpec, parts: Ranges) -> None:
        """Forget parts that a check refused before their plan, if they were only made to be read."""
        return

    @abstractmethod
    def columns(self, source: SourceSpec, newest: FoundFile | None) -> list[str]:
        """Return the names of the columns that the newest data has, as far as a short look shows.

        `newest`: as in `Waiting`.
        """

    # What Spark reads.
    @abstractmethod
    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read parts, of which there is one or more, into records (`transforms.parsing.options.records_schema`).

        Every line in the ranges gives one record that is not derived, unless the format is not `is_dense`; and the
        line before each range, if it is there, one more as context. Raises `SourceError` for what is gone, shorter than
        planned or not of the format.
        """

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Return what in parts can be read in two ways, for which the table does not say in which; by default nothing.

        `begun`: earlier batches have read of the source.
        """
        return []

    @abstractmethod
    def differences(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, strict: bool
    ) -> list[Difference]:
        """Compare the columns of parts with the declared ones; `strict`: any that is not declared is a difference.

        Raises `SourceError` for what cannot be read.
        """
