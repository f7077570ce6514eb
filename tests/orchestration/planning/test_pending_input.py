"""Which files a run reads, and what happens to one that changes before its batch is finished. No Spark here."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.planning.backlog import backlog
from lakejoin.orchestration.planning.pending_input import (
    BatchBy,
    Group,
    check_read,
    check_unchanged,
    cut,
    pending_groups,
)
from lakejoin.orchestration.planning.plan_builder import code_version
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.errors import LakejoinError, SourceChanged, SourceNotFound
from lakejoin.storage.lake.bookkeeping import record, row_schema
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.lake.plan_rows import plans_of
from lakejoin.storage.sources.files.source_files import Counted, Dates
from lakejoin.storage.sources.planned.planned_file import PlannedFile

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SPARK = Mock(spec=SparkSession)
"""Stands in for a session where only CSV files ask for one."""
TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint}
    key: [id]
"""


def pipeline(folder: Path, text: str = TEXT) -> Pipeline:
    """A pipeline whose file lies in the folder."""
    return load_text(text, folder / "lakejoin.yaml")


def write(path: Path, text: str, modified: int = 1) -> None:
    """Write a source file with a time of its own."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    os.utime(path, ns=(modified * 10**9, modified * 10**9))


def plan_of(files: Sequence[PlannedFile]) -> Plan:
    """A plan that reads these files and nothing else."""
    nothing: dict[str, int] = {}
    return Plan(1, "batch", NOW, tuple(files), nothing, nothing, {}, (), (), "", {}, code_version())


def planned(shop: Pipeline, count: int = 0) -> list[PlannedFile]:
    """What is pending of a pipeline; CSV files are said to have `count` records."""
    with patch("lakejoin.storage.sources.formats.csv.count_records", lambda *_: Counted(count)):
        groups = pending_groups(shop, Journal(Lake(shop.lake)), now=NOW, spark=SPARK)
    return [file for group in groups for file in group.files]


@pytest.mark.parametrize(
    ("start", "dates", "expected"),
    [
        ("", None, [1, 2, 3]),
        (", start: 2024-01-02", None, [2, 3]),
        (", start: 2024-01-02", (date(2024, 1, 1), date(2024, 1, 2)), [2]),
        ("", (date(2024, 1, 2), date.max), [2, 3]),
        (", start: 2025-01-01", None, []),
    ],
)
def test_run_and_backlog_begin_with_the_start_of_a_source(
    tmp_path: Path, start: str, dates: Dates | None, expected: list[int]
) -> None:
    """Days before it are never read; the backlog names the files that a run reads, and no other."""
    for day in (1, 2, 3):
        write(tmp_path / "orders" / f"2024-01-0{day}.jsonl", '{"op": "c", "id": 1}\n')
    shop = pipeline(tmp_path, TEXT.replace('.jsonl"}', f'.jsonl"{start}}}'))

    groups = pending_groups(shop, Journal(Lake(shop.lake)), now=NOW, spark=None, dates=dates)

    assert [group.dates for group in groups] == [(date(2024, 1, day),) for day in expected]
    assert backlog(shop, NOW, dates=dates).dates == tuple(date(2024, 1, day) for day in expected)


CSV = TEXT.replace("jsonl", "csv")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("op,id\nc,1\n", "op,id\nc,2\n", "differs within its first 10 bytes"),
        ("op,id\nc,1\n", "op,id\nc,2\nc,3\n", "differs within its first 10 bytes"),
        ("op,id\nc,1\n", "op,id\n", "has 6 bytes now, had 10"),
        ("op,id\nc,1", "op,id\nc,12\n", "had no end when it was read, and has grown"),
        ('op,id\nc,"1\n', 'op,id\nc,"1\n2"\n', "had no end when it was read, and has grown"),
        ('op,id\nc,"1', 'op,id\nc,"1\n2"\n', "had no end when it was read, and has grown"),
    ],
    ids=["same length", "longer", "shorter", "last record", "open quote", "open quote without an end"],
)
def test_changed_csv_file_of_an_unfinished_batch_is_refused(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    """A batch that was cut off is finished with what was planned, or not at all; it needs no Spark."""
    file, shop = tmp_path / "orders" / "2024-01-01.csv", pipeline(tmp_path, CSV)
    write(file, before)
    plan = plan_of(planned(shop, 1))
    write(file, after, modified=2)

    with pytest.raises(SourceChanged, match=rf"2024-01-01.csv: changed after it was read: .*{message}"):
        check_unchanged(shop, plan)


@pytest.mark.parametrize("after", ["op,id\nc,1\n", "op,id\nc,1\nc,2\n"], ids=["touched", "continued"])
def test_csv_file_that_has_its_planned_part_is_the_same(tmp_path: Path, after: str) -> None:
    """Records that came behind are left to the next batch."""
    file, shop = tmp_path / "orders" / "2024-01-01.csv", pipeline(tmp_path, CSV)
    write(file, "op,id\nc,1\n")
    plan = plan_of(planned(shop, 1))
    write(file, after, modified=2)

    check_unchanged(shop, plan)


@pytest.mark.bad_input(44)
@pytest.mark.parametrize(
    ("after", "records", "error", "message"),
    [
        (None, 2, SourceNotFound, "2024-01-01.jsonl: not found"),
        ("{}\n", 1, SourceChanged, "2024-01-01.jsonl: changed after it was read: has 3 bytes now, had 6"),
        ("{}\n{ }\n", 2, SourceChanged, "2024-01-01.jsonl: changed after it was read: differs within"),
        (
            "{}\n{}\n",
            1,
            SourceChanged,
            "table orders: 1 records were read of .*01.jsonl, expected 2 as planned",
        ),
    ],
    ids=["removed", "shorter", "replaced", "read short"],
)
def test_file_that_changed_while_it_was_read_is_refused(
    tmp_path: Path, after: str | None, records: int, error: type[LakejoinError], message: str
) -> None:
    """What was read must be what was planned, to the record."""
    file, shop = tmp_path / "orders" / "2024-01-01.jsonl", pipeline(tmp_path)
    write(file, "{}\n{}\n")
    files = planned(shop)
    check_read(shop.tables["orders"], files, 2)
    if after is None:
        file.unlink()
    else:
        write(file, after, modified=1 if after == "{}\n{}\n" else 2)

    with pytest.raises(error, match=message):
        check_read(shop.tables["orders"], files, records)


@pytest.mark.bad_input(22)
def test_file_without_new_records_is_planned_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header alone, or a copy with a new time, is no batch; but once planned it does not wait any more."""
    shop, folder = pipeline(tmp_path, CSV), tmp_path / "orders"
    counts = {"2024-01-01.csv": 0, "2024-01-02.csv": 2, "2024-01-03.csv": 0}
    write(folder / "2024-01-01.csv", "op,id\n")
    write(folder / "2024-01-03.csv", "")
    journal = Journal(Lake(shop.lake))
    counted = lambda _, path, __: Counted(counts[Path(path).name])  # noqa: E731 - a stand-in for Spark
    monkeypatch.setattr("lakejoin.storage.sources.formats.csv.count_records", counted)
    pending = partial(pending_groups, shop, journal, now=NOW, spark=SPARK)
    assert pending() == []

    write(folder / "2024-01-02.csv", "op,id\nc,1\nc,2\n")
    [group] = pending()

    assert [(file.name, file.from_line, file.to_line) for file in group.files] == [
        ("2024-01-01.csv", 0, 0),
        ("2024-01-02.csv", 0, 2),
    ]
    assert (group.dates, group.records) == ((date(2024, 1, 2),), 2)
    assert [[file.name for file in part.files] for part in cut(group, 1)] == [
        ["2024-01-02.csv", "2024-01-01.csv"],
        ["2024-01-02.csv"],
    ]
    journal.plans.append(plan_of(group.files))
    assert pending() == []
    write(folder / "2024-01-02.csv", "op,id\nc,1\nc,2\n", modified=2)
    assert pending() == []
    write(folder / "2024-01-03.csv", "op,id\nc,3\n")
    counts["2024-01-03.csv"] = 1
    [again] = pending()
    assert [(file.name, file.from_line, file.to_line, file.modified) for file in again.files] == [
        ("2024-01-02.csv", 2, 2, 2 * 10**9),
        ("2024-01-03.csv", 0, 1, 10**9),
    ]


def test_lake_of_a_plan_without_later_figures_takes_the_next_one(tmp_path: Path) -> None:
    """What was not looked for when a file was measured is unknown, and the next plan adds its column."""
    shop = pipeline(tmp_path)
    write(tmp_path / "orders" / "2024-01-01.jsonl", "1\n")
    plan = plan_of(planned(shop))
    missing = {"stray_quotes", "returns"}
    columns = {field.name: field.type for field in row_schema(Plan)}
    files = [field for field in columns["files"].value_type if field.name not in missing]
    older = pa.schema([*(columns | {"files": pa.list_(pa.struct(files))}).items()])
    path = Lake(shop.lake).path(PLAN)
    with patch("lakejoin.storage.lake.bookkeeping.row_schema", return_value=older):
        record(path, plan, Transaction(PLAN, 1, {}))

    record(path, replace(plan, batch=2), Transaction(PLAN, 2, {}))

    snapshot = Lake(shop.lake).snapshot(PLAN)
    assert snapshot is not None
    first, second = sorted(plans_of(Lake(shop.lake), snapshot), key=lambda plan: plan.batch)
    assert [(plan.files[0].stray_quotes, plan.files[0].returns) for plan in (first, second)] == [
        (False, True), (False, False),
    ]  # fmt: skip
    assert second.files == plan.files


def days(groups: Sequence[Group]) -> list[list[int]]:
    """The days of each group."""
    return [[day.day for day in group.dates] for group in groups]


@pytest.mark.parametrize(
    ("batch_by", "most", "expected"),
    [
        ("date", 9, [[1], [2], [3], [4]]),
        ("all", 1, [[1, 2, 3, 4]]),
        ("size", 12, [[1, 2, 3, 4]]),
        ("size", 5, [[1, 2], [3], [4]]),
        ("size", 1, [[1], [2], [3], [4]]),
    ],
)
def test_days_go_together_by_size(
    tmp_path: Path, batch_by: BatchBy, most: int, expected: list[list[int]]
) -> None:
    """Those that follow each other, up to so many records; a day that has more stays one, to be cut by rows."""
    shop, records = pipeline(tmp_path), {1: 2, 2: 3, 3: 1, 4: 6}
    for day, count in records.items():
        write(tmp_path / "orders" / f"2024-01-0{day}.jsonl", "{}\n" * count)
    journal = Journal(Lake(shop.lake))

    groups = pending_groups(shop, journal, now=NOW, spark=SPARK, batch_by=batch_by, most=most)

    assert days(groups) == expected
    assert [file.date.day for group in groups for file in group.files if file.date] == [1, 2, 3, 4]
    assert days([day for group in groups for day in group.by_date()]) == [[1], [2], [3], [4]]


SNAPSHOTS = """\
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl", mode: snapshot}
    columns: {customer: string}
    key: [customer]
"""
NOW_JOINED = """\
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string}
    key: [customer]
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {customer: string, at: timestamp}
    key: [customer]
    event_time: at
joins:
  named: {stream: clicks, table: customers, foreign_key: [customer], how: left}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [(TEXT + SNAPSHOTS, [[1, 2], [3], [4]]), (TEXT + NOW_JOINED, [[1], [2], [3], [4]])],
    ids=["two snapshots of a table", "a stream that meets the rows of its day"],
)
def test_days_that_would_come_out_otherwise_stay_apart(
    tmp_path: Path, text: str, expected: list[list[int]]
) -> None:
    """A snapshot is compared with the rows that the one before it left, and a stream's record with those of its day."""
    shop = pipeline(tmp_path, text)
    for day in (1, 2, 3, 4):
        write(tmp_path / "orders" / f"2024-01-0{day}.jsonl", "{}\n")
    (tmp_path / "clicks").mkdir()
    for day in (2, 3, 4):
        write(tmp_path / "customers" / f"2024-01-0{day}.jsonl", "{}\n")

    groups = pending_groups(shop, Journal(Lake(shop.lake)), now=NOW, spark=SPARK, batch_by="size", most=12)

    assert days(groups) == expected
