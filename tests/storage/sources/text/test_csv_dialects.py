"""CSV as it is really written: other signs, encodings, numbers and times, with positions and reasons as ever."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import find_files
from lakejoin.storage.sources.files.text_counts import TextCounts
from lakejoin.storage.sources.formats.csv import Csv
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.reader import read_records
from lakejoin.transforms.model.schemas import DETAIL, POSITION, POSITION_TYPE, RAW, REASON
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.csv_dialect import CsvDialect
from lakejoin.transforms.parsing.options import ParseOptions
from packed_text import PACK

COLUMNS = "id string, a string, n double, d date, t timestamp"
NAMES = ("op", "id", "a", "n", "d", "t")
GERMAN = CsvDialect(
    delimiter=";", decimal=",", encoding="windows-1252", nulls=("NULL", "n/a"), date_format="d.M.yyyy",
    timestamp_format="dd.MM.yyyy HH:mm[:ss]",
)  # fmt: skip
NOON = datetime(2013, 1, 9, 11)  # noqa: DTZ001 - as Spark's row holds it, in UTC; noon in Berlin

Case = tuple[str, CsvDialect, bytes, Sequence[Mapping[str, Any]]]
CASES: Sequence[Case] = [
    (
        # https://github.com/Kotlin/dataframe/issues/607 read 68,83 as 6883, databricks/spark-csv/issues/460 not at all;
        # of nulls that are words, databricks/spark-csv/issues/192
        "german.csv", GERMAN,
        'op;id;a;n;d;t\r\nc;1;"Bär; 5 € \r\n""x""";1,5;9.1.2013;09.01.2013 12:00\r\n'
        "c;2;NULL;n/a;NULL;09.01.2013 12:00:00\r\nc;3;x;1.234,5;9.1.2013;\r\nc;4;x;1;2013-01-09;\r\n"
        "c;5;x;1;31.2.2013;\r\nc;6;x;1;1.1.2013\r\n".encode("cp1252"),
        [
            {"id": "1", "a": 'Bär; 5 € \r\n"x"', "n": 1.5, "d": date(2013, 1, 9), "t": NOON},
            {"id": "2", "a": None, "n": None, "d": None, "t": NOON},
            {REASON: "type_mismatch", DETAIL: 'n: "1.234,5" is no double'},
            {REASON: "type_mismatch", DETAIL: 'd: "2013-01-09" is no date'},
            {REASON: "type_mismatch", DETAIL: 'd: "31.2.2013" is no date'},
            {REASON: "parse_error", DETAIL: "expected 6 fields as in the header"},
        ],
    ),
    (
        "tabs.tsv", CsvDialect(delimiter="\t", quote="", names=NAMES),
        '\ufeffc\t1\tsays "hi\t1.5\t2013-01-09\t\n\nc\t2\t"\t\t\t\nc\t3\n'.encode(),
        [
            {"id": "1", "a": 'says "hi', "n": 1.5, "d": date(2013, 1, 9)},
            {"id": "2", "a": '"'},
            {REASON: "parse_error", DETAIL: "expected 6 fields as in `names`"},
        ],
    ),
    (
        # a quote behind a backslash is data, as MySQL writes it: https://github.com/aotimme/gocsv/issues/46
        "mysql.csv", CsvDialect(escape="\\", quote="'", nulls=("\\N",)),
        (b"op,id,a,n,d,t\nc,'1','it\\'s, \n a \\\\','1e3',\\N,\\N\nc,'2','x\\\\\\'',\\N,\\N,'2013-01-09T11:00:00Z'\n"
         b"c,'3','a'b'c',1,\\N,\\N\nc,4,'open\n"),
        [
            {"id": "1", "a": "it's, \n a \\", "n": 1000.0, "d": None, "t": None},
            {"id": "2", "a": "x\\'", "n": None, "t": NOON},
            {REASON: "parse_error", DETAIL: "a field begins with a quote, in a file where quotes within"},
            {REASON: "parse_error", DETAIL: "a quote is open to the end of the file"},
        ],
    ),
    (
        # https://github.com/databricks/spark-csv/issues/145, and 448 with line ends within quotes
        "wide.csv", CsvDialect(encoding="utf-16", delimiter="|", timestamp_format="yyyy/MM/dd hh:mm a XXX"),
        'op|id|a|n|d|t\nc|1|"日本 \n 😀"|1|2013-01-09|2013/01/09 12:00 PM +01:00\nd|2||||\n'.encode("utf-16"),
        [{"id": "1", "a": "日本 \n 😀", "n": 1.0, "d": date(2013, 1, 9), "t": NOON}, {"id": "2", REASON: None}],
    ),
    (
        "latin.csv.zst", CsvDialect(encoding="latin-1", names=("id", "op", "a"), delimiter=" "),
        PACK[".zst"]("1 c für\n2 c \"\"\n3 c \n".encode("latin-1")),
        [{"id": "1", "a": "für"}, {"id": "2", "a": ""}, {"id": "3", "a": None}],
    ),
]  # fmt: skip


@pytest.mark.spark
def test_each_dialect_is_read_as_it_is_meant(spark: SparkSession, tmp_path: Path) -> None:
    """Values, positions and reasons, and the lines that are read on from when a file grows."""
    for name, dialect, content, expected in CASES:
        (tmp_path / name).write_bytes(content)
        form = Csv(dialect)
        (found,) = find_files(str(tmp_path / name), settle=timedelta(0), now=datetime.now(UTC))
        measured = form.measure(found, None, spark)
        options = ParseOptions("csv", dialect=dialect, timezone="Europe/Berlin")
        spec = TableSpec("t", StructType.fromDDL(COLUMNS), ("id",), POSITION_TYPE, None)

        records = read_records(spark, spec, options, [PlannedFile.behind(0, measured, "t")])
        rows = sorted((row.asDict() for row in records.collect()), key=lambda row: row[POSITION]["line"])

        assert [row[POSITION]["line"] for row in rows] == list(range(1, len(expected) + 1)), name
        assert measured.lines == len(expected)
        for row, wanted in zip(rows, expected, strict=True):
            if row[REASON]:
                assert row[RAW]
                assert row[DETAIL].startswith(wanted.get(DETAIL, "unexpected")), (name, row)
            assert {key: row[key] for key in wanted if key != DETAIL} == {
                key: value for key, value in wanted.items() if key != DETAIL
            }, name
        assert form.columns_of(found, options.row_op)[:2] in (["op", "id"], ["id", "op"])


@pytest.mark.parametrize(
    ("dialect", "content", "message"),
    [
        (CsvDialect(), "id\n1\n".encode("utf-16"), "is UTF-16; write `csv: {encoding: utf-16}`"),
        (CsvDialect(encoding="utf-16"), "id\n1\n".encode("utf-16-le"), "begins with no byte order mark"),
        (CsvDialect(encoding="utf-16"), "id\n1\n".encode("utf-16")[:-1], "is no UTF-16"),
    ],
)
def test_encoding_that_is_another_is_refused(
    tmp_path: Path, dialect: CsvDialect, content: bytes, message: str
) -> None:
    """Before Spark reads signs that nobody wrote."""
    (tmp_path / "a.csv").write_bytes(content)
    (found,) = find_files(str(tmp_path / "a.csv"), settle=timedelta(0), now=datetime.now(UTC))

    with pytest.raises(SourceBroken, match=message):
        Csv(dialect).scan(found, None, FileLimits())


def test_quotes_behind_escapes_open_and_close_nothing() -> None:
    """Wherever the chunks of a file end."""
    text = b"a,'it\\'s \n \\\\',b\n\\\n'x\\\\\\'',1\n"
    for size in range(1, len(text) + 1):
        counts = TextCounts(quote="'", escape="\\")
        for start in range(0, len(text), size):
            counts.feed(text[start : start + size])

        assert (counts.quotes, counts.newlines, counts.size) == (4, 4, len(text)), size


def test_dialect_says_which_record_stands_where() -> None:
    """What a lake was begun with, as far as it is no default: other options may change."""
    assert CsvDialect().shape == CsvDialect(decimal=",", nulls=("",), date_format="d.M.y").shape == {}
    assert CsvDialect(names=("id",), delimiter=";").shape == {"delimiter": ";", "header": False}
