"""Files of every format become records with the right positions, whole or in parts, alone or many at once."""

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from lakejoin.storage.errors import SourceBroken, SourceChanged, SourceNotFound
from lakejoin.storage.sources.files.source_files import MeasuredFile, find_files
from lakejoin.storage.sources.formats.file_format import FileFormat
from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.reader import read_records
from lakejoin.storage.sources.text.csv_files import csv_rows
from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DERIVED,
    DETAIL,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions
from packed_text import PACK

pytestmark = pytest.mark.spark

TINY = Path(__file__).parents[2] / "data/flights-cdc-tiny"
NOON = datetime(2013, 1, 1, 12)  # noqa: DTZ001 - as Spark's row holds it, in UTC
COLUMNS = {
    "flights": "flight_id bigint, carrier string, flight int, tailnum string, origin string, dest string, "
    "sched_dep timestamp, dep_delay int, arr_delay int, status string, fare_total decimal(12,2), "
    "remark string, event_time timestamp, updated_at timestamp",
    "planes": "tailnum string, year int, type string, manufacturer string, model string, engines int, "
    "seats int, book_value decimal(12,2), nickname string, event_time timestamp, updated_at timestamp, "
    "engine string",
    "weather": "station string, observed_at timestamp, temp double, wind_speed double, wind_gust double, "
    "precip decimal(12,2), visib double, pressure double, event_time timestamp, updated_at timestamp",
}


def table(columns: str, key: str = "id", sequence: str = "", event_time: str | None = None) -> TableSpec:
    """A table with columns and sequence as one declares them in SQL."""
    order = StructType.fromDDL(sequence) if sequence else POSITION_TYPE
    return TableSpec("t", StructType.fromDDL(columns), (key,), order, event_time)


def measure(spark: SparkSession, path: Path | str, form: str) -> list[MeasuredFile]:
    """The files of a path as a plan would hold them."""
    found = find_files(str(path), settle=timedelta(0), now=datetime.now(UTC))
    files = FORMATS[form]
    assert isinstance(files, FileFormat)
    return [files.measure(file, None, spark) for file in found]


def ranges(files: Sequence[MeasuredFile], start: int = 0, end: int | None = None) -> list[PlannedFile]:
    """All lines of files, or the same part of each."""
    parts = [PlannedFile.behind(start, file, "t") for file in files]
    return [part if end is None else replace(part, to_line=end) for part in parts]


def read(
    spark: SparkSession, spec: TableSpec, form: str, parts: Sequence[PlannedFile], **options: Any
) -> list[Row]:
    """Records in the order of their positions, the derived ones last of a line."""
    records = read_records(spark, spec, ParseOptions(form, **options), parts)
    return sorted(records.collect(), key=lambda row: (tuple(row[POSITION])[1:], row[DERIVED]))


def lines_of(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """File and line of each record."""
    return [(row[POSITION]["file"], row[POSITION]["line"]) for row in rows]


@pytest.mark.parametrize(
    ("topic", "key", "counts"),
    [
        ("flights", "flight_id", {"upsert": 33 + 16 + 45, "delete": 6, "tombstone": 6}),
        ("planes", "tailnum", {"upsert": 10 + 6 + 21, "delete": 6, "tombstone": 6}),
        ("weather", "station", {"upsert": 1 + 3 + 22, "delete": 1, "tombstone": 1}),
    ],
)
def test_recorded_events_are_read_whole(
    spark: SparkSession, topic: str, key: str, counts: dict[str, int]
) -> None:
    """Every line that Debezium wrote becomes a record with all values, as many of each kind as recorded."""
    spec = table(COLUMNS[topic], key, "lsn bigint, tx_id bigint, ts_ms bigint, offset bigint", "event_time")
    files = measure(spark, f"{TINY}/{topic}/{{date}}.jsonl", "debezium")

    rows = read(spark, spec, "debezium", ranges(files))

    assert Counter(row[OP] for row in rows) == counts
    assert {row[REASON] for row in rows} == {None}
    texts = [line for file in files for line in Path(file.path).read_text().splitlines()]
    assert [row[POSITION]["date"] for row in rows] == [file.date for file in files for _ in range(file.lines)]
    for text, row in zip(texts, rows, strict=True):
        assert_holds(row, json.loads(text), spec)


def assert_holds(row: Row, event: dict[str, Any], spec: TableSpec) -> None:
    """The record says what the event, read by Python's own JSON parser, says."""
    value = event["value"]
    for name in spec.key:
        assert row[name] == event["key"][name]
    if value is None:
        assert (row[OP], row[SEQUENCE]) == ("tombstone", None)
        return
    source = value["source"]
    assert row[SEQUENCE] == (source["lsn"], source["txId"], value["ts_ms"], event["offset"])
    for field in spec.columns:
        if value["after"] is not None:
            assert row[field.name] == python_value(value["after"].get(field.name), field.dataType.typeName())


def python_value(value: Any, kind: str) -> Any:
    """What a value of Debezium's JSON is in a row of Spark."""
    if value is None:
        return None
    if kind == "timestamp" and isinstance(value, int):
        return datetime(1970, 1, 1) + timedelta(microseconds=value)  # noqa: DTZ001
    if kind == "timestamp":
        return datetime.fromisoformat(value).replace(tzinfo=None)
    return Decimal(value) if kind == "decimal" else value


def test_lines_are_numbered_in_every_kind_of_file(spark: SparkSession, tmp_path: Path) -> None:
    """Plain or gzip, with blank lines, carriage returns or no last line end: all at once or alone."""
    texts = {
        "a b%20#ä.jsonl": "".join(f'{{"op":"c","id":{n}}}\r\n' for n in range(1, 8)).encode(),
        "b.jsonl": b'{"op":"c","id":1}\n\n{"op":"c","id":3}',
        "c[1]{2}.jsonl": b"\n",
        "d.jsonl": b"",
        "day=1/e,f.jsonl": b'\xef\xbb\xbf{"op":"c","id":1}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    members = [gzip.compress(f'{{"op":"c","id":{n}}}\n'.encode()) for n in range(1, 2001)]
    (tmp_path / "z.jsonl.gz").write_bytes(b"".join(members))
    files = [file for file in measure(spark, tmp_path, "jsonl") if file.lines]
    spec = table("id bigint")

    together = read(spark, spec, "jsonl", ranges(files))

    assert lines_of(together) == [(file.name, line) for file in files for line in range(1, file.lines + 1)]
    assert all(row["id"] == row[POSITION]["line"] for row in together if row[OP] != "ignored")
    assert lines_of([row for row in together if row[OP] == "ignored"]) == [
        ("b.jsonl", 2),
        ("c[1]{2}.jsonl", 1),
    ]
    alone = [row for file in files for row in read(spark, spec, "jsonl", ranges([file]))]
    assert alone == together


def test_large_file_is_numbered_across_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Several tasks share a file that is not compressed, or with bzip2, and numbers go on from one to the next.

    What Spark reads with codecs of its own since https://github.com/apache/spark/pull/51182 is read by one task each.
    """
    path = tmp_path / "large.jsonl"
    path.write_text("".join(f'{{"op":"c","id":{n},"x":"{"x" * (n % 90)}"}}\n' for n in range(1, 20_001)))
    small = {"spark.sql.files.maxPartitionBytes": "128k", "spark.sql.files.openCostInBytes": "4096b"}
    before = {name: spark.conf.get(name) for name in small}
    files = measure(spark, path, "jsonl")
    (tmp_path / "packed").mkdir()
    half = path.read_bytes().rindex(b"\n", 0, 500_000)
    for ending, pack in {**PACK, ".BZ2": PACK[".bz2"], ".gzip": PACK[".gz"], ".zstd": PACK[".zst"]}.items():
        text = path.read_bytes()
        (tmp_path / "packed" / f"x{ending}").write_bytes(pack(text[:half]) + pack(text[half:]))
    others = measure(spark, tmp_path / "packed", "jsonl")
    try:
        for name, size in small.items():
            spark.conf.set(name, size)
        records = read_records(spark, table("id bigint"), ParseOptions("jsonl"), ranges(files))
        assert records.rdd.getNumPartitions() > 4
        packed = read_records(spark, table("id bigint"), ParseOptions("jsonl"), ranges(others))
        numbered = packed.where(f"id = {POSITION}.line AND {REASON} IS NULL").groupBy(f"{POSITION}.file")
        assert {row["file"]: row["count"] for row in numbered.count().collect()} == {
            file.name: 20_000 for file in others
        }
        assert records.where(f"id = {POSITION}.line AND {REASON} IS NULL").count() == 20_000
        part = read(spark, table("id bigint"), "jsonl", ranges(files, 12_345, 12_347))
        assert [(row["id"], row[CONTEXT]) for row in part] == [
            (12_345, True),
            (12_346, False),
            (12_347, False),
        ]
    finally:
        for name, size in before.items():
            spark.conf.set(name, size or "")


def test_range_takes_the_line_before_it_as_context(spark: SparkSession, tmp_path: Path) -> None:
    """A tombstone at the start of a range belongs to the delete before it; nothing else is read."""
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("".join(f'{{"op":"c","id":{n}}}\n' for n in range(1, 7)))
    files = measure(spark, tmp_path, "jsonl")

    rows = read(spark, table("id bigint"), "jsonl", [*ranges(files[:1], 2, 4), *ranges(files[1:], 0, 1)])

    assert [(row[POSITION]["file"], row["id"], row[CONTEXT]) for row in rows] == [
        ("a.jsonl", 2, True),
        ("a.jsonl", 3, False),
        ("a.jsonl", 4, False),
        ("b.jsonl", 1, False),
    ]
    assert read(spark, table("id bigint"), "jsonl", []) == []


@pytest.mark.bad_input(44)
def test_missing_and_shortened_files_are_errors(spark: SparkSession, tmp_path: Path) -> None:
    """A planned line that is not there any more must not be missed in silence."""
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"op":"c","id":1}\n' * 3)
    planned = ranges(measure(spark, tmp_path, "jsonl"))
    (tmp_path / "a.jsonl").write_text('{"op":"c","id":1}\n')

    with pytest.raises(SourceChanged, match=r"a.jsonl: has 1 lines now, had 3"):
        read(spark, table("id bigint"), "jsonl", planned)
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(SourceNotFound, match=r"a.jsonl: not found"):
        read(spark, table("id bigint"), "jsonl", planned)


def test_csv_follows_rfc_4180(spark: SparkSession, tmp_path: Path) -> None:
    r"""Quotes and line ends within fields; null is an empty field or `\N`, and `""` is a text."""
    text = (
        "\ufeffid,op,name,extra,at\r\n"
        '1,c,"a,""b""\r\nc",x,1357041600000000\r\n'
        "2,u,,x,\r\n"
        "\r\n"
        '3,r,"",x,\r\n'
        "4,c,\\N,x,\r\n"
        "5,d,gone,x,\r\n"
        "6,c, ä\\n ,x,2013-01-01T12:00:00Z"
    )
    (tmp_path / "a.csv").write_bytes(text.encode())
    files = measure(spark, tmp_path / "a.csv", "csv")

    rows = read(spark, table("id bigint, name string, at timestamp, absent int"), "csv", ranges(files))

    assert files[0].lines == 6
    assert [(row["id"], row["name"], row["at"], row[OP]) for row in rows] == [
        (1, 'a,"b"\r\nc', NOON, "upsert"),
        (2, None, None, "upsert"),
        (3, "", None, "upsert"),
        (4, None, None, "upsert"),
        (5, None, None, "delete"),
        (6, " ä\\n ", NOON, "upsert"),
    ]
    assert lines_of(rows) == [("a.csv", line) for line in range(1, 7)]
    assert {row["absent"] for row in rows} == {None}


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf"])
def test_csv_without_a_header_has_no_records(content: bytes, spark: SparkSession, tmp_path: Path) -> None:
    """What an export leaves that found nothing, beside one that did, and alone."""
    (tmp_path / "a.csv").write_bytes(content)
    (nothing,) = measure(spark, tmp_path / "a.csv", "csv")
    (tmp_path / "b.csv").write_bytes(b"op,id\nc,1\n")
    both = measure(spark, tmp_path, "csv")
    assert (nothing.lines, [file.lines for file in both]) == (0, [0, 1])
    for files, expected in (([nothing], 0), (both, 1)):
        assert len(read(spark, table("id bigint"), "csv", ranges(files))) == expected
        assert csv_rows(spark, ParseOptions("csv"), ranges(files)).count() == expected


def test_csv_lines_may_end_in_a_line_feed_alone(spark: SparkSession, tmp_path: Path) -> None:
    """The header's line end is that of all records; another within quotes is data."""
    (tmp_path / "a.csv").write_bytes(b'op,id,name\nc,1,"a\r\nb\nc"\n\nc,2,"d\r"\nc,3,')

    rows = read(
        spark, table("id bigint, name string"), "csv", ranges(measure(spark, tmp_path / "a.csv", "csv"))
    )

    assert [(row["id"], row["name"]) for row in rows] == [(1, "a\r\nb\nc"), (2, "d\r"), (3, None)]


@pytest.mark.bad_input(1)
@pytest.mark.bad_input(4)
def test_bad_csv_records_keep_their_text(spark: SparkSession, tmp_path: Path) -> None:
    """A record that is no row is quarantined as text, another as JSON of its fields."""
    content = b'id,op,name,name\n1,c,a\n2,c,a,b,c\n3,c,"\xff",b\nx,c,a,\n4,,a,b\n5,c,a,"b\nc\n'
    (tmp_path / "a.csv").write_bytes(content)
    files = measure(spark, tmp_path / "a.csv", "csv")

    rows = read(spark, table("id bigint"), "csv", ranges(files))

    assert [(row[REASON], row[DETAIL], row[RAW]) for row in rows] == [
        ("parse_error", "expected 4 fields as in the header", "1,c,a"),
        ("parse_error", "expected 4 fields as in the header", "2,c,a,b,c"),
        (None, None, None),
        ("type_mismatch", 'id: "x" is no bigint', '{"id":"x","op":"c","name":"a","name":null}'),
        (
            "unknown_op",
            "no column `op`, or null in it; expected c, r, u or d",
            '{"id":"4","op":null,"name":"a","name":"b"}',
        ),
        (
            "parse_error",
            "a quote is open to the end of the file",
            '{"id":"5","op":"c","name":"a","name":"b\\nc\\n"}',
        ),
    ]
    with pytest.raises(SourceBroken, match="the header has 'name' twice"):
        read(spark, table("id bigint, name string"), "csv", ranges(files))
    (tmp_path / "b.csv").write_bytes(b"id,op,name\n" + content.splitlines()[3] + b"\n")
    bad = read(
        spark, table("id bigint, name string"), "csv", ranges(measure(spark, tmp_path / "b.csv", "csv"))
    )
    assert [(row[REASON], row[RAW]) for row in bad] == [("invalid_utf8", '3,c,"�",b')]


OPEN_ENDED = {
    '1,c,"a\n2,c,b\n': True, '1,c,"a\n2,c,""\n': True, '1,c,"a"\n2,c,"b""': True, '1,c,"': True,
    '1,c,"a': True, '1,c,"a\n\n"2,c,"': True,
    # quotes within a field that has none around it mean nothing
    '1,c,a"\n2,c,b\n': False, '1,c,5" and 6"\n2,c,7"': False, '"1",c,"a\nb"\n2,c,d"': False,
    '1,c,"a""b"\n2,c,x"y': False,
}  # fmt: skip
"""Texts of CSV files, and whether a quote is open to their end."""


@pytest.mark.bad_input(1)
def test_record_that_an_open_quote_ran_through_to_the_end_is_bad(spark: SparkSession, tmp_path: Path) -> None:
    """It swallowed the records behind it, and would be taken for a good one. Spark's reader sees the same end."""
    for number, text in enumerate(OPEN_ENDED):
        (tmp_path / f"{number}.csv").write_text("id,op,name\n" + text)
        (tmp_path / f"{number}-longer.csv").write_text("id,op,name\n" + text + "\n9,c,z")
    rows = read(spark, table("id string, name string"), "csv", ranges(measure(spark, tmp_path, "csv")))

    for number, (text, is_open) in enumerate(OPEN_ENDED.items()):
        found, longer = (
            [row for row in rows if row[POSITION]["file"] == f"{number}{end}.csv"] for end in ("", "-longer")
        )
        assert [row[REASON] for row in found[:-1]] == [None] * (len(found) - 1), text
        assert (found[-1][REASON], found[-1][DETAIL]) == (
            ("parse_error", "a quote is open to the end of the file") if is_open else (None, None)
        ), text
        assert len(longer) == len(found) + (not is_open), text


@pytest.mark.bad_input(1)
def test_csv_field_that_swallowed_others_is_bad(spark: SparkSession, tmp_path: Path) -> None:
    """A stray quote, or rows with other line ends than the header, would pass as text with something in it."""
    texts = {
        "good.csv": 'id,op,name\n1,c,"""a"""\n2,c,b"\n',
        "open.csv": 'id,op,name\n1,c,"a\n2,c,"b"\n3,c,z\n',
        "appended.csv": 'id,op,name\n1,c,"a\r\nb"\n2,c,b\n3,c,c\r\n4,c,d\n',
        "returns.csv": 'id,op,name\n\n1,c,a\r\n2,c,"b"\r\n3,c,\r\n4,c,d\n',
        "stray.csv": 'id,name,op\n1,"24" tv,c\n2,"b" ,c\n3,24" tv,c\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    stray = "a field begins with a quote, in a file where quotes within fields are not all doubled"
    returned = "ends with a carriage return, which the header does not; expected the same line ends"

    rows = read(spark, table("id int, name string"), "csv", ranges(measure(spark, tmp_path, "csv")))

    assert {row[REASON] for row in rows} == {None, "parse_error"}
    assert [(row["id"], row["name"], row[DETAIL], row[RAW]) for row in rows] == [
        (1, "a\r\nb", None, None),
        (2, "b", None, None),
        (3, "c\r", returned, r'{"id":"3","op":"c","name":"c\r"}'),
        (4, "d", None, None),
        (1, '"a"', None, None),
        (2, 'b"', None, None),
        (1, '"a\n2,c,"b"', stray, r'{"id":"1","op":"c","name":"\"a\n2,c,\"b\""}'),
        (3, "z", None, None),
        (1, "a\r", returned, r'{"id":"1","op":"c","name":"a\r"}'),
        (2, "b", None, None),
        (3, "\r", returned, r'{"id":"3","op":"c","name":"\r"}'),
        (4, "d", None, None),
        (1, '"24" tv', stray, r'{"id":"1","name":"\"24\" tv","op":"c"}'),
        (2, "b", None, None),
        (3, '24" tv', None, None),
    ]


@pytest.mark.bad_input(1)
def test_invalid_bytes_of_a_csv_field_are_no_text(spark: SparkSession, tmp_path: Path) -> None:
    """A replacement character that is really there is data; one that stands for other bytes is not."""
    (tmp_path / "a.csv").write_bytes("id,op,name\n1,c,�\n".encode() + b"2,c,\xff\n")

    good, bad = read(
        spark, table("id bigint, name string"), "csv", ranges(measure(spark, tmp_path / "a.csv", "csv"))
    )

    assert (good["name"], good[REASON]) == ("�", None)
    assert (bad[REASON], bad[RAW]) == ("invalid_utf8", '{"id":"2","op":"c","name":"�"}')


@pytest.mark.bad_input(14)
def test_csv_files_may_differ_in_their_headers(spark: SparkSession, tmp_path: Path) -> None:
    """Columns go by name; each file has its own order, and may lack `op`, which is said."""
    (tmp_path / "a.csv").write_text("op,id,name\nc,1,a\nc,2,b\n")
    (tmp_path / "b.csv").write_text("name,id,op\nc,3,u\n")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"op,id,name\nc,4,d\n"))
    (tmp_path / "c2.csv.zst").write_bytes(PACK[".zst"](b"op,id,name\nc,40,d\n"))
    (tmp_path / "d.csv").write_text("id\n5\n")
    (tmp_path / "e.csv").write_text("id,op\n")
    (tmp_path / "f.csv").write_text("")
    files = [file for file in measure(spark, tmp_path, "csv") if file.lines]

    rows = read(spark, table("id bigint, name string"), "csv", ranges(files))

    assert [(row["id"], row["name"], row[OP]) for row in rows] == [
        (1, "a", "upsert"),
        (2, "b", "upsert"),
        (3, "c", "upsert"),
        (4, "d", "upsert"),
        (40, "d", "upsert"),
        (5, None, None),
    ]
    assert rows[5][REASON] == "unknown_op"
    names = ["a.csv", "a.csv", "b.csv", "c.csv.gz", "c2.csv.zst", "d.csv"]
    assert lines_of(rows) == list(zip(names, [1, 2, 1, 1, 1, 1], strict=True))


def test_csv_without_a_header_in_utf8_is_broken(spark: SparkSession, tmp_path: Path) -> None:
    """Without names there is nothing to match, nor without line ends."""
    (tmp_path / "a.csv").write_bytes(b"\xff,op\n1,c\n")
    (tmp_path / "b.csv").write_bytes(b"id,op\r1,c\r2,c\r")

    with pytest.raises(SourceBroken, match="expected a header in UTF-8"):
        measure(spark, tmp_path / "a.csv", "csv")
    with pytest.raises(
        SourceBroken, match=r"b.csv: .* a carriage return alone at its end; convert the line ends"
    ):
        measure(spark, tmp_path / "b.csv", "csv")


@pytest.mark.bad_input(12)
def test_csv_record_of_very_many_fields_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Spark ends at it, and so does a run, before it plans anything."""
    (tmp_path / "a.csv").write_text("id,op\n1,c\n" + "," * 30_000 + "\n2,c\n")

    with pytest.raises(SourceBroken, match=r"a.csv: has a record with more than 20,480 fields"):
        measure(spark, tmp_path / "a.csv", "csv")


@pytest.mark.bad_input(14)
@pytest.mark.bad_input(16)
def test_parquet_columns_are_matched_by_name_and_type(spark: SparkSession, tmp_path: Path) -> None:
    """Files with other types, other columns or nanoseconds give the same records, if nothing is lost."""
    at = datetime(2013, 1, 1, 12, tzinfo=UTC)
    days = [
        {"id": pa.array([1, 2], pa.int64()), "at": pa.array([at, None], pa.timestamp("us", "UTC"))},
        {
            "at": pa.array([at], pa.timestamp("ns", "UTC")),
            "id": pa.array([3], pa.uint32()),
            "ID2": pa.array([0]),
        },
        {"id": pa.array([4.0]), "at": pa.array(["2013-01-01T12:00:00Z"]).dictionary_encode()},
        {"id": pa.array([2**64 - 1], pa.uint64()), "x": pa.array([b"\xff"])},
        {"id": pa.array([6], pa.int8()), "at": pa.array([at.replace(tzinfo=None)], pa.timestamp("ns"))},
    ]
    for n, columns in enumerate(days, start=1):
        rows = len(next(iter(columns.values())))
        pq.write_table(pa.table({**columns, "op": ["c"] * rows}), tmp_path / f"2013-01-0{n}.parquet")
    pq.write_table(
        pa.table({"id": pa.array([7]), "at": pa.array([at], pa.timestamp("us", "UTC")), "op": ["d"]}),
        tmp_path / "2013-01-06.parquet",
        use_deprecated_int96_timestamps=True,
    )
    files = measure(spark, f"{tmp_path}/{{date}}.parquet", "parquet")

    found = read(spark, table("id bigint, at timestamp", "id", "", "at"), "parquet", ranges(files))

    assert [(row["id"], row["at"], row[OP], row[REASON]) for row in found] == [
        (1, NOON, "upsert", None),
        (2, None, "upsert", None),
        (3, NOON, "upsert", None),
        (4, NOON, "upsert", None),
        (None, None, None, "type_mismatch"),
        (6, None, None, "bad_timestamp"),
        (7, None, "delete", None),
    ]
    assert found[4][RAW] == '{"id":18446744073709551615,"op":"c"}'
    assert [(row[POSITION]["date"].day, row[POSITION]["line"]) for row in found] == [
        (1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)
    ]  # fmt: skip
    local = read(spark, table("id bigint, at timestamp"), "parquet", ranges(files[4:5]), timezone="+01:00")
    assert [row["at"] for row in local] == [NOON.replace(hour=11)]


def test_part_of_a_parquet_file_is_read_by_row(spark: SparkSession, tmp_path: Path) -> None:
    """Rows have the numbers that the file gives them, over all its row groups."""
    ids = pa.table({"id": list(range(1, 1001)), "op": ["u"] * 1000})
    pq.write_table(ids, tmp_path / "a.parquet", row_group_size=100)
    files = measure(spark, tmp_path / "a.parquet", "parquet")

    rows = read(spark, table("id bigint"), "parquet", ranges(files, 499, 501))

    assert [(row["id"], row[CONTEXT]) for row in rows] == [(499, True), (500, False), (501, False)]
    assert [row[POSITION] for row in rows[1:]] == [Row(None, "a.parquet", 500), Row(None, "a.parquet", 501)]


@pytest.mark.bad_input(17)
def test_parquet_that_spark_cannot_read_is_broken(spark: SparkSession, tmp_path: Path) -> None:
    """The message names the column; a column that is not declared may be of any type."""
    pq.write_table(
        pa.table({"id": [1], "op": ["c"], "t": pa.array([1], pa.time64("us"))}), tmp_path / "a.parquet"
    )
    pq.write_table(pa.table({"id": [1], "Id": [2], "op": ["c"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"other": [1]}), tmp_path / "c.parquet")
    a, b, c = (ranges([file]) for file in measure(spark, tmp_path, "parquet"))

    assert read(spark, table("id bigint"), "parquet", a)[0]["id"] == 1
    with pytest.raises(SourceBroken, match=r"column t is of type time64\[us\]"):
        read(spark, table("id bigint, t bigint"), "parquet", a)
    with pytest.raises(SourceBroken, match="cannot tell the columns"):
        read(spark, table("id bigint"), "parquet", b)
    assert [(row[REASON], row[RAW]) for row in read(spark, table("id bigint"), "parquet", c)] == [
        ("unknown_op", "{}")
    ]


def test_dates_and_names_stand_in_the_position(spark: SparkSession, tmp_path: Path) -> None:
    """Position orders by day first, then by name, then by line; it does not depend on where the files lie."""
    for name in ("b/2013-01-01.jsonl", "a/2013-01-02.jsonl"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text('{"op":"c","id":1}\n')
    files = measure(spark, f"{tmp_path}/*/{{date}}.jsonl", "jsonl")

    records = read_records(spark, table("id bigint"), ParseOptions("jsonl"), ranges(files))

    assert [row[0] for row in records.orderBy(POSITION).select(POSITION).collect()] == [
        Row(date=date(2013, 1, 1), file="b/2013-01-01.jsonl", line=1),
        Row(date=date(2013, 1, 2), file="a/2013-01-02.jsonl", line=1),
    ]
