r"""Reads CSV after RFC 4180: a header, quotes doubled within quotes, fields that may hold line ends.

Null is an empty field without quotes, or `\N` as PostgreSQL writes it; an empty text is `""`. Blank lines are no
records. Other signs and encodings are declared (`transforms.parsing.csv_dialect`). Spark reads the bytes as ISO 8859-1,
which loses none, so that invalid UTF-8 can be told from a replacement character.
"""

from collections.abc import ItemsView, Sequence
from functools import reduce
from operator import or_

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.filesystem import spark_path
from lakejoin.storage.sources.files.source_files import Counted
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.rows.line_numbers import number_lines
from lakejoin.storage.sources.text.csv_spark import CORRUPT, decoded, spark_options, value_of
from lakejoin.storage.sources.text.csv_text import Header, read_header, runs_to_the_end
from lakejoin.transforms.model.schemas import CONTEXT, DETAIL, POSITION, POSITION_TYPE, REASON, empty
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.csv_dialect import CsvDialect
from lakejoin.transforms.parsing.flat_rows import take_rows_apart
from lakejoin.transforms.parsing.options import ParseOptions, Parts, reason_is
from lakejoin.transforms.parsing.schema_drift import ENTRIES

_ENTRY = StructType([StructField("name", StringType()), StructField("text", StringType())])
_ROWS = StructType([StructField(POSITION, POSITION_TYPE), StructField(ENTRIES, ArrayType(_ENTRY))])
_MOST_FIELDS = 20_480  # the default of Spark's `maxColumns`
_UNPARSABLE = "TextParsingException"
_STRAY_QUOTE = ("Unescaped quote character", "following quoted value of CSV field")
"""What the parser says of a quoted field with a quote that is neither doubled nor its end."""


def take_csv_apart(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[PlannedFile]
) -> list[Parts]:
    """Take CSV files apart into records, one frame for each header that they have. Raises `SourceBroken`."""
    headers = _by_header(ranges, options.dialect)
    return [_take_apart(spark, table, options, header, parts) for header, parts in headers]


def count_records(spark: SparkSession, path: str, dialect: CsvDialect) -> Counted:
    """Count the records of a CSV file as reading it will number them. Raises `SourceBroken`."""
    header = read_header(path, dialect)
    if not header.names:
        return Counted(0)
    records = _count(spark, path, header, dialect, unescapedQuoteHandling="RAISE_ERROR")
    if records is not None:
        return Counted(records)
    # as it is read: such a field goes on to the next delimiter or line end behind the quote
    return Counted(_count(spark, path, header, dialect) or 0, stray_quotes=True)


def _count(spark: SparkSession, path: str, header: Header, dialect: CsvDialect, **options: str) -> int | None:
    """Count the records; None where one of them has a stray quote, and the options say that this is an error."""
    try:
        return _scan(spark, [path], header, dialect, **options).count()
    except Py4JJavaError as error:
        if any(message in str(error) for message in _STRAY_QUOTE):
            return None
        if _UNPARSABLE not in str(error):
            raise
        raise SourceBroken(
            f"{path}: has a record with more than {_MOST_FIELDS:,} fields, or a field that is too long to be read; "
            "expected records as in RFC 4180. Correct the file"
        ) from error


def csv_rows(spark: SparkSession, options: ParseOptions, ranges: Sequence[PlannedFile]) -> DataFrame:
    """Read the whole records of CSV files that are no deletes: position, entries. Raises `SourceBroken`."""
    rows = [_entries(spark, options, header, parts) for header, parts in _by_header(ranges, options.dialect)]
    return reduce(DataFrame.unionByName, rows) if rows else empty(spark, _ROWS)


def _by_header(ranges: Sequence[PlannedFile], dialect: CsvDialect) -> ItemsView[Header, list[PlannedFile]]:
    """The files that have records, by their headers: one without a line that is not blank has neither."""
    headers: dict[Header, list[PlannedFile]] = {}
    for part in ranges:
        headers.setdefault(read_header(part.path, dialect), []).append(part)
    return {header: parts for header, parts in headers.items() if header.names}.items()


def _entries(
    spark: SparkSession, options: ParseOptions, header: Header, ranges: Sequence[PlannedFile]
) -> DataFrame:
    dialect = options.dialect
    rows = number_lines(_scan(spark, [part.path for part in ranges], header, dialect), ranges, one_task=True)
    found = decoded(header, dialect)
    texts = dict(zip(header.names, [found[column] for column in header.columns], strict=True))
    members = [
        F.struct(F.lit(name).alias("name"), value_of(text, dialect).alias("text"))
        for name, text in texts.items()
    ]
    said, nothing = options.row_op, F.lit(None).cast("string")
    kind = said.kind(*[texts.get(name, nothing) for name in said.columns])
    whole = F.col(CORRUPT).isNull() & F.coalesce(kind == "upsert", F.lit(False))
    kept = rows.where(~F.col(CONTEXT) & whole)
    return kept.select(POSITION, F.array(*members).alias(ENTRIES))


def _scan(
    spark: SparkSession, paths: Sequence[str], header: Header, dialect: CsvDialect, **options: str
) -> DataFrame:
    schema = StructType([StructField(name, StringType()) for name in (*header.columns, CORRUPT)])
    reader = spark.read.options(**spark_options(dialect), **options, lineSep=header.line_end).schema(schema)
    return reader.csv([spark_path(path) for path in paths])


def _take_apart(
    spark: SparkSession,
    table: TableSpec,
    options: ParseOptions,
    header: Header,
    ranges: Sequence[PlannedFile],
) -> Parts:
    wanted = (*table.as_written.columns.names, *options.row_op.columns)
    for name in wanted:
        if header.names.count(name) > 1:
            raise SourceBroken(f"{ranges[0].path}: the header has {name!r} twice, expected once; rename one")
    dialect = options.dialect
    scan = _scan(spark, [part.path for part in ranges], header, dialect)
    rows = number_lines(scan, ranges, one_task=True)
    wrong = _wrong(header, ranges, dialect)
    rows = rows.withColumns(
        {
            **decoded(header, dialect),
            REASON: F.when(wrong.isNotNull(), reason_is("parse_error")),
            DETAIL: wrong,
        }
    )
    fields = dict(zip(header.names, header.columns, strict=True))
    named_fields = zip(header.names, header.columns, strict=True)
    row = F.struct(*[F.col(column).alias(name) for name, column in named_fields])
    raw = F.coalesce(F.col(CORRUPT), F.to_json(row, {"ignoreNullFields": "false"}))
    columns: dict[str, tuple[Column, DataType]] = {
        name: (value_of(F.col(fields[name]), dialect), StringType()) for name in wanted if name in fields
    }
    return take_rows_apart(rows, table, options, columns, raw)


def _wrong(header: Header, ranges: Sequence[PlannedFile], dialect: CsvDialect) -> Column:
    """What keeps a record from being one, null for nothing."""
    unended, corrupt = runs_to_the_end(ranges, dialect), F.col(CORRUPT).isNotNull()
    # the parser keeps the quotes of a field with a stray one; one that begins with doubled quotes looks the same
    strays, last = [part.name for part in ranges if part.stray_quotes], header.columns[-1:]
    begins = [F.col(column).startswith(dialect.quote) for column in header.columns if strays]
    quoted = F.col(POSITION)["file"].isin(strays) & reduce(or_, begins, F.lit(False))
    # within quotes they are data, which the parser does not tell from a line's end
    returns = [part.name for part in ranges if part.returns and header.line_end == "\n"]
    ends = [F.col(column).endswith("\r") for column in last if returns]
    returned = F.col(POSITION)["file"].isin(returns) & reduce(or_, ends, F.lit(False))
    return (
        F.when(unended, "a quote is open to the end of the file")
        .when(
            corrupt,
            f"expected {len(header.names)} fields as in {'`names`' if dialect.names else 'the header'}",
        )
        .when(
            quoted,
            "a field begins with a quote, in a file where quotes within fields are not all doubled",
        )
        .when(returned, "ends with a carriage return, which the header does not; expected the same line ends")
    )
