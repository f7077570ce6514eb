"""Records that are too long, too deep, or no Unicode: quarantined with what finds them again."""

import hashlib
import json
from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructType

from lakejoin.transforms.model.schemas import CONTEXT, DETAIL, OP, POSITION, POSITION_TYPE, RAW, REASON
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing import debezium, flat_rows, json_rows
from lakejoin.transforms.parsing.options import DEEPEST, ParseOptions, Parts
from lakejoin.transforms.parsing.validation import finish_records

pytestmark = pytest.mark.spark

TABLE = TableSpec("t", StructType().add("id", "string").add("name", "string"), ("id",), POSITION_TYPE)
PARSERS: dict[str, Callable[[DataFrame, TableSpec, ParseOptions], Parts]] = {
    "debezium": debezium.take_apart,
    "jsonl": json_rows.take_apart,
}


def parse(
    spark: SparkSession, lines: Sequence[str], options: ParseOptions, table: TableSpec = TABLE
) -> list[Row]:
    """The record of each line, all in one frame."""
    frame = spark.createDataFrame(list(enumerate(lines, start=1)), "line BIGINT, text STRING")
    numbered = frame.select(
        F.struct(F.lit(None).cast("date").alias("date"), F.lit("x").alias("file"), "line").alias(POSITION),
        F.lit(False).alias(CONTEXT),
        F.col("text").alias(RAW),
    )
    found = finish_records(PARSERS[options.format](numbered, table, options), table).collect()
    assert len(found) == len(lines)
    return sorted(found, key=lambda row: row[POSITION]["line"])


def line(form: str, more: str = "", key: str = '"k"') -> str:
    """An insert as JSON text, with something more in its row."""
    if form == "jsonl":
        return f'{{"op":"c","id":{key}{more}}}'
    return f'{{"op":"c","after":{{"id":{key}{more}}}}}'


def short(text: str) -> dict[str, object]:
    """What quarantine keeps of a text that is too large."""
    return {"bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.bad_input(12)
@pytest.mark.parametrize("form", ["debezium", "jsonl"])
def test_long_line_leaves_its_length_and_hash(spark: SparkSession, form: str) -> None:
    """The limit itself is allowed; one byte more is not, whatever else is wrong with the line."""
    fits = line(form, ',"name":"' + "é" * 100 + '"')
    longer = fits.replace('"k"', '"kk"')
    broken = "x" * len(longer.encode())

    good, *bad = parse(spark, [fits, longer, broken], ParseOptions(form, max_line=len(fits.encode())))

    assert (good[OP], good["id"], good[REASON]) == ("upsert", "k", None)
    for text, row in zip((longer, broken), bad, strict=True):
        assert (row[REASON], row[OP], row["name"]) == ("too_large", None, None)
        assert json.loads(row[RAW]) == short(text)
        assert (
            row[DETAIL]
            == f"{len(text.encode())} bytes, expected at most {len(fits.encode())} (source.limits.line)"
        )


@pytest.mark.bad_input(12)
@pytest.mark.parametrize("form", ["debezium", "jsonl"])
@pytest.mark.parametrize("limit", [DEEPEST, 20])
def test_deep_line_leaves_its_length_and_hash(spark: SparkSession, form: str, limit: int) -> None:
    """Also where the limit is that of Spark's own parser; brackets within texts are no levels."""
    around = 1 if form == "jsonl" else 2

    def nested(levels: int, inner: str = "") -> str:
        inside = levels - around
        return line(form, f',"name":"[[{{","extra":{"[" * inside}{inner}{"]" * inside}')

    text = json.dumps('"[{\\' * limit)
    lines = [
        nested(limit),
        nested(limit + 1),
        nested(10_000),
        line(form, f',"name":{text}'),
        nested(10_000)[:-9],
    ]

    allowed, over, deep, quoted, torn = parse(spark, lines, ParseOptions(form, max_depth=limit))

    assert (allowed[OP], allowed[REASON]) == ("upsert", None)
    assert (quoted[OP], quoted[REASON], quoted["name"]) == ("upsert", None, json.loads(text))
    for source, row in zip((lines[1], lines[2], lines[4]), (over, deep, torn), strict=True):
        assert (row[REASON], json.loads(row[RAW])) == ("too_large", short(source))
        assert row[DETAIL] == f"more than {limit} levels of objects and arrays (source.limits.depth)"


@pytest.mark.bad_input(12)
def test_row_of_very_many_members_is_read(spark: SparkSession) -> None:
    """What is not declared costs its reading and nothing else."""
    members = "".join(f',"m{number}":{number}' for number in range(100_000))

    (row,) = parse(spark, [line("jsonl", members)], ParseOptions("jsonl"))

    assert (row[OP], row["id"], row[REASON]) == ("upsert", "k", None)


@pytest.mark.bad_input(12)
@pytest.mark.parametrize("form", ["debezium", "jsonl"])
def test_depth_of_a_hundred_thousand_is_quarantined(spark: SparkSession, form: str) -> None:
    """Reported: nothing that reads it goes down by one call a level, whether it is closed again or not."""
    deep = [line(form, f',"name":{"[" * 100_000}{"]" * 100_000}'), "[" * 100_000, '{"a":' * 100_000]

    found = parse(spark, [*deep, line(form)], ParseOptions(form))

    assert [row[REASON] for row in found] == ["too_large", "too_large", "too_large", None]


@pytest.mark.bad_input(12)
@pytest.mark.parametrize("dtype", ["bigint", "double", "float", "decimal(38,2)", "array<decimal(9,2)>"])
def test_number_of_a_million_digits_is_none(spark: SparkSession, dtype: str) -> None:
    """Reported: Java makes a decimal of it in a minute, and sees in hours that a letter behind it is no digit."""
    table = TableSpec("t", StructType.fromDDL(f"id string, name {dtype}"), ("id",), POSITION_TYPE)
    digits, opened, closed = "7" * 1_000_000, *(("[", "]") if dtype.startswith("array") else ("", ""))
    numbers = [digits, f'"{digits}"', f'"{digits}x"', f'"0.{digits}e"', f'"{"0" * 990}7"']
    lines = [line("jsonl", f',"name":{opened}{number}{closed}') for number in numbers]

    *none, fits = parse(spark, lines, ParseOptions("jsonl"), table)

    assert [row[REASON] for row in none] == ["parse_error", *["type_mismatch"] * 3]
    assert fits["name"] in (7, [7])


@pytest.mark.bad_input(12)
def test_row_with_long_texts_leaves_length_and_hash(spark: SparkSession) -> None:
    """Of Parquet and CSV the declared texts of a row count together."""
    rows = spark.sql(
        "SELECT * FROM VALUES (1, 'a', 'bbb'), (2, 'a', 'bbbb'), (3, null, null) AS t(line, id, name)"
    )
    place = F.struct(F.lit(None).cast("date").alias("date"), F.lit("x").alias("file"), "line").cast(
        POSITION_TYPE
    )
    rows = rows.withColumns({POSITION: place, CONTEXT: F.lit(False)})
    columns = {"id": (F.col("id"), StringType()), "name": (F.col("name").cast("binary"), BinaryType())}

    options = ParseOptions("parquet", max_line=4)
    parts = flat_rows.take_rows_apart(rows, TABLE, options, columns, F.col("name"), op=F.lit("c"))
    fits, large, empty = finish_records(parts, TABLE).orderBy(POSITION).collect()

    assert (fits[OP], fits["name"]) == ("upsert", "bbb")
    assert (large[REASON], json.loads(large[RAW])) == ("too_large", short("bbbb"))
    assert large[DETAIL] == "5 bytes, expected at most 4 (source.limits.line)"
    assert empty[REASON] == "null_key"


@pytest.mark.bad_input(1)
@pytest.mark.bad_input(18)
@pytest.mark.parametrize("form", ["debezium", "jsonl"])
def test_half_of_a_surrogate_pair_is_no_text(spark: SparkSession, form: str) -> None:
    """Java would read each as a question mark, and so make one key of several."""
    halves = [
        r'"\ud800"',
        r'"\uDFFF"',
        r'"\ude00\ud83d"',
        r'"\ud83d\ud83d\ude00"',
        r'"\\\ud83d"',
        r'"\\ud83d\ude00"',
    ]
    whole = {
        r'"\ud83d\ude00"': "😀",
        r'"\\ud83d"': r"\ud83d",
        r'"?"': "?",
        r'"\u0000"': "\0",
        r'"\ud7ff"': "\ud7ff",
    }
    keys = [*halves, *whole]

    found = parse(spark, [line(form, key=key) for key in keys], ParseOptions(form))

    for key, row in zip(keys, found, strict=True):
        if key in whole:
            assert (row[OP], row["id"]) == ("upsert", whole[key])
        else:
            assert (row[REASON], row[RAW]) == ("invalid_utf8", line(form, key=key)), key
            assert "half of a surrogate pair" in row[DETAIL]
