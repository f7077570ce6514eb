"""Applying a batch's records gives each the verdict that the model gives, wherever the batch was cut.

Here are the records that flat files cannot hold: values that the source left out, Debezium's tombstone lines, also
alone or with the batch cut between them and their delete, truncations, and a key whose tombstone was purged.

A history is told in several ways: at once, cut anywhere, its last day first. The model gives the rows before and
after each batch, so that the batches of all histories are applied side by side, each as a source of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from lakejoin.transforms.changelog.apply_changes import apply_changes
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.schemas import (
    CURRENT,
    DELETED,
    HASH,
    POSITION,
    POSITION_TYPE,
    PURGED,
    SEQUENCE,
    TIE,
    VERDICT,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import records_schema
from reference.tables import Judged, Position, Record, Table
from reference.tables import Row as KeyRow

pytestmark = pytest.mark.spark

_HISTORIES = 200
"""Told side by side: an evaluation costs little more for many than for one."""
_DAYS = ("2024-01-01", "2024-01-02")
_FILE = "rows.jsonl"
_PURGED = 2
"""Sequence of the purged tombstone."""
_PURGED_AT = ("2024-01-02", "purged.jsonl", 1)
"""Its position: behind the records of the first day."""
_VALUES = ("v", "w")
_NOTHING: Mapping[str, None] = dict.fromkeys(_VALUES)
_COLUMNS = StructType([
    StructField("source", LongType()),
    StructField("key", StringType()),
    *[StructField(name, StringType()) for name in _VALUES],
])  # fmt: skip
_BY_LSN = TableSpec("rows", _COLUMNS, ("source", "key"), StructType([StructField("lsn", LongType())]))
_BY_POSITION = replace(_BY_LSN, sequence=POSITION_TYPE)

_KINDS = (
    *["upsert"] * 4, *["partial upsert"] * 4, *["delete"] * 2, *["delete, tombstone"] * 2, *["tombstone"] * 2,
    *["again"] * 3, "truncation", "ignored",
)  # fmt: skip
_GREATEST = 8

Place = tuple[Position, str]
"""Position and key of a record."""


@dataclass(frozen=True)
class Telling:
    """A history as it comes in: the records of each batch, in the order of their positions."""

    batches: Sequence[Sequence[Record]]

    def judge(self, table: Table) -> Iterator["Batch"]:
        """Give each batch to the model, one after the other."""
        told: list[Record] = []
        for records in self.batches:
            before = dict(table.rows)
            purged = {key: row for key, row in table.purged.items() if key not in before}
            judged = table.take(records)
            context = [record for record in told if not record.derived and _stands_before(record, records)]
            yield Batch(context, records, before, purged, judged, dict(table.rows))
            told += records


@dataclass(frozen=True)
class Batch:
    """What the model makes of a batch."""

    context: Sequence[Record]
    """The line before its own in each file."""
    records: Sequence[Record]
    before: Mapping[Any, KeyRow]
    purged: Mapping[Any, KeyRow]
    """Tombstones that the rows have forgotten."""
    judged: Sequence[Judged]
    after: Mapping[Any, KeyRow]

    @property
    def verdicts(self) -> dict[Place, tuple[str, bool]]:
        """Of each record its verdict, and whether it won a tie."""
        return {(j.record.position, str(j.record.key)): (j.verdict, j.tie) for j in self.judged}

    def __str__(self) -> str:
        """Say what is in the batch, a line for each row or record."""
        rows = [f"  stored {key} {row.sequence} {row.value}" for key, row in self.before.items()]
        rows += [f"  purged {key} {row.sequence}" for key, row in self.purged.items()]
        lines = [f"  {verdict} {_text(record)}" for verdict, record in self._told()]
        return "\n".join([*rows, *lines])

    def _told(self) -> Iterable[tuple[str, Record]]:
        yield from (("context", record) for record in self.context)
        for record, judged in zip(self.records, self.judged, strict=True):
            yield f"{judged.verdict}{' (tie)' if judged.tie else ''} is expected of", record


def _text(record: Record) -> str:
    day, _, line = record.position
    left_out = f", left out {record.unavailable}" if record.unavailable else ""
    return (
        f"{day} line {line}: {record.op} {record.key}, sequence {record.sequence}, {record.value}{left_out}"
    )


def _stands_before(record: Record, batch: Sequence[Record]) -> bool:
    """Whether it is the line before the first that a batch reads of its file."""
    lines = [other.position[2] for other in batch if other.position[:2] == record.position[:2]]
    return bool(lines) and record.position[2] == min(lines) - 1


def _history(random: Random) -> list[Record]:
    """A few lines for two keys in the files of two days; values and sequences come back all the time."""
    records: list[Record] = []
    newest, wild = random.choice([0, _PURGED]), random.random() < 0.5
    line, day = 0, 0
    for _ in range(random.randint(2, 12)):
        sequence = random.randint(0, _GREATEST) if wild else max(0, newest + random.choice([1, 1, 1, 0, -2]))
        newest = max(newest, sequence)
        if day == 0 and random.random() < 0.15:
            line, day = 0, 1
        for record in _change(random, sequence, records):
            line += 1
            records.append(replace(record, position=(_DAYS[day], _FILE, line)))
    return records


def _change(random: Random, sequence: int, records: Sequence[Record]) -> list[Record]:
    """The lines of a change, without their positions; perhaps one that came before."""
    kind, key, nowhere = random.choice(_KINDS), random.choice("jk"), ("", "", 0)
    v, w = random.choice("ab"), random.choice("xy")
    match kind:
        case "again":
            return [random.choice(records)] if records else []
        case "upsert":
            return [Record(key, "upsert", nowhere, {"v": v, "w": w}, sequence)]
        case "partial upsert":
            return [Record(key, "upsert", nowhere, {"v": v, "w": None}, sequence, ("w",))]
        case "truncation":
            return [Record(key, "delete", nowhere, derived=True)]
        case "ignored":
            return [Record(key, "ignored", nowhere, sequence=sequence)]
    delete = Record(key, "delete", nowhere, sequence=sequence)
    tombstone = Record(key, "tombstone", nowhere, sequence=random.choice([None, sequence, sequence + 1]))
    return {"delete": [delete], "tombstone": [tombstone], "delete, tombstone": [delete, tombstone]}[kind]


def _tellings(history: Sequence[Record], random: Random) -> list[Telling]:
    """At once, cut anywhere, and with the days the wrong way round."""
    days = [list(records) for _, records in groupby(history, lambda record: record.position[0])]
    backwards = [batch for day in reversed(days) for batch in _cut(day, random)]
    return [Telling([history]), Telling(_cut(history, random)), Telling(backwards)]


def _cut(records: Sequence[Record], random: Random) -> list[Sequence[Record]]:
    share = random.choice([0.1, 0.3, 1])
    ends = [end for end in range(1, len(records)) if random.random() < share]
    return [records[start:end] for start, end in zip([0, *ends], [*ends, len(records)], strict=True)]


def _batches(random: Random, *, by_position: bool) -> Iterator[Batch]:
    for _ in range(_HISTORIES):
        at_once, *others = _tellings(_history(random), random)
        judged = list(at_once.judge(_model(by_position=by_position)))
        yield from judged
        for telling in others:
            told = list(telling.judge(_model(by_position=by_position)))
            yield from told
            in_order = [record for batch in telling.batches for record in batch] == at_once.batches[0]
            if in_order:
                assert {p: v for batch in told for p, v in batch.verdicts.items()} == judged[0].verdicts


def _model(*, by_position: bool) -> Table:
    tombstone = KeyRow(None, _PURGED_AT if by_position else _PURGED, _PURGED_AT)
    return Table(by_position=by_position, purged={"j": tombstone})


def _records(spark: SparkSession, batches: Sequence[Batch], table: TableSpec) -> DataFrame:
    rows = [
        _source_row(source, record, table, context=context)
        for source, batch in enumerate(batches)
        for context, records in ((True, batch.context), (False, batch.records))
        for record in records
    ]
    return spark.createDataFrame(rows, records_schema(table), verifySchema=False)


def _source_row(source: int, record: Record, table: TableSpec, *, context: bool) -> tuple[Any, ...]:
    value = record.value or _NOTHING
    position = _place(record.position)
    own = None if record.sequence is None else (record.sequence,)
    sequence = position if table is _BY_POSITION else own
    unavailable = list(record.unavailable) or None
    internal = (record.op, sequence, None, context, record.derived, unavailable, None, None, None)
    return (source, record.key, *[value[name] for name in _VALUES], position, *internal)


def _place(position: Position) -> tuple[date, str, int]:
    return (date.fromisoformat(position[0]), *position[1:])


def _stored(spark: SparkSession, batches: Sequence[Batch], table: TableSpec) -> DataFrame:
    rows = [
        (source, key, *_row(row, table), row.value is None, rows is batch.purged)
        for source, batch in enumerate(batches)
        for rows in (batch.before, batch.purged)
        for key, row in rows.items()
    ]
    schema = StructType([
        *_COLUMNS, StructField(SEQUENCE, table.sequence), StructField(POSITION, POSITION_TYPE),
        StructField(DELETED, BooleanType()), StructField(PURGED, BooleanType()),
    ])  # fmt: skip
    stored = spark.createDataFrame(rows, schema, verifySchema=False)
    return stored.withColumn(HASH, F.when(~F.col(DELETED), value_hash(_COLUMNS)))


def _row(row: KeyRow, table: TableSpec) -> tuple[Any, ...]:
    """Values, sequence and position, as Spark has them."""
    sequence = _place(row.sequence) if table is _BY_POSITION else (row.sequence,)
    return (*(row.value or _NOTHING).values(), sequence, _place(row.position))


def _check(batch: Batch, table: TableSpec, found: Sequence[Row]) -> None:
    """Hold the verdicts of a batch and the rows it leaves against the model's."""
    verdicts = {
        ((row[POSITION]["date"].isoformat(), *row[POSITION][1:]), row["key"]): (row[VERDICT], row[TIE])
        for row in found
    }
    assert verdicts == batch.verdicts, f"in the batch\n{batch}"
    rows = {key: _row(row, table) for key, row in batch.before.items()}
    current = [row for row in found if row[CURRENT]]
    assert len(current) == len({row["key"] for row in current})
    for row in current:
        rows[row["key"]] = (row["v"], row["w"], tuple(row[SEQUENCE]), tuple(row[POSITION]))
    assert rows == {key: _row(row, table) for key, row in batch.after.items()}, f"rows after\n{batch}"


@pytest.mark.parametrize("table", [_BY_LSN, _BY_POSITION], ids=["by sequence", "by position"])
@settings(max_examples=3, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(seed=st.integers(0, 2**32 - 1))
def test_apply_changes_gives_the_verdicts_of_the_model_wherever_batches_are_cut(
    table: TableSpec, seed: int, spark: SparkSession
) -> None:
    """Each record's verdict, each tie and each row is the model's, which knows nothing of batches.

    Where several batches fail, the shortest is shown.
    """
    batches = list(_batches(Random(seed), by_position=table is _BY_POSITION))
    floor = F.lit(None).cast(table.sequence)
    judged = apply_changes(
        _records(spark, batches, table), _stored(spark, batches, table), table, floor
    ).collect()

    found: dict[int, list[Row]] = {source: [] for source in range(len(batches))}
    for row in judged:
        found[row["source"]].append(row)
    for source in sorted(found, key=lambda source: len(batches[source].judged)):
        _check(batches[source], table, found[source])


@pytest.mark.parametrize("table", [_BY_LSN, _BY_POSITION], ids=["by sequence", "by position"])
def test_a_key_with_one_record_is_judged_the_same_without_sorting(
    table: TableSpec, spark: SparkSession
) -> None:
    """Whatever its row was: applying them without a sort gives what the windows give."""
    batches = list(_batches(Random(17), by_position=table is _BY_POSITION))
    once = [
        replace(batch, context=[], records=[record])
        for batch in batches
        for record in batch.records
        if sum(other.key == record.key for other in (*batch.context, *batch.records)) == 1
    ]
    given, stored = _records(spark, once, table), _stored(spark, once, table)
    floor = F.lit(None if table is _BY_POSITION else f'{{"lsn": {_PURGED}}}')

    sorted_ones, alone = (
        apply_changes(given, stored, table, F.from_json(floor, table.sequence), alone=alone)
        for alone in (False, True)
    )

    assert "Window" not in alone._jdf.queryExecution().optimizedPlan().toString()
    rows, others = (sorted(map(repr, frame.collect())) for frame in (sorted_ones, alone))
    assert rows == others
    verdicts = {row[VERDICT] for row in alone.select(VERDICT).distinct().collect()}
    # a position is a sequence that never comes twice
    twice = set() if table is _BY_POSITION else {"duplicate", "tombstone"}
    assert verdicts >= {"applied", "out_of_order", "expired", "quarantined"} | twice
