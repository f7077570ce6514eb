"""Models a source of change data in the file: where it lies, how it is read, what is too much or different.

As in `model`, the texts below the fields make the reference and the JSON Schema.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal, cast

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticKnownError

from lakejoin.orchestration.config.schema.csv_options import CsvOptions
from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.operation import DeclaredOperation
from lakejoin.orchestration.config.schema.sizes import GIGABYTE, MEGABYTE, TERABYTE, Share, Size
from lakejoin.orchestration.config.schema.values import (
    DatabaseTable,
    DatabaseUrl,
    Duration,
    Instant,
    LocalFile,
    Registry,
    Select,
    Servers,
    SourcePath,
    SourceTable,
    Start,
    Topics,
    Zone,
)
from lakejoin.storage.sources.database import queries
from lakejoin.storage.sources.files.file_names import FileOrder
from lakejoin.storage.sources.files.limits import AT_ONCE, FileLimits
from lakejoin.storage.sources.files.path_patterns import plain
from lakejoin.storage.sources.formats.known_formats import FORMATS, format_of
from lakejoin.storage.sources.formats.source_format import SourceFormat
from lakejoin.storage.sources.kafka import topics
from lakejoin.transforms.parsing.csv_dialect import RFC_4180, CsvDialect
from lakejoin.transforms.parsing.options import DEEPEST, Absent, Infinity, ParseOptions, Snapshots
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, OF_SNAPSHOTS, RowOp

LIMITS: JsonDict = {"file": "1 TB", "line": "100 MB", "depth": DEEPEST, "ratio": 1000, "memory": "256 MB"}
"""The limits where none are declared, as one writes them."""


def _known_format(value: Any) -> str:
    """Take the name of a format; any other value is refused as one that is none of the choices."""
    if not isinstance(value, str) or value not in FORMATS:
        *most, last = map(repr, FORMATS)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(most)} or {last}"})
    return value


Format = Annotated[str, PlainValidator(_known_format), WithJsonSchema({"enum": [*FORMATS], "type": "string"})]
"""The name of a format."""


class Limits(Frozen):
    """How large the files of a source and their records may be."""

    file: Size = Field(default=TERABYTE, json_schema_extra={"default": LIMITS["file"]})
    """A file with more bytes, unpacked, stops the batch before it is planned. Not with `delta`."""
    line: Annotated[Size, Field(le=512 * MEGABYTE)] = Field(
        default=100 * MEGABYTE, json_schema_extra={"default": LIMITS["line"]}
    )
    """A longer line, or a row whose texts are longer together, is quarantined as `too_large`, with its length and
    hash in place of its text. At most 512 MB; beyond `memory` it stops the batch."""
    depth: Annotated[int, Field(ge=1, le=DEEPEST)] = DEEPEST
    """A line with more levels of objects and arrays is quarantined in the same way. At most 998, as deep as Spark
    reads."""
    ratio: Annotated[int, Field(ge=1)] = 1000
    """A packed file of which a byte stands for more than so many stops the batch. Of Parquet and ORC the bytes of the
    values count, not those of the pages or stripes. Files of up to 100 MB, unpacked, may be packed as they like. Not
    with `delta`."""
    memory: Annotated[Size, Field(ge=MEGABYTE, le=2 * GIGABYTE)] = Field(
        default=AT_ONCE, json_schema_extra={"default": LIMITS["memory"]}
    )
    """A file with a larger part that can only be read whole stops the batch before it is planned: a line; with two
    bytes for each character, a record of CSV, or a file with `one_per_line: false`; of Parquet a page, an average row,
    or the footer, which becomes four times as large; of Avro a block; of ORC an average row, or the footer. At most
    2 GB. Spark needs some sixteen times as much (`spark.driver.memory`, by default 4 GB). Not with `delta`."""


class Security(Frozen):
    """How the brokers of topics are spoken to; user and password stand in the environment."""

    protocol: Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    """`SSL`: encrypted; `SASL_SSL`: with a login as well; `SASL_PLAINTEXT`: with a login only."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    """How `SASL…` logs in, with the environment's `LAKEJOIN_KAFKA_USERNAME` and `LAKEJOIN_KAFKA_PASSWORD`."""
    ca: LocalFile | None = None
    """PEM file with the certificates that sign those of the brokers; by default what the machine trusts."""
    certificate: LocalFile | None = None
    """PEM file with a certificate and its private key, for brokers that ask for one. A key that is encrypted is opened
    with the environment's `LAKEJOIN_KAFKA_KEY_PASSWORD`."""

    @model_validator(mode="after")
    def _logs_in(self) -> "Security":
        if self.protocol.startswith("SASL") != (self.mechanism is not None):
            raise ValueError(
                "`mechanism` goes with a `protocol` that begins with SASL, and such a protocol needs one"
            )
        return self


class Source(Frozen):
    """Where the change data of a table lies."""

    format: Format
    """`debezium`: JSON lines as Debezium writes them; `jsonl`, `csv`, `parquet`, `avro` (object container files),
    `orc`: flat rows with a column that says what happened (`op`); `delta`: the Change Data Feed of a Delta table;
    `kafka`: topics, whose records are of one of the forms that `value` names; `jdbc`: a table of a PostgreSQL database,
    or a query, as snapshots."""
    path: SourcePath = ""
    """Files, relative to the configuration file or a URI. Not with `kafka` and `jdbc`, else needed. `{date}`
    (YYYY-MM-DD) makes daily partitions, and so do `{year}`, `{month}` and `{day}` together, anywhere in the path
    (`year={year}/month={month}/day={day}/*.json`); `{hour}` orders the files of a day. `*`, `?`, `[…]` and `**` (any
    number of directories) are wildcards. Environment variables are not filled in. Of format `delta`: the directory of
    the table."""
    mode: Literal["changes", "snapshot"] = "changes"
    """`changes`: each record is a change of a row; `snapshot`: the files of a day, of a folder, or each file are the
    whole table at a time, and what changed is found by comparison; see `docs/snapshots.md`. Not with `debezium`; of
    `jdbc` the only mode."""
    max_deleted: Share = Field(default=0.5, json_schema_extra={"default": "50 %"})
    """A snapshot that lacks a larger share of the rows than this stops the batch before it is planned: it may have been
    cut off. Only with `mode: snapshot`."""
    url: DatabaseUrl | None = None
    """The database, such as `jdbc:postgresql://host:5432/shop?sslmode=verify-full`. With the environment's
    `LAKEJOIN_JDBC_USERNAME` and `LAKEJOIN_JDBC_PASSWORD` if it asks for a login. Only with `jdbc`, and needed there."""
    table: DatabaseTable | None = None
    """The table or view, such as `public.orders`. Only with `jdbc`, which needs this or `query`."""
    query: Select | None = None
    """A query whose rows are the table. Only with `jdbc`."""
    every: Duration = Field(default=timedelta(days=1), json_schema_extra={"default": "1 day"})
    """How long a dump of the database counts as new: a run takes the next one only after this time. Only with
    `jdbc`."""
    bootstrap_servers: Servers | None = None
    """Some brokers, as `host:port`, apart by commas. Only with `kafka`, and needed there, as the next two."""
    topic: Topics = ()
    """The topic, or a list of topics, that hold the records. Only with `kafka`."""
    value: Literal["debezium", "jsonl"] | None = None
    """What the values of records are: events as Debezium writes them, or flat rows as JSON. Only with `kafka`."""
    registry: Registry | None = None
    """URL of the schema registry (Confluent's, or one with its interface) in which a record's schema is that it names
    by a number: Avro, or JSON Schema. With the environment's `LAKEJOIN_REGISTRY_USERNAME` and
    `LAKEJOIN_REGISTRY_PASSWORD` if it asks for a login. Only with `kafka`."""
    security: Security | None = None
    """How brokers are spoken to; see below. By default without encryption and login. Only with `kafka`."""
    op: DeclaredOperation | None = None
    """How flat rows say what happened to them: the name of a preset, or a mapping; see below. By default a column `op`
    with c, r or u for an upsert and d for a delete."""
    time: Literal["micros", "millis", "nanos"] = "micros"
    """Unit of whole numbers in `timestamp` columns. A whole number in a `date` column counts days."""
    timezone: Zone | None = None
    """Zone of timestamps written as text without one, such as `Europe/Berlin` or `+02:00`; without it, such a
    record is quarantined."""
    tables: tuple[SourceTable, ...] = ()
    """Tables of the database whose events are read, as `table` or `schema.table`, with `*` for any letters; events
    of others are `ignored`. By default all events must be of one. Only with `debezium`, and `jsonl` with a preset that
    says it."""
    csv: CsvOptions | None = None
    """How CSV is written where it is not as in RFC 4180; see below. Only with `csv`."""
    one_per_line: bool = True
    """Each record has a line of its own. `false`: several may share a line, or one may span lines, and lists may hold
    them, as in `[{…}, {…}]`; then a file is read whole and may not grow. Only with `debezium` and `jsonl`."""
    absent: Absent | None = None
    """What becomes of a column that an update has no member for: `clear` makes it null, `keep` leaves it as it was.
    Without it, input with such updates is refused. Only with `debezium` and `jsonl`."""
    snapshots: Snapshots | None = None
    """Reads of a snapshot (`r`) that stand behind changes: `in_order` takes them as new as their place says; `oldest`
    takes one without `lsn`, with `sequence: [lsn]` or the column that a row has it in, for older than every change.
    Without it, input with such reads is refused. Only with `debezium`, and `jsonl` with `op: debezium-unwrapped`."""
    infinity: Infinity = "quarantine"
    """What becomes of PostgreSQL's `infinity` and `-infinity` in a date or timestamp: `max` takes the last instant of
    the year 9999, and the first of year 1; `null` takes null; `quarantine` takes no such record."""
    epochs: tuple[Instant, ...] = ()
    """When the log of the database began anew, after a move to another server or a restore, such as
    `2026-11-01T12:00:00Z`. With `sequence: source` an event whose `source.ts_ms` is of then or later is newer than all
    that are of before. Only with `debezium`."""
    trust_sequence: bool = False
    """A `sequence` that begins with `tx_id`, or with the connector's `ts_ms`, is meant: neither is the order in which
    a database commits. Only with `debezium`."""
    settle: Duration | None = None
    """Files changed less than this ago are left for later; by default 0 for `run`, 30 seconds for the
    sensor. Not with `delta`, whose commits are whole."""
    file_order: FileOrder | None = None
    """How files of a day follow each other: `name` as their names do, letter by letter, which is how they are read
    where this is left out; `number` by the numbers in their names (`part-9.json` before `part-10.json`). Where the two
    differ and there is no `sequence`, input is refused until one is declared. Not with `delta`."""
    start: Start | None = None
    """First daily partition; by default the date of the first file found. Only where the path makes days. Directories
    of earlier years, months and days are not listed. With `kafka`: where the first batch begins: `earliest` (the
    default), `latest`, a day or time, or an offset for each partition, such as `{0: 1500, 1: 0}`; an offset behind what
    was read passes over what lies between."""

    limits: Limits = Field(default=Limits(), json_schema_extra={"default": LIMITS})
    """How large files and records may be; see below."""
    on_schema_change: Literal["ignore", "fail"] = "ignore"
    """What becomes of files in which a declared column is missing or of another type: `ignore` takes what there is,
    null for the missing, and quarantines values that do not fit; `fail` stops the batch before it is planned and
    shows the difference. Of JSON, CSV and Debezium `fail` costs a second reading of the input."""
    strict: bool = False
    """With `on_schema_change: fail`: columns that are not declared are a difference, too."""

    @property
    def place(self) -> str:
        """The path as a person writes it: a Delta table's directory, topics, a database, or what messages show."""
        if self.url is not None:
            return self.url
        return (
            plain(self.path)
            if self.bootstrap_servers is None
            else self.topics(is_ordered=False).path(",".join(self.topic))
        )

    @property
    def first_day(self) -> date | None:
        """The first daily partition, where one is declared."""
        return self.start if isinstance(self.start, date) and not isinstance(self.start, datetime) else None

    def topics(self, *, is_ordered: bool) -> topics.Topics:
        """The topics of the source. `is_ordered`: see there."""
        start = self.start
        if self.first_day is not None:
            start = datetime.combine(self.first_day, time(), UTC)
        return topics.Topics(
            self.bootstrap_servers or "", self.topic, cast("topics.Start", start or "earliest"),
            topics.Security(**self.security.model_dump()) if self.security else topics.Security(),
            self.registry, is_ordered=is_ordered,
        )  # fmt: skip

    def known_format(self, *, is_ordered: bool) -> SourceFormat:
        """What is known of the format. `is_ordered`: something else than its place orders a record."""
        topics = self.topics(is_ordered=is_ordered) if self.topic else None
        known = format_of(self.format, self.value, topics, self.asked)
        lists = self.row_op.members if self.row_op.lists else ()
        return known.written_as(self.dialect, one_per_line=self.one_per_line, lists=lists)

    @property
    def asked(self) -> queries.Query | None:
        """The query of the source, if it is one."""
        if self.url is None:
            return None
        if self.query is not None:
            return queries.of_select(self.url, self.query, self.every)
        return queries.of_table(self.url, self.table or "", self.every)

    @property
    def is_snapshot(self) -> bool:
        """Whether records are the rows of a whole table."""
        return self.mode == "snapshot"

    @property
    def row_op(self) -> RowOp:
        """How flat rows say what happened to them."""
        if self.is_snapshot:
            return OF_SNAPSHOTS
        said = DEFAULT_OP if self.op is None else self.op.row_op
        # a row whose schema is known has it beside it
        return said if self.registry is None else replace(said, wrapped=True)

    @property
    def dialect(self) -> CsvDialect:
        """How CSV is written."""
        return RFC_4180 if self.csv is None else self.csv.dialect

    @property
    def parse_options(self) -> ParseOptions:
        """What the parsers want to know beside the columns."""
        return ParseOptions(
            format=self.format,
            time=self.time,
            timezone=self.timezone,
            tables=self.tables,
            absent=self.absent,
            snapshots=self.snapshots,
            epochs=tuple(int(start.timestamp() * 1000) for start in sorted(self.epochs)),
            infinity=self.infinity,
            of_debezium="debezium" in {self.format, self.value} or self.row_op.placeholders,
            row_op=self.row_op,
            dialect=self.dialect,
            trusts_sequence=self.trust_sequence,
            max_line=self.limits.line,
            max_depth=self.limits.depth,
        )

    @property
    def file_limits(self) -> FileLimits:
        """The limits that a file is checked against while it is read through."""
        return FileLimits(self.limits.file, self.limits.ratio, self.limits.memory)
