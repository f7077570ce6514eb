"""Compares the demo's departures and their weather with PostgreSQL, which knew the whole history when it was asked.

A stream's join answers when the grace period is over, and never again. So each difference must have a cause: the
flight's last record came late, it still waits, or the observation came after the grace period.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.orchestration.demo.csv_comparison import read_expected
from lakejoin.orchestration.demo.example import Example
from lakejoin.storage.lake.layout import joined_of, records_of
from lakejoin.storage.state.pinned_state import State, read_log
from lakejoin.transforms.changelog.versions import intervals
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    POSITION,
    TIME,
    VALID_FROM,
    VALID_TO,
    VERDICT,
    named,
)
from lakejoin.transforms.model.specs import StreamJoinSpec
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import ACCEPTED, stream_joined_schema, waiting

JOIN = "departures_with_weather"
FILE = "flights_weather.csv*"
"""PostgreSQL's answer, plain or compressed."""
EQUAL = "equal"
UNEXPLAINED = "unexplained"
_RENAMED = {"weather_event_time": "event_time"}
"""Columns of PostgreSQL's answer that the weather has under another name."""


@dataclass(frozen=True)
class Explained:
    """How many flights departed, and how many of them are equal to the answer or differ for which cause."""

    flights: int
    causes: Mapping[str, int]

    @property
    def is_explained(self) -> bool:
        """Whether every difference has a cause."""
        return not self.causes.get(UNEXPLAINED)


def has_departures(example: Example) -> bool:
    """Whether the example has the join and an answer to it."""
    return JOIN in example.pipeline.joins_of_streams and any(example.expected.glob(FILE))


def explain(example: Example, state: State) -> Explained:
    """Compare each departed flight's last output with PostgreSQL's answer; say why what differs does."""
    join = example.pipeline.stream_join_spec(JOIN)
    expected = read_expected(state.spark, str(next(example.expected.glob(FILE))))
    names = [n for n in expected.columns if _RENAMED.get(n, n) in join.right_columns.names]
    wanted = F.struct(*[_as_declared(join, name) for name in names])
    answers = expected.select(
        F.col("flight_id").cast("bigint").alias("flight_id"),
        F.col("origin").alias("last_origin"),
        F.col("sched_dep").cast("timestamp").alias("last_sched_dep"),
        wanted.alias("wanted"),
    )
    found = F.struct(*[named(join.prefix + _RENAMED.get(name, name)).alias(name) for name in names])
    outputs = _last_output(join, state).select("flight_id", F.col(BATCH).alias("at"), found.alias("found"))
    flights = (
        _last_records(example, join, state).join(answers, "flight_id").join(outputs, "flight_id", "left")
    )
    versions = _versions(example, state, join)
    at_time = (F.col("origin") == F.col("station")) & F.col(TIME).between(F.col(VALID_FROM), F.col("until"))
    caused = flights.join(versions, at_time, "left").select(_cause().alias("cause"))
    counts = {row["cause"]: row["count"] for row in caused.groupBy("cause").count().collect()}
    return Explained(sum(counts.values()), dict(sorted(counts.items())))


def _as_declared(join: StreamJoinSpec, name: str) -> Column:
    dtype = join.right_columns[_RENAMED.get(name, name)].dataType
    return F.col(name).cast(dtype).alias(name)


def _last_output(join: StreamJoinSpec, state: State) -> DataFrame:
    rows = read_log(state, joined_of(JOIN), stream_joined_schema(join))
    last = Window.partitionBy("flight_id").orderBy(
        F.col(BATCH).desc(), F.col(TIME).desc(), F.col(POSITION).desc()
    )
    return rows.withColumn("nth", F.row_number().over(last)).where("nth = 1")


def _last_records(example: Example, join: StreamJoinSpec, state: State) -> DataFrame:
    """The last departure of each flight, whether it came late, and whether it still waits."""
    stream = example.pipeline.streams[join.left].spec
    log = read_log(state, records_of(join.left), stream_schema(stream))
    departed = log.where(F.col(VERDICT).isin(*ACCEPTED))
    last = Window.partitionBy("flight_id").orderBy(F.col(POSITION).desc())
    records = departed.withColumn("nth", F.row_number().over(last)).where("nth = 1")
    clock = state.plan.clocks.get(f"joins/{JOIN}")
    wait = waiting(state.stream_records(stream, after=state.plan.released(JOIN)), join, clock)
    waits = wait.select(POSITION).withColumn("waits", F.lit(True))
    return records.join(waits, POSITION, "left").select(
        "flight_id", "origin", "sched_dep", TIME, (F.col(VERDICT) == "late").alias("late"), "waits"
    )


def _versions(example: Example, state: State, join: StreamJoinSpec) -> DataFrame:
    """The whole history: which batch learnt each version, and up to when it was valid, inclusive."""
    table = example.pipeline.tables[join.right].spec
    until = F.coalesce(
        F.col(VALID_TO) - F.expr("interval 1 microsecond"), F.lit("9999-12-31").cast("timestamp")
    )
    history = intervals(state.versions(table), table)
    return history.select("station", VALID_FROM, until.alias("until"), F.col(BATCH).alias("learnt"), DELETED)


def _cause() -> Column:
    moved = (F.col("last_origin") != F.col("origin")) | (F.col("last_sched_dep") != F.col("sched_dep"))
    # a left join: without weather all columns are null on both sides
    same = F.col("at").isNotNull() & F.col("wanted").eqNullSafe(F.col("found"))
    return (
        F.when(same, EQUAL)
        .when(F.col("late"), "the record came late")
        .when(F.col("waits"), "still in the buffer")
        .when(F.col("learnt") > F.col("at"), "the observation came after the grace period")
        .when(moved, "the flight was moved after it departed")
        .otherwise(UNEXPLAINED)
    )
