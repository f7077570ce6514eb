"""Mutated source files: no crash, every line accounted for once, every refused one kept by its text or its hash."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from fuzz.mutations import flat, mutated, recorded, seeds
from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.storage.sources.files.source_files import find_files
from lakejoin.storage.sources.formats.file_format import FileFormat
from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.reader import read_records
from lakejoin.transforms.model.schemas import DERIVED, OP, POSITION, POSITION_TYPE, RAW, REASON
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.bad_input(1)]

LINES = 3000
_TYPES = {
    "flight_id": "bigint", "carrier": "string", "dep_delay": "int", "fare_total": "decimal(12,2)", "remark": "string",
    "sched_dep": "timestamp", "event_time": "timestamp", "tags": "array<string>",
}  # fmt: skip
COLUMNS = StructType([StructField(name, parse_type(text)) for name, text in _TYPES.items()])
TABLE = TableSpec("flights", COLUMNS, ("flight_id",), POSITION_TYPE, "event_time")
BY_LSN = TableSpec(
    "flights", COLUMNS, ("flight_id",), StructType([StructField("lsn", LongType())]), "event_time"
)


def read(spark: SparkSession, path: Path, table: TableSpec, form: str) -> tuple[int, list[Row]]:
    """How many records a file has, and the records that are not derived."""
    (found,) = find_files(str(path), settle=timedelta(0), now=datetime.now(UTC))
    files = FORMATS[form]
    assert isinstance(files, FileFormat)
    file = files.measure(found, None, spark)
    part = replace(PlannedFile.behind(0, file, "flights"), complete=True, stray_quotes=False, returns=False)
    records = read_records(spark, table, ParseOptions(form, max_line=50_000), [part])
    own = [row for row in records.collect() if not row[DERIVED]]
    return file.lines, sorted(own, key=lambda row: row[POSITION]["line"])


def check_counts(count: int, rows: Sequence[Row]) -> None:
    """Each record once, and either it does something or it says why not."""
    assert [row[POSITION]["line"] for row in rows] == list(range(1, count + 1))
    assert [row for row in rows if (row[REASON] is None) == (row[OP] is None)] == []
    verdicts = Counter(row[REASON] or row[OP] for row in rows)
    assert verdicts["upsert"] > count / 20, verdicts  # else the changes were too many to tell anything
    assert len(verdicts) > 5, verdicts


def strict(line: bytes) -> Any:
    """The line as Python's own parser reads it. Raises `ValueError` for what is no JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(line.decode(), parse_constant=refuse, parse_int=str, parse_float=str)


def check_line(text: bytes, row: Row, form: str, where: str) -> None:
    """A line is taken if another parser reads it; else its record has its whole text, or its hash."""
    if row[REASON] == "too_large":
        assert json.loads(row[RAW]) == {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        return
    if row[REASON] is not None:
        assert row[RAW] == text.decode(errors="replace"), where
        return
    if text.strip() in {b"", b"null"}:
        assert row[OP] == "ignored", where
        return
    try:
        event = strict(text)
    except ValueError as error:
        raise AssertionError(f"{where} was taken, but is no JSON: {error}") from error
    except RecursionError:
        return  # deeper than Python reads
    if form == "jsonl":
        assert int(event["flight_id"]) == row["flight_id"], where


@pytest.mark.parametrize(
    ("form", "table", "lines"),
    [
        ("debezium", TABLE, recorded),
        pytest.param("debezium", BY_LSN, recorded, marks=pytest.mark.slow),
        ("jsonl", TABLE, flat),
    ],
    ids=["debezium", "debezium by lsn", "jsonl"],
)
def test_every_mutated_line_is_taken_or_kept(
    spark: SparkSession, tmp_path: Path, form: str, table: TableSpec, lines: Callable[[], list[bytes]]
) -> None:
    """What is taken is JSON to another parser, too, with the same key; what is not has its whole text, or its hash."""
    for seed in seeds():
        texts = mutated(lines(), LINES, random.Random(seed))
        path = tmp_path / f"{seed}.jsonl"
        path.write_bytes(b"".join(text + b"\n" for text in texts))

        count, rows = read(spark, path, table, form)

        assert count == LINES
        check_counts(count, rows)
        for text, row in zip(texts, rows, strict=True):
            where = f"seed {seed}, line {row[POSITION]['line']}: {text[:2000]!r}"
            check_line(text, row, form, where)
        path.unlink()


def test_every_record_of_a_mutated_csv_file_is_counted_and_read(spark: SparkSession, tmp_path: Path) -> None:
    """Quotes that open anywhere, other separators and stray line ends: counting and reading agree."""
    names = ["op", *COLUMNS.names]
    rows = [json.loads(line) for line in flat()]
    texts = [",".join("" if row.get(n) is None else str(row[n]) for n in names).encode() for row in rows]
    for seed in seeds():
        chance = random.Random(seed)
        lines = [
            chance.choice(texts) if chance.random() < 0.7 else line for line in mutated(texts, LINES, chance)
        ]
        path = tmp_path / f"{seed}.csv"
        path.write_bytes(",".join(names).encode() + b"\n" + b"\n".join(lines) + b"\n")

        count, found = read(spark, path, TABLE, "csv")

        assert count > LINES / 100, f"seed {seed}"
        assert [row[POSITION]["line"] for row in found] == list(range(1, count + 1)), f"seed {seed}"
        assert [row for row in found if (row[REASON] is None) == (row[OP] is None)] == [], f"seed {seed}"
        assert [row for row in found if row[REASON] is not None and not row[RAW]] == [], f"seed {seed}"
        path.unlink()
