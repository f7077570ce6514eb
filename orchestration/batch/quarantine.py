"""Tells which records are still in quarantine: not read with success since, and not of a file that was replaced."""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.batch.failing_expressions import with_causes
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.inventory import log_of
from lakejoin.orchestration.lake_state.quarantine_counts import LATE
from lakejoin.orchestration.planning.row_expressions import conditions, of_joins
from lakejoin.storage.delta_table.direct_scan import read_table
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE
from lakejoin.storage.state.pinned_state import State, read_log
from lakejoin.transforms.model.refused_records import refuse
from lakejoin.transforms.model.schemas import (
    BATCH,
    CONTEXT,
    DERIVED,
    DETAIL,
    OP,
    POSITION,
    POSITION_TYPE,
    QUARANTINE_SCHEMA,
    RAW,
    REASON,
    empty,
    named,
)

_LAST = "_lj_last_truncate"
_OPERATIONS = StructType().add(OP, StringType()).add(POSITION, POSITION_TYPE)
_LOG = StructType().add(BATCH, LongType()).add(POSITION, POSITION_TYPE)
_HEALED = StructType().add("table", StringType()).add(POSITION, POSITION_TYPE).add(BATCH, LongType())
RAW_LIMIT = 1_000_000
"""Characters of a record's raw text that quarantine keeps."""


def open_records(pipeline: Pipeline, journal: Journal, state: State) -> DataFrame:
    """Return the records in quarantine as of a plan: columns of `quarantine` as of the last time, and `POSITION`."""
    rows = read_log(state, QUARANTINE, QUARANTINE_SCHEMA).where(F.col("reason") != LATE)
    last = F.max_by(F.struct(BATCH, "reason", "detail", "raw"), BATCH).alias("last")
    # without lines of their own, records of several keys share a position, and none is read again
    shared = [name for name, read in pipeline.inputs.items() if not read.source_format.has_lines]
    one_of = F.when(F.col("table").isin(shared), F.col("raw")).alias("one_of")
    grouped = rows.groupBy("table", "date", "file", "line", one_of).agg(last)
    place = F.struct("date", "file", "line").alias(POSITION)
    latest = grouped.select("table", "date", "file", "line", "last.*", place)
    waiting = latest.where(~_replaced(pipeline, journal, state))
    beside = waiting.join(_healed(pipeline, journal, state), ["table", POSITION], "left")
    # A file that was exported again later may have something bad on that line once more; and of a record that a batch
    # logged and quarantined, the log has what was derived from it.
    open_still = F.col("healed").isNull() | (F.col("healed") <= F.col(BATCH))
    return beside.where(open_still).drop("healed")


def only_open(records: DataFrame, name: str, batch: Batch) -> DataFrame:
    """Leave of the records of a table or stream those in quarantine, and before each the line that may belong to it."""
    waiting = open_records(batch.pipeline, batch.journal, batch.state).where(F.col("table") == name)
    wanted = waiting.select(POSITION).withColumn("_lj_wanted", F.lit(True))
    line_before = F.col(POSITION).withField("line", F.col(POSITION)["line"] - 1)
    beside = wanted.select(line_before.alias(POSITION), F.lit(False).alias("_lj_wanted"))
    chosen = wanted.unionByName(beside).groupBy(POSITION).agg(F.bool_or("_lj_wanted").alias("_lj_wanted"))
    found = records.join(F.broadcast(chosen), POSITION).withColumn(CONTEXT, ~F.col("_lj_wanted"))
    return _without_emptied(found.select(*[named(column) for column in records.columns]), name, batch)


def _without_emptied(records: DataFrame, name: str, batch: Batch) -> DataFrame:
    """Leave in quarantine what a later truncate event deleted: read now, it would come back."""
    log, state, read = log_of(batch.pipeline, name), batch.state, batch.pipeline.inputs[name]
    if name in batch.pipeline.streams or not read.source_format.truncates or log not in state.plan.versions:
        return records
    logged = read_table(state.spark, state.lake.path(log), state.plan.versions[log], _OPERATIONS)
    last = logged.where(F.col(OP) == "truncate").agg(F.max(POSITION).alias(_LAST))
    emptied = F.col(REASON).isNull() & F.coalesce(F.col(POSITION) < F.col(_LAST), F.lit(False))
    detail = F.concat(F.lit("the table was emptied at "), F.concat_ws(":", f"{_LAST}.file", f"{_LAST}.line"))
    judged = records.crossJoin(F.broadcast(last)).where(~(emptied & F.col(DERIVED)))
    reason = F.when(emptied, F.lit("before_truncate"))
    return refuse(judged, read.spec.columns.names, reason, detail).drop(_LAST)


def _replaced(pipeline: Pipeline, journal: Journal, state: State) -> Column:
    conditions = [
        (F.col("table") == name) & (F.col("file") == file) & (F.col(BATCH) < batch)
        for name in pipeline.tables
        for file, batch in journal.replaced_files(name, state.plan.batch).items()
    ]
    return reduce(or_, conditions, F.lit(False))


def _healed(pipeline: Pipeline, journal: Journal, state: State) -> DataFrame:
    """Table and position of what was read once more and could be, with the last batch that did."""
    again = [plan.batch for plan in journal.finished("retry") if plan.batch < state.plan.batch]
    found = empty(state.spark, _HEALED)
    for name in pipeline.inputs if again else ():
        log = log_of(pipeline, name)
        if log in state.plan.versions:
            path, version = state.lake.path(log), state.plan.versions[log]
            rows = read_table(state.spark, path, version, _LOG, after=min(again) - 1)
            rows = rows.where(F.col(BATCH).isin(*again))
            found = found.unionByName(rows.select(F.lit(name).alias("table"), POSITION, BATCH))
    return found.groupBy("table", POSITION).agg(F.max(BATCH).alias("healed"))


def commit_refused(batch: Batch, name: str, records: DataFrame, count: int) -> None:
    """Commit the records of a table or stream that could not be accepted."""
    stage = f"quarantine/{name}"
    asked = [*conditions(batch.pipeline, name), *of_joins(batch.pipeline, batch.plan, name)]
    if count and asked:
        with batch.jobs_of(stage):
            records = with_causes(records, asked)
    batch.append(stage, QUARANTINE, quarantine_rows(records, name), count)


def quarantine_rows(records: DataFrame, name: str) -> DataFrame:
    """Records of a table or stream, with position, reason, detail and raw, as rows of `quarantine`."""
    return records.select(
        F.lit(None).cast("bigint").alias(BATCH),
        F.lit(name).alias("table"),
        F.col(POSITION)["date"].alias("date"),
        F.col(POSITION)["file"].alias("file"),
        F.col(POSITION)["line"].alias("line"),
        F.col(REASON).alias("reason"),
        F.col(DETAIL).alias("detail"),
        F.substring(RAW, 1, RAW_LIMIT).alias("raw"),
    )
