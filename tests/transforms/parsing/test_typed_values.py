"""Text and Parquet values by declared types: what fits is read exactly, what does not becomes null."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.transforms.parsing.options import Encoding, Infinity, ParseOptions, TimeUnit
from lakejoin.transforms.parsing.typed_values import convert, from_nanos, parse_text, without_infinity

pytestmark = pytest.mark.spark

MONEY, TIME = DecimalType(12, 2), TimestampNTZType()
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 - as Spark's row holds it, in UTC
NOON = datetime(2013, 1, 1, 12)  # noqa: DTZ001
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001

MONIES = StructType(
    [StructField("a", MONEY), StructField("b", MapType(StringType(), ArrayType(TimestampType())))]
)

TEXTS: list[tuple[str, DataType, Any]] = [
    (" a ", StringType(), " a "),
    ("", StringType(), ""),
    ("true", BooleanType(), True),
    ("maybe", BooleanType(), None),
    ("127", ByteType(), 127),
    ("128", ByteType(), None),
    ("-32768", ShortType(), -32768),
    ("2147483648", IntegerType(), None),
    ("9223372036854775807", LongType(), 9223372036854775807),
    ("9223372036854775808", LongType(), None),
    ("1.0", LongType(), 1),
    ("-12.00", IntegerType(), -12),
    ("1.2345678E7", LongType(), 12345678),
    ("9007199254740992.0", LongType(), 9007199254740992),
    ("9007199254740993.0", LongType(), None),
    ("128.0", ByteType(), None),
    ("1.5", LongType(), None),
    ("1e3", LongType(), None),
    ("true", LongType(), None),
    ("", LongType(), None),
    ("1234567890.12", MONEY, Decimal("1234567890.12")),
    ("-0.5", MONEY, Decimal("-0.50")),
    (".5", MONEY, Decimal("0.50")),
    ("7.", MONEY, Decimal("7.00")),
    ("1.2300", MONEY, Decimal("1.23")),
    ("1.234", MONEY, None),
    ("0.005", MONEY, None),
    ("1.5E+2", MONEY, Decimal("150.00")),
    ("1.5e-2", MONEY, None),
    ("12345678901", MONEY, None),
    ("15e-1", DecimalType(38, 0), None),
    ("-150e-1", DecimalType(38, 0), Decimal(-15)),
    (" 0.05E1 ", DecimalType(38, 1), Decimal("0.5")),
    ("1.5e-30", DecimalType(38, 2), None),
    ("1e38", DecimalType(38, 0), None),
    ("0e-99", DecimalType(38, 0), Decimal(0)),
    (".e1", MONEY, None),
    ("1,5", MONEY, None),
    ("NaN", MONEY, None),
    ("...", MONEY, None),
    ("", MONEY, None),
    ("9" * 38, DecimalType(38, 0), Decimal("9" * 38)),
    ("9" * 39, DecimalType(38, 0), None),
    ("0." + "1" * 38, DecimalType(38, 38), Decimal("0." + "1" * 38)),
    ("1.10", DoubleType(), 1.1),
    ("1e3", DoubleType(), 1000.0),
    ("-Infinity", DoubleType(), float("-inf")),
    ("1e999", DoubleType(), None),
    ("1d", DoubleType(), None),
    ("0x1p3", DoubleType(), None),
    ("0.5", FloatType(), 0.5),
    ("1e39", FloatType(), None),
    ("15706", DateType(), date(2013, 1, 1)),
    ("-1", DateType(), date(1969, 12, 31)),
    ("2932896", DateType(), date(9999, 12, 31)),
    ("2932897", DateType(), None),
    ("-719162", DateType(), date(1, 1, 1)),
    ("-719163", DateType(), None),
    ("9999-12-31", DateType(), date(9999, 12, 31)),
    ("10000-01-01", DateType(), None),
    ("2013-01-01", DateType(), date(2013, 1, 1)),
    ("2013-01-01Z", DateType(), date(2013, 1, 1)),
    ("2013-02-30", DateType(), None),
    ("2013-01-01T00:00:00Z", DateType(), None),
    ("2013-1-1", DateType(), None),
    ("0000-01-01", DateType(), None),
    ("1357041600000000", TimestampType(), NOON),
    ("-1", TimestampType(), BEFORE_1970),
    ("253402300799999999", TimestampType(), LAST),
    ("253402300800000000", TimestampType(), None),
    ("9999999999999999999", TimestampType(), None),
    ("1357041600.5", TimestampType(), None),
    ("2013-01-01T12:00:00.000001Z", TimestampType(), NOON.replace(microsecond=1)),
    ("2013-01-01T12:00:00.1234569Z", TimestampType(), NOON.replace(microsecond=123456)),
    ("2013-01-01 14:30:00+02:30", TimestampType(), NOON),
    ("2013-01-01 07:00:00-0500", TimestampType(), NOON),
    ("2013-01-01 11:00:00-01", TimestampType(), NOON),
    ("2013-01-01T12:00Z", TimestampType(), NOON),
    ("2013-01-01 12:00:00 UTC", TimestampType(), NOON),
    ("2013-01-01T12:00:00", TimestampType(), None),
    ("2013-01-01", TimestampType(), None),
    ("2013-01-01T25:00:00Z", TimestampType(), None),
    ("0001-01-01T00:00:00+01:00", TimestampType(), None),
    ("12013-01-01T00:00:00Z", TimestampType(), None),
    ("-62135596800000001", TimestampType(), None),
    ("-9223372036854775808", TimestampType(), None),
    ("9999-12-31T23:59:59.999999Z", TimestampType(), LAST),
    ("9999-12-31T23:59:59.999999-01:00", TimestampType(), None),
    ("-0001-01-01T00:00:00Z", TimestampType(), None),
    ("2016-12-31T23:59:60Z", TimestampType(), None),
    ("2013-01-01T24:00:00Z", TimestampType(), None),
    ("2013-01-01T12:00:00Europe/Berlin", TimestampType(), None),
    ("2013-01-01T12:00:00+19:00", TimestampType(), None),
    ("yesterday", TimestampType(), None),
    ("2013-01-01T12:00", TimestampNTZType(), NOON),
    ("1357041600000000", TimestampNTZType(), NOON),
    ("2013-01-01T12:00Z", TimestampNTZType(), None),
    ("aGk=", BinaryType(), bytearray(b"hi")),
    ("a*b", BinaryType(), None),
    ('["a", null]', ArrayType(StringType()), ["a", None]),
    ('["a"', ArrayType(StringType()), None),
    ('[1, "x"]', ArrayType(LongType()), None),
    ('{"a": 1}', MapType(StringType(), LongType()), {"a": 1}),
    ('{"a": 1, "b": 2}', StructType([StructField("a", LongType())]), Row(a=1)),
    ("{}", StructType([StructField("a", LongType())]), Row(a=None)),
    ('{"a": 1.239}', MONIES, None),
    (
        '{"a": 1.25, "b": {"k": ["2013-01-01T12:00:00Z", null]}}',
        MONIES,
        Row(a=Decimal("1.25"), b={"k": [NOON, None]}),
    ),
    ('{"a": "1.2", "b": {"k": [1357041600000000]}}', MONIES, Row(a=Decimal("1.20"), b={"k": [NOON]})),
    ('{"b": {"k": ["2013-01-01T12:00:00"]}}', MONIES, None),
    ('{"b": {"k": null}}', MONIES, Row(a=None, b={"k": None})),
    ('[{"a": 1}, null, {"b": {}}]', ArrayType(MONIES), [Row(a=Decimal(1), b=None), None, Row(a=None, b={})]),
    ('{"1": "a"}', MapType(IntegerType(), StringType()), None),
]


def read(spark: SparkSession, cases: list[tuple[str, DataType, Any]], options: ParseOptions) -> list[Any]:
    """Values of one row of texts, each read by its type."""
    schema = StructType([StructField(f"c{i}", StringType()) for i in range(len(cases))])
    row = spark.createDataFrame([tuple(text for text, _, _ in cases)], schema)
    values = [parse_text(F.col(f"c{i}"), dtype, options) for i, (_, dtype, _) in enumerate(cases)]
    return list(row.select(*values).first() or ())


@pytest.mark.bad_input(4)
@pytest.mark.bad_input(11)
def test_text_is_read_by_its_type(spark: SparkSession) -> None:
    """Every text becomes the value that it spells, or null; none raises or is rounded."""
    values = read(spark, TEXTS, ParseOptions("jsonl"))

    assert [(*case[:2], value) for case, value in zip(TEXTS, values, strict=True)] == TEXTS


@pytest.mark.bad_input(11)
@pytest.mark.parametrize(
    ("unit", "number", "expected"),
    [
        ("millis", "1357041600001", NOON.replace(microsecond=1000)),
        ("millis", "253402300800000", None),
        ("nanos", "1357041600000001999", NOON.replace(microsecond=1)),
        ("nanos", "-1", BEFORE_1970),
        ("nanos", "-9223372036854775808", None),
    ],
)
def test_whole_numbers_count_the_unit_of_the_source(
    spark: SparkSession, unit: TimeUnit, number: str, expected: datetime | None
) -> None:
    """The unit is the source's; nanoseconds are cut to microseconds towards the past."""
    options = ParseOptions("jsonl", time=unit)

    assert read(spark, [(number, TimestampType(), None)], options) == [expected]


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        (None, "19889", date(2024, 6, 15)),
        ("days", "19889", date(2024, 6, 15)),
        (None, "1718409600000", None),
        ("millis", "1718409600000", date(2024, 6, 15)),
        ("micros", "-86400000000", date(1969, 12, 31)),
        ("millis", "1718409600001", None),
        ("millis", "2024-06-15", date(2024, 6, 15)),
    ],
)
def test_dates_count_days_or_what_their_column_says(
    spark: SparkSession, unit: Encoding | None, text: str, expected: date | None
) -> None:
    """Oracle's are times at midnight, in milliseconds (inlong#6507); with a time of day they are no dates."""
    options = ParseOptions("debezium", encodings={"d": unit} if unit else {})

    assert read(spark, [(text, DateType(), None)], options.of_column("d")) == [expected]


@pytest.mark.parametrize(
    ("dtype", "start", "end"),
    [
        (TimestampType(), "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
        (TimestampNTZType(), "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
        (DateType(), "0001-01-01", "9999-12-31"),
    ],
)
def test_time_without_end_is_what_the_source_declares(
    spark: SparkSession, dtype: DataType, start: str, end: str
) -> None:
    """PostgreSQL's `infinity` as text and as numbers (clickhouse-sink-connector#1231, debezium/dbz#2524)."""
    ends = ["infinity", "9223372036825200000", "9223372036854775807"]
    starts = ["-infinity", "-9223372036832400000", "-9223372036854775808"]

    def found(infinity: Infinity) -> list[Any]:
        options = ParseOptions("debezium", infinity=infinity)
        texts = [without_infinity(F.lit(text), dtype, options) for text in (*starts, *ends)]
        values = [parse_text(text, dtype, options).cast("string") for text in texts]
        row = (
            spark.range(1)
            .select(F.array(*texts).alias("texts"), F.array(*values).alias("values"))
            .collect()[0]
        )
        return [row["texts"], row["values"]]

    assert found("max")[1] == [start] * 3 + [end] * 3
    assert found("null") == [[None] * 6, [None] * 6]
    assert found("quarantine") == [[*starts, *ends], [None] * 6]


def test_z_behind_a_local_time_of_debezium_is_no_zone(spark: SparkSession) -> None:
    """As `time.precision.mode: isostring` writes it; any other zone is one that the type cannot hold."""
    cases: list[tuple[str, DataType, Any]] = [
        ("2013-01-01T12:00:00Z", TimestampNTZType(), NOON),
        ("2013-01-01T12:00Z", TimestampNTZType(), NOON),
        ('["2013-01-01T12:00:00.000000Z", null]', ArrayType(TimestampNTZType()), [NOON, None]),
        ("2013-01-01T12:00:00+02:00", TimestampNTZType(), None),
        ("2013-01-01T12:00:00ZZ", TimestampNTZType(), None),
    ]

    values = read(spark, cases, ParseOptions("debezium", of_debezium=True))

    assert values == [expected for _, _, expected in cases]


def test_dates_without_end_that_overflowed(spark: SparkSession) -> None:
    """As Debezium 3.6.1 recorded them: in a snapshot, from the log, and both with `time.precision.mode: isostring`."""
    ends = ["-622191234", "-2147472692", "+292278994-08-16Z", "-5877611-06-21Z"]
    starts = ["-625821272", "-2147472691", "+292269055-12-02Z", "-5877611-06-22Z"]
    options = ParseOptions("debezium", infinity="max")
    texts = [without_infinity(F.lit(text), DateType(), options) for text in (*starts, *ends)]

    (row,) = spark.range(1).select(F.array(*texts).alias("texts")).collect()

    assert row["texts"] == ["0001-01-01"] * 4 + ["9999-12-31"] * 4


@pytest.mark.bad_input(11)
@pytest.mark.parametrize(
    ("unit", "number"),
    [("micros", "-62135596800000000"), ("millis", "-62135596800000"), ("micros", "0001-01-01T00:00:00Z")],
)
def test_first_instant_of_the_year_1_is_one(spark: SparkSession, unit: TimeUnit, number: str) -> None:
    """It is compared as a number, for Python's own times may end within it."""
    value = parse_text(F.lit(number), TimestampType(), ParseOptions("jsonl", time=unit))

    assert (
        spark.range(1).select(F.unix_micros(value).alias("micros")).collect()[0]["micros"]
        == -62135596800000000
    )


@pytest.mark.bad_input(11)
def test_zone_of_the_source_holds_for_text_without_one(spark: SparkSession) -> None:
    """Only text that names no zone is in the source's; of a repeated hour the first is meant."""
    cases: list[tuple[str, DataType, Any]] = [
        ("2013-01-01T12:00:00", TimestampType(), datetime(2013, 1, 1, 17)),  # noqa: DTZ001
        ("2013-07-01 12:00", TimestampType(), datetime(2013, 7, 1, 16)),  # noqa: DTZ001
        ("2013-01-01", TimestampType(), datetime(2013, 1, 1, 5)),  # noqa: DTZ001
        ("2013-11-03 01:30:00", TimestampType(), datetime(2013, 11, 3, 5, 30)),  # noqa: DTZ001
        ("2013-03-10 02:30:00", TimestampType(), datetime(2013, 3, 10, 7, 30)),  # noqa: DTZ001
        ("2013-01-01T12:00:00Z", TimestampType(), NOON),
        ("1357041600000000", TimestampType(), NOON),
        ("2013-01-01 12:00:00", TimestampNTZType(), NOON),
        ("nonsense", TimestampType(), None),
        ('["2013-01-01T12:00:00"]', ArrayType(TimestampType()), [datetime(2013, 1, 1, 17)]),  # noqa: DTZ001
    ]

    values = read(spark, cases, ParseOptions("jsonl", timezone="America/New_York"))

    assert values == [expected for _, _, expected in cases]


def test_exact_digits_win_over_rounded_text(spark: SparkSession) -> None:
    """Where the text of a JSON number lost digits, the number itself decides whether it fits."""
    schema = StructType([StructField("text", StringType()), StructField("exact", StringType())])
    rows = [("1.1", "1.10"), ("1.1", "1.1000000000000000000000000001"), ("1.1", None)]
    frame = spark.createDataFrame(rows, schema)

    parsed = frame.select(parse_text(F.col("text"), MONEY, ParseOptions("jsonl"), F.col("exact"))).collect()

    assert [row[0] for row in parsed] == [Decimal("1.10"), None, Decimal("1.10")]


ONE = StructType([StructField("a", LongType())])
CONVERSIONS: list[tuple[Any, DataType, DataType, Any]] = [
    (1, IntegerType(), LongType(), 1),
    (2**40, LongType(), IntegerType(), None),
    (2**40, LongType(), DoubleType(), 2.0**40),
    (2**53 + 1, LongType(), DoubleType(), None),
    (1.0, DoubleType(), IntegerType(), 1),
    (1.5, DoubleType(), IntegerType(), None),
    (float("nan"), DoubleType(), IntegerType(), None),
    (0.5, FloatType(), DoubleType(), 0.5),
    (0.1, DoubleType(), FloatType(), None),
    (Decimal("1.50"), DecimalType(10, 2), DecimalType(12, 1), Decimal("1.5")),
    (Decimal("1.55"), DecimalType(10, 2), DecimalType(12, 1), None),
    (Decimal("2.00"), DecimalType(10, 2), LongType(), 2),
    (7, LongType(), DecimalType(3, 2), Decimal("7.00")),
    (70, LongType(), DecimalType(3, 2), None),
    (7, LongType(), StringType(), "7"),
    (True, BooleanType(), StringType(), "true"),
    (True, BooleanType(), LongType(), None),
    (date(2013, 1, 1), DateType(), StringType(), "2013-01-01"),
    (bytearray("ä".encode()), BinaryType(), StringType(), "ä"),
    (bytearray(b"\xff"), BinaryType(), StringType(), None),
    ("7", StringType(), LongType(), 7),
    ("2013-01-01T12:00:00Z", StringType(), TimestampType(), NOON),
    (15706, IntegerType(), DateType(), date(2013, 1, 1)),
    (1357041600000000, LongType(), TimestampType(), NOON),
    (NOON, TimestampNTZType(), TimestampType(), None),
    (NOON, TimestampNTZType(), DateType(), None),
    (datetime(2013, 1, 1), TimestampNTZType(), DateType(), date(2013, 1, 1)),  # noqa: DTZ001
    (datetime(2013, 1, 1, 12, tzinfo=UTC), TimestampType(), TimestampNTZType(), None),
    (datetime(2013, 1, 1, 12, tzinfo=UTC), TimestampType(), TimestampType(), NOON),
    (["a"], ArrayType(StringType()), ArrayType(StringType()), ["a"]),
    (["a"], ArrayType(StringType()), StringType(), None),
    (["a"], ArrayType(StringType(), containsNull=False), ArrayType(StringType()), ["a"]),
    (Row(a=1), StructType([StructField("a", LongType(), False, {"comment": "one"})]), ONE, Row(a=1)),
    ({"a": 1}, MapType(StringType(), LongType(), False), MapType(StringType(), LongType()), {"a": 1}),
]


@pytest.mark.bad_input(4)
@pytest.mark.bad_input(16)
def test_parquet_values_are_converted_without_loss(spark: SparkSession) -> None:
    """A wider or equal type takes the value; what a narrower one cannot hold exactly is null."""
    schema = StructType([StructField(f"c{i}", source) for i, (_, source, _, _) in enumerate(CONVERSIONS)])
    row = spark.createDataFrame([tuple(value for value, _, _, _ in CONVERSIONS)], schema)
    options = ParseOptions("parquet")

    converted = [convert(F.col(f"c{i}"), case[1], case[2], options) for i, case in enumerate(CONVERSIONS)]

    found = row.select(*converted).first()

    assert found is not None
    cases = [(*case[:3], value) for case, value in zip(CONVERSIONS, found, strict=True)]
    assert repr(cases) == repr(CONVERSIONS)


@pytest.mark.bad_input(11)
def test_parquet_dates_and_times_beyond_the_years_1_to_9999_are_none(spark: SparkSession) -> None:
    """Python and others could not read the table any more; Spark itself can hold them."""
    options = ParseOptions("parquet")
    first, last = F.date_from_unix_date(F.lit(-719162)), F.date_from_unix_date(F.lit(2932896))
    days = [first, last, F.date_sub(first, 1), F.date_add(last, 1)]
    converted = [
        convert(day.cast(source), source, target, options)
        for source, target in [(DateType(), DateType()), (TIME, TIME), (TIME, DateType())]
        for day in days
    ]

    found = spark.range(1).select(*[value.isNull() for value in converted]).first()

    assert [*(found or ())] == [False, False, True, True] * 3


@pytest.mark.bad_input(11)
def test_local_time_of_a_parquet_file_is_in_the_zone_of_the_source(spark: SparkSession) -> None:
    """A timestamp that is not adjusted to UTC needs the source's zone, as text does."""
    options = ParseOptions("parquet", timezone="+02:00")
    row = spark.createDataFrame([(NOON,)], StructType([StructField("at", TimestampNTZType())]))

    found = row.select(convert(F.col("at"), TimestampNTZType(), TimestampType(), options)).first()

    assert found == Row(NOON.replace(hour=10))


@pytest.mark.bad_input(11)
def test_nanoseconds_are_cut_to_microseconds(spark: SparkSession) -> None:
    """Spark keeps microseconds: the instant is the one just before."""
    assert spark.range(1).select(from_nanos(F.lit(-1))).first() == Row(BEFORE_1970)
