"""Says what helps where a gate lets a batch not pass: which records of the batch changed the rows, and the commands."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from json import JSONDecoder

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import rebuild_command
from lakejoin.transforms.foreign_key_join.batch import JoinBatch, Messages
from lakejoin.transforms.groups.batch import GroupBatch
from lakejoin.transforms.model.join_sides import joined_left_key
from lakejoin.transforms.model.schemas import POSITION, named

_RECORDS = 5
"""Records of a table that a command names at most."""
_KEY = '{"primary_key":'


def quarantine_command(pipeline: Pipeline, table: str, records: Sequence[tuple[str, int]]) -> str:
    """The command that puts records of a batch, by file and line, into quarantine."""
    named_records = "".join(f" --record {shlex.quote(f'{file}:{line}')}" for file, line in records)
    return f"`lakejoin quarantine add {pipeline.path} {table}{named_records}`"


def ways_out(
    batch: Batch, joins: Mapping[str, JoinBatch | GroupBatch], tables: Mapping[str, TableBatch], name: str,
    *, samples: Collection[str], rules: Sequence[str],
) -> Iterator[str]:  # fmt: skip
    """Yield the lines of a message that say what helps.

    `joins`: those that ran before in the batch, and the one of this `name`. `samples`: some of the offending keys, as
    the gate shows them. `rules`: those that are broken, if they can be accepted.
    """
    pipeline, plan = batch.pipeline, batch.plan
    # those that begin anew in this run are not in its plan: without them here they would fail again
    planned = batch.journal.unfinished.joins if batch.journal.unfinished else plan.joins
    going = [join for join in planned if join not in plan.joins and join in pipeline.rebuildable]
    yield f"Batch {plan.batch} is under way, and stands as it is planned. One of these goes on from here:"
    yield f"  compute the join anew from its tables: {rebuild_command(pipeline, [*going, name])}"
    failed = joins[name]
    of_totals = isinstance(failed, GroupBatch) and failed.store is None  # which are of no record
    found = {} if of_totals else _records(batch, joins, tables, name, samples)
    for table, records in found.items():
        yield f"  put what changed these rows into quarantine: {quarantine_command(pipeline, table, records)}"
    if not found and not of_totals:
        yield (
            "  (no record that can be put into quarantine changed these rows in this batch; a file that was read "
            "before is corrected with `--replace`)"
        )
    if rules:
        accepted = " ".join(f"--accept {rule}" for rule in rules)
        yield f"  publish the batch all the same; it is recorded: `lakejoin run {pipeline.path} {accepted}`"


def _records(
    batch: Batch, joins: Mapping[str, JoinBatch | GroupBatch], tables: Mapping[str, TableBatch], name: str,
    samples: Collection[str],
) -> dict[str, list[tuple[str, int]]]:  # fmt: skip
    """The first records of the batch with the offending keys, and with the right keys that they were joined by."""
    found: dict[str, list[tuple[str, int]]] = {}
    keys = _keys(batch, joins[name], samples)
    while name in joins:
        join = joins[name]
        for messages in join.messages if isinstance(join, JoinBatch) else ():
            if messages.spec.right in tables:  # a group is of many records
                _look_up(batch, tables, messages.spec.right, _right_keys(messages, keys), found)
        name = join.spec.left
        if name in joins:
            if isinstance(joins[name], GroupBatch):
                break
            # as keys of the left rows that the joined rows were made of, which may have other names
            keys = keys.select(joined_left_key(joins[name].spec).alias("key")).select("key.*")
    _look_up(batch, tables, name, keys, found)
    return dict(sorted(found.items(), key=lambda item: list(tables).index(item[0])))


def _keys(batch: Batch, join: JoinBatch | GroupBatch, samples: Collection[str]) -> DataFrame:
    texts = sorted({_key_text(sample) for sample in samples})
    of_type = join.spec.primary_key_type
    # the rules read the left key of every row, whatever identifies it in the joined table
    rows = batch.spark.createDataFrame([(text,) for text in texts], "text string")
    return rows.select(F.from_json("text", of_type).alias("key")).select("key.*")


def _key_text(sample: str) -> str:
    """The text of the key that a sample begins with."""
    _, end = JSONDecoder().raw_decode(sample, len(_KEY))
    return sample[len(_KEY) : end]


def _right_keys(messages: Messages, keys: DataFrame) -> DataFrame:
    """The right keys that messages and answers of some left keys name."""
    names = [name for name in messages.spec.left_key if name in keys.columns]
    sent = messages.log.select("primary_key", "foreign_key")
    answers = messages.responses.select("primary_key", "foreign_key")
    rows = sent.unionByName(answers).where(F.col("foreign_key").isNotNull())
    met = _beside(rows, keys, {name: F.col("primary_key")[name] for name in names})
    return met.select("foreign_key.*").distinct()


def _look_up(
    batch: Batch, tables: Mapping[str, TableBatch], name: str, keys: DataFrame,
    found: dict[str, list[tuple[str, int]]],
) -> None:  # fmt: skip
    """Add the places of a table's records of the batch with some keys to `found`."""
    read = {file.name: file for file in batch.plan.files_of(name)}
    if not read or not batch.pipeline.inputs[name].source_format.has_lines:
        return
    table = tables[name]
    records = table.applied.where(F.col(POSITION)["file"].isin(*read))
    met = _beside(
        records, keys, {column: named(column) for column in table.spec.key if column in keys.columns}
    )
    # the last ones made the rows what they are
    places = met.select(POSITION).distinct().orderBy(F.desc(POSITION)).limit(_RECORDS).collect()
    stands = [(row[0]["file"], row[0]["line"]) for row in places]
    here = [(file, line) for file, line in stands if read[file].from_line < line <= read[file].to_line]
    if here:
        found[name] = sorted({*found.get(name, ()), *here})


def _beside(rows: DataFrame, keys: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """The rows that have one of the keys."""
    renamed = keys.select(*[named(name).alias(f"_lj_key_{name}") for name in columns])
    equal = [value.eqNullSafe(F.col(f"_lj_key_{name}")) for name, value in columns.items()]
    return rows.join(F.broadcast(renamed), reduce(Column.__and__, equal), "left_semi")
