"""Holds a lake against the model: every batch as it was published, and in the end every record and message."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.lake.layout import (
    QUARANTINE,
    Lake,
    changes_of,
    history_of,
    joined_of,
    response_log_of,
    subscription_log_of,
)
from lakejoin.storage.lake.plan import Published
from lakejoin.transforms.model.schemas import VALID_TO, VALIDITY
from properties.relations import TABLES, Row
from properties.scenarios import Side
from properties.trial import VERDICTS
from soak.model import Model


def check_counts(model: Model, report: Published, expected: Mapping[Side, Counter[str]]) -> None:
    """Hold what a batch counted against the model. Raises `AssertionError`."""
    for side, table in TABLES.items():
        where, got = f"batch {report.batch} ({report.kind}), {table}", report.tables[table]
        # what was there before and is again counts as a duplicate, which takes both files to tell
        names = ("records", "quarantined") if report.kind == "replace" else ("records", *VERDICTS, "tie")
        wanted = {name: expected[side][name] for name in names}
        found = {name: got.get(name, 0) for name in names}
        assert found == wanted, f"{where}: counted {found}, expected {wanted}"
        assert got["records"] == sum(got.get(verdict, 0) for verdict in VERDICTS), f"{where}: {got}"
        rows = len(model.tables[side].current())
        assert report.rows[table] == rows, f"{where}: {report.rows[table]} rows, expected {rows}"
    for join, got in report.joins.items():
        if "answers" not in got:
            continue  # groups ask nobody
        sum_of_answers = got["applied"] + got["superseded"] + got["stale"]
        assert got["answers"] == sum_of_answers, f"batch {report.batch}, {join}: {got}"


def check_joined(model: Model, spark: SparkSession, lake: Lake, report: Published) -> None:
    """Hold the joined tables of a batch, and their histories, against the model. Raises `AssertionError`."""
    joined = model.joined()
    tables = {joined_of(join): rows for join, rows in joined.items()}
    tables |= {history_of(join): rows for join, rows in joined.items() if history_of(join) in report.versions}
    frames = [_texts(spark, lake, table, report.versions[table]) for table in tables]
    found: dict[str, Counter[str]] = {table: Counter() for table in tables}
    for row in reduce(DataFrame.unionAll, frames).collect():
        found[row["name"]][row["text"]] += 1
    for table, rows in tables.items():
        _compare(f"batch {report.batch} ({report.kind}), {table}", Counter(map(_text, rows)), found[table])


def check_logs(model: Model, spark: SparkSession, lake: Lake, published: Iterable[Published]) -> None:
    """See that every record and every message was written once, by the batch that read or sent it.

    Raises `AssertionError`.
    """
    batches = list(published)
    replaced = {report.batch for report in batches if report.kind == "replace"}
    for side, table in TABLES.items():
        found: Counter[tuple[Any, ...]] = Counter()
        for row in _records(spark, lake, table).collect():
            verdict = row["verdict"]
            told = None if row["batch"] in replaced and verdict != "quarantined" else verdict
            found[row["file"], row["line"], row["batch"], told] += 1
        wanted = Counter((read.file, read.line, read.batch, read.verdict) for read in model.read[side])
        _compare(f"records of {table}", wanted, found)
    counted = {join for report in batches for join in report.joins}
    joins = counted - {
        side.partition("/")[0] for side in counted if "/" in side
    }  # a star has logs for each side
    for log, count in ((subscription_log_of, "subscriptions"), (response_log_of, "answers")):
        for join in joins:
            told = {
                report.batch: report.joins[join].get(count, 0) for report in batches if join in report.joins
            }
            told = {batch: number for batch, number in told.items() if number}
            assert _by_batch(spark, lake, log(join)) == told, log(join)


def _by_batch(spark: SparkSession, lake: Lake, log: str) -> dict[int, int]:
    """How many rows of a log each batch has; a log without any was never made."""
    if lake.snapshot(log) is None:
        return {}
    rows = spark.read.format("delta").load(lake.path(log)).groupBy("_lj_batch").count().collect()
    return {row["_lj_batch"]: row["count"] for row in rows}


def _records(spark: SparkSession, lake: Lake, table: str) -> DataFrame:
    """Place, batch and verdict of every record of a table."""
    changes = spark.read.format("delta").load(lake.path(changes_of(table)))
    own = changes.where(F.col("_lj_op") != "restored")
    kept = own.select(
        F.col("_lj_position.file").alias("file"), F.col("_lj_position.line").alias("line"),
        F.col("_lj_batch").alias("batch"), F.col("_lj_verdict").alias("verdict"),
    )  # fmt: skip
    if lake.snapshot(QUARANTINE) is None:
        return kept
    quarantine = spark.read.format("delta").load(lake.path(QUARANTINE)).where(F.col("table") == table)
    return kept.unionAll(
        quarantine.select("file", "line", F.col("_lj_batch").alias("batch"), F.lit("quarantined"))
    )


def _texts(spark: SparkSession, lake: Lake, table: str, version: int) -> DataFrame:
    """Name and rows of a joined table, or those of a history that are current, as JSON with the columns in order."""
    frame = spark.read.format("delta").option("versionAsOf", version).load(lake.path(table))
    if VALID_TO in frame.columns:
        frame = frame.where(F.col(VALID_TO).isNull()).drop(*VALIDITY)
    columns = sorted(name for name in frame.columns if not name.startswith("_lj_"))
    text = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
    return frame.select(F.lit(table).alias("name"), text.alias("text"))


def _text(row: Row) -> str:
    return json.dumps(row, sort_keys=True, separators=(",", ":"))


def _compare(what: str, wanted: Counter[Any], found: Counter[Any]) -> None:
    missing, surplus = (sorted(map(str, (one - other).elements())) for one, other in (
        (wanted, found), (found, wanted),
    ))  # fmt: skip
    assert missing == surplus == [], (
        f"{what}: {len(missing)} missing, {len(surplus)} too many\n"
        f"missing: {missing[:2]}\ntoo many: {surplus[:2]}"
    )
