"""Decides where a batch takes the shorter ways of a first load: many rows that were not there before (decision 8).

There are four, in the order of a batch:

- The records of a table are read a second time instead of being kept, and not validated again where none was bad.
- Those of a table that begins go into the files of its log before all else.
- Left rows that are only inserted pass the join by one join (`transforms.foreign_key_join.insert_only`).
- A join that begins with such rows alone has its tables in files before its gate judges, which then compares totals
  (`expectations.totals`).

A small batch takes none: a second way would cost more planning than it saves. Each way ends with the rows of the usual
way.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.context import Batch
from lakejoin.storage.delta_table.direct_scan import LOG_PROPERTIES
from lakejoin.storage.lake.layout import changes_of, joined_of, response_log_of, subscription_log_of
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.state.joined_table import PROPERTIES, joined_rows, properties_of
from lakejoin.transforms.foreign_key_join.batch import Inserts, JoinBatch
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.foreign_key_join.insert_only import stored
from lakejoin.transforms.model.declaration import UNDECLARED, Declaration
from lakejoin.transforms.model.join_sides import inserted, joined_left_key
from lakejoin.transforms.model.keys import KeyTotals
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, PRIMARY_KEY, changes_schema, empty, named
from lakejoin.transforms.model.selection import marks_of
from lakejoin.transforms.model.specs import TableSpec


def pays(frames: Frames) -> bool:
    """Whether there are enough rows for one of the ways of a first load."""
    return not frames.small


@dataclass(frozen=True)
class TableLoad:
    """How the records of one table are loaded."""

    looks_for_keys: bool
    """Whether it pays to find out if any key occurs twice."""
    ignores: bool = False
    """Whether some records may be no change of a row."""
    flawless: Callable[[], DataFrame] | None = None
    """Reads the records again without validating each, for when all of them are known to be acceptable."""
    log_first: Callable[[DataFrame], DataFrame | None] | None = None
    """Puts records into the files of the log that begins with them, and returns its rows; None where there is a log."""


def table_load(batch: Batch, table: TableSpec, flawless: Callable[[], DataFrame] | None) -> TableLoad:
    """Which ways are open to a table's records. `flawless`: as in `TableLoad`, where reading again is cheap."""
    if not pays(batch.frames):
        return TableLoad(looks_for_keys=False)
    log_first = None if table.history_retention is not None else partial(_write_log, batch, table)
    ignores = batch.pipeline.tables[table.name].source_format.ignores
    return TableLoad(looks_for_keys=True, ignores=ignores, flawless=flawless, log_first=log_first)


def _write_log(batch: Batch, table: TableSpec, judged: DataFrame) -> DataFrame | None:
    """Put the first records of a table into the files of its log: its rows, None where there is a log already."""
    columns = changes_schema(table.columns, table.sequence).names
    rows = batch.for_log(batch.timed(judged).select(*[named(name) for name in columns if name != BATCH]))
    count = sum(file.records for file in batch.plan.files_of(table.name))
    return batch.write(f"changes/{table.name}", changes_of(table.name), rows, count)


def apart(  # noqa: PLR0913, PLR0917 - the rows, how many there are of each kind, and where they go
    rows: DataFrame, which: Column, count: int, changed: int, join: ResultSpec, frames: Frames,
    keys: KeyTotals | None = None,
) -> tuple[Inserts | None, DataFrame]:  # fmt: skip
    """Split a join's left rows into those that were inserted and the others, if most were inserted; else keep them all.

    `which`: true for those inserted, `count` of the `changed` rows. `keys`: theirs, where they are known.
    """
    if not pays(frames) or 2 * count <= changed:
        return None, rows
    rest = rows.where(~which) if count < changed else empty(rows.sparkSession, rows.schema)
    return Inserts(inserted(rows.where(which), join), alone=count == changed, keys=keys), rest


def write_join(batch: Batch, pool: ThreadPoolExecutor, join: JoinBatch, count: int) -> JoinBatch:
    """The same join with its rows in files, all at once, where it begins: its gate reads what readers will see of it.

    `count`: how many left rows it begins with. Where a table is there already, all remains as it was.
    """
    if join.first is None:
        return join
    name = join.spec.name
    logs: dict[str, tuple[str, DataFrame, Mapping[str, str], Declaration]] = {
        f"{log}/{messages.spec.name}": (
            table(messages.spec.name),
            batch.for_log(rows),
            LOG_PROPERTIES,
            UNDECLARED,
        )
        for messages in join.messages
        for log, table, rows in (
            ("subscription_log", subscription_log_of, messages.log),
            ("response_log", response_log_of, messages.responses),
        )
    }
    joined = joined_rows(batch.numbered(join.emissions), join.spec)
    of_result = batch.pipeline.joins[name].declared
    rows = {
        **logs,
        f"joined/{name}": (joined_of(name), joined, properties_of(PROPERTIES, of_result), of_result),
    }
    if any(batch.lake.snapshot(table) is not None for table, *_ in rows.values()):
        return join
    writing = {
        stage: pool.submit(batch.write, stage, table, frame, count, stated, declared)
        for stage, (table, frame, stated, declared) in rows.items()
    }
    written = {stage: future.result() for stage, future in writing.items()}
    there = {stage: frame for stage, frame in written.items() if frame is not None}
    if len(there) < len(rows):  # another run has begun one meanwhile
        batch.close(rows)
        return join
    return _read_back(join, there)


def _read_back(batch: JoinBatch, written: Mapping[str, DataFrame]) -> JoinBatch:
    """A join that begins, with its rows read from the files that will be its tables."""
    join = batch.spec
    keyed = written[f"joined/{join.name}"].withColumns(
        {PRIMARY_KEY: joined_left_key(join), TOMBSTONE: F.lit(False)}
    )
    keyed = keyed.withColumns(dict.fromkeys(marks_of(join), F.lit(False)))
    # an insert is a tombstone where its right row goes in the same batch, or the pair does not meet the condition
    if join.may_lack_rows:
        keyed = keyed.unionByName(batch.emissions.where(named(TOMBSTONE)))
    messages = tuple(
        replace(of_side, log=log, responses=written[f"response_log/{of_side.spec.name}"], store=stored(log))
        for of_side in batch.messages
        for log in [written[f"subscription_log/{of_side.spec.name}"]]
    )
    return replace(batch, messages=messages, emissions=keyed, made=batch.emissions)
