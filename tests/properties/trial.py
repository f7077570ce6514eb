"""Runs a scenario through the product, and compares every batch with the model and with Spark's own join."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import load
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Published
from properties.relations import COLUMNS, JOINS, TABLES, Row, joined_by_model, joined_by_spark, rows_of
from properties.scenarios import Arrival, Change, Scenario, Side
from reference.tables import Record, Table, count

FIRST_DAY = date(2024, 2, 27)
VERDICTS = ("applied", "out_of_order", "duplicate", "tombstone", "expired", "late", "ignored", "quarantined")

Line = tuple[int, Change]
"""A record with the number of its sequence."""


class Trial:
    """A lake of its own, with the model of what it must hold."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        spark: SparkSession,
        *,
        joins: Mapping[str, dict[str, Any]] = JOINS,
        purged: bool = False,
    ) -> None:
        """Prepare the configuration in the folder; nothing runs yet.

        With `purged`, deleted keys are forgotten at once, by a fold that the caller must force after every batch.
        """
        self.scenario, self.folder, self.spark, self.purged = scenario, folder, spark, purged
        self.joins = joins
        for table in TABLES.values():
            (folder / table).mkdir()
        retention = "1 milliseconds" if purged else "30 days"
        self.pipeline = load(write_configuration(folder, joins, retention=retention))
        self.lake = Lake(self.pipeline.lake)
        self.model: dict[Side, Table] = {side: Table() for side in TABLES}
        self.files: dict[tuple[Side, int], list[Line]] = {}
        self.taken: dict[Side, list[tuple[Any, ...]]] = {side: [] for side in TABLES}

    def run(self) -> None:
        """Let the days arrive, one arrival after the other, and compare after every batch.

        Raises `AssertionError` with the records of the sequence that went wrong.
        """
        for arrival in self.scenario.arrivals:
            self._write_files(arrival)
            for report in run_batches(
                self.pipeline, self.spark, batch_by=arrival.batch_by, batch_rows=arrival.batch_rows
            ):
                counts = self._take(report.batch)
                self._compare_counts(report, counts)
                self._compare_joins(report.batch)
                self._purge(report)
        assert sum(map(len, self.files.values())) == sum(map(len, self.scenario.sequences))

    def _write_files(self, arrival: Arrival) -> None:
        for side, table in TABLES.items():
            for day in arrival.days:
                lines = [
                    (case, change)
                    for case, changes in enumerate(self.scenario.sequences)
                    for change in changes
                    if (change.side, change.day) == (side, day)
                ]
                if lines:
                    self.files[side, day] = lines
                    path = self.folder / table / f"{FIRST_DAY + timedelta(days=day)}.jsonl"
                    path.write_text("".join(f"{source_line(*line)}\n" for line in lines), "utf-8")

    def _take(self, batch: int) -> dict[Side, Counter[str]]:
        """Feed the model what the batch read; return what it counts."""
        plan = Journal(self.lake).plans[-1]
        assert plan.batch == batch
        counts = {}
        for side, table in TABLES.items():
            records, bad = [], 0
            for file in plan.files_of(table):
                assert file.date is not None
                day = (file.date - FIRST_DAY).days
                lines = self.files[side, day]
                for line in range(file.from_line + 1, file.to_line + 1):
                    case, change = lines[line - 1]
                    if change.key is None:
                        bad += 1
                        continue
                    records.append(record_of(case, change, (file.date.isoformat(), file.name, line)))
                    self.taken[side].append(_spark_row(side, case, change, day, line))
            counts[side] = count(self.model[side].take(records)) + Counter(records=bad, quarantined=bad)
        return counts

    def _purge(self, report: Published) -> None:
        """Forget what the fold forgets that follows this batch: it only looks at tables that changed."""
        for side, table in TABLES.items():
            if self.purged and report.tables[table]["applied"]:
                self.model[side].purge(list(self.model[side].rows))

    def _compare_counts(self, report: Published, expected: Mapping[Side, Counter[str]]) -> None:
        for side, table in TABLES.items():
            got = report.tables[table]
            wanted = {name: expected[side][name] for name in ("records", *VERDICTS, "tie")}
            assert {name: got.get(name, 0) for name in wanted} == wanted, f"batch {report.batch}, {table}"
            assert got["records"] == sum(got.get(verdict, 0) for verdict in VERDICTS)
            assert report.rows[table] == len(self.model[side].current())
        for join, got in report.joins.items():
            assert got["answers"] == got["applied"] + got["superseded"] + got["stale"], (
                f"batch {report.batch}, {join}"
            )

    def _compare_joins(self, batch: int) -> None:
        tables = {table: self.model[side].current() for side, table in TABLES.items()}
        model = joined_by_model(tables, self.joins)
        by_spark = joined_by_spark(self.spark, self.taken, self.joins)
        for join in self.joins:
            got = rows_of(self.spark.read.format("delta").load(self.lake.path(joined_of(join))))
            self._compare(f"batch {batch}, {join}, by the model", list(model[join].values()), got)
            self._compare(f"batch {batch}, {join}, by Spark's join", by_spark[join], got)

    def _compare(self, what: str, expected: Iterable[Row], got: Iterable[Row]) -> None:
        wanted, found = (Counter(json.dumps(row, sort_keys=True) for row in rows) for rows in (expected, got))
        missing, surplus = sorted((wanted - found).elements()), sorted((found - wanted).elements())
        if missing or surplus:
            case = json.loads((missing or surplus)[0])["case_id"]
            records = "\n".join(f"  {change}" for change in self.scenario.sequences[case])
            arrivals = "\n".join(f"  {arrival}" for arrival in self.scenario.arrivals)
            raise AssertionError(
                f"{what}: {len(missing)} rows missing, {len(surplus)} too many\n"
                f"missing: {missing[:1]}\ntoo many: {surplus[:1]}\nrecords of sequence {case}:\n{records}\n"
                f"arrivals:\n{arrivals}"
            )


def write_configuration(
    folder: Path,
    joins: Mapping[str, dict[str, Any]],
    *,
    retention: str = "30 days",
    columns: Mapping[Side, Mapping[str, str]] = COLUMNS,
    source: Mapping[str, Any] = MappingProxyType({}),
    maintenance: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Write the configuration of both tables and these joins; return its file.

    `retention`: of tombstones. `source`, `maintenance`: what differs from the usual settings.
    """
    tables = {
        table: {
            "source": {"format": "jsonl", "path": f"{table}/{{date}}*.jsonl", **source},
            "columns": dict(columns[side]),
            "key": ["case_id", "key"],
            "sequence": ["seq"],
            "tombstone_retention": retention,
        }
        for side, table in TABLES.items()
    }
    groups = {name: join for name, join in joins.items() if "of" in join}
    of_tables = {name: join for name, join in joins.items() if name not in groups}
    document = {"name": "trial", "lake": "./lake", "tables": tables, "joins": of_tables, "groups": groups}
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump(document | dict(maintenance), sort_keys=False), "utf-8")
    return path


def source_line(case: int, change: Change) -> str:
    """A record as a source file has it."""
    op = "d" if change.value is None else "u"
    return json.dumps(
        {"op": op, "case_id": case, "key": change.key, "seq": change.sequence, **(change.value or {})}
    )


def record_of(case: int, change: Change, position: tuple[str, str, int]) -> Record:
    """A record as the model takes it."""
    value = None if change.value is None else {**change.value, "seq": change.sequence}
    return Record((case, change.key), "upsert" if value else "delete", position, value, change.sequence)


def _spark_row(side: Side, case: int, change: Change, day: int, line: int) -> tuple[Any, ...]:
    named = {"case_id": case, "key": change.key, "seq": change.sequence, **(change.value or {})}
    values: Sequence[Any] = [named.get(column) for column in COLUMNS[side]]
    return (*values, change.value is None, day, line)
