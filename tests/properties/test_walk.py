"""The walk over a batch's records gives each the verdict that the model gives, wherever the batch was cut.

Here are the records that flat files cannot hold: Debezium's tombstone lines, also alone or with the batch cut
between them and their delete, ignored messages, and keys below the floor that a purge left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from reference.tables import Op, Position, Record, Table
from transforms.changes import walk
from transforms.schemas import (
    CONTEXT,
    CURRENT,
    DELETED,
    DERIVED,
    DETAIL,
    HASH,
    HASH_TYPE,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIE,
    TIME,
    UNAVAILABLE,
    VERDICT,
    TableSpec,
)

_SIDE_BY_SIDE = 120
_BATCHES = 4
_FLOOR = 2

_SEQUENCE_TYPE = StructType([StructField("lsn", LongType())])
_VALUES = ("v", "w")
_COLUMNS = StructType([
    StructField("source", LongType()),
    StructField("key", StringType()),
    *[StructField(name, StringType()) for name in _VALUES],
])  # fmt: skip
_TABLE = TableSpec("rows", _COLUMNS, ("source", "key"), _SEQUENCE_TYPE)
_RECORDS = StructType([
    *_TABLE.columns,
    StructField(POSITION, POSITION_TYPE),
    StructField(OP, StringType()),
    StructField(SEQUENCE, _SEQUENCE_TYPE),
    StructField(TIME, TimestampType()),
    StructField(CONTEXT, BooleanType()),
    StructField(DERIVED, BooleanType()),
    StructField(UNAVAILABLE, ArrayType(StringType())),
    *[StructField(name, StringType()) for name in (REASON, DETAIL, RAW)],
])  # fmt: skip
_STORED = StructType([
    *_COLUMNS,
    StructField(SEQUENCE, _SEQUENCE_TYPE),
    StructField(POSITION, POSITION_TYPE),
    StructField(HASH, HASH_TYPE),
    StructField(DELETED, BooleanType()),
])  # fmt: skip

_KINDS: tuple[str, ...] = (
    *["upsert"] * 4, *["partial upsert"] * 2, "delete", *["delete, tombstone"] * 2, "tombstone", "ignored",
)  # fmt: skip
_ORDERS = ("next", "next", "next", "tie", "back")
# one choice for a line, not five: a draw may only be so large
_LINE = st.sampled_from(list(product(_KINDS, "jk", "ab", "xy", _ORDERS, (True, False))))


@dataclass(frozen=True)
class Source:
    """The lines of one source file, each a record, and the batch in which each line is read."""

    records: Sequence[Record]
    batches: Sequence[int]

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        # printed whole for every failure, however long: what is wrong is told by the comparison
        printer.text(f"{len(self.records)} records")


@st.composite
def sources(draw: st.DrawFn) -> Source:
    """A file of a few lines for two keys, cut into ranges of lines."""
    records: list[Record] = []
    newest = draw(st.sampled_from([0, _FLOOR]))
    for kind, key, v, w, order, numbered in draw(st.lists(_LINE, min_size=3, max_size=10)):
        sequence = max(0, newest + {"next": 1, "tie": 0, "back": -2}[order])
        newest = max(newest, sequence)
        partial = kind.startswith("partial")
        ops: list[Any] = kind.removeprefix("partial ").split(", ")
        for op in ops:
            value = {"v": v, "w": None if partial else w} if op == "upsert" else None
            own = None if op == "tombstone" and not numbered else sequence
            position = ("", "", len(records) + 1)
            records.append(Record(key, op, position, value, own, ("w",) if partial else ()))
    ends = [draw(st.integers(0, len(records))) for _ in range(_BATCHES - 1)]
    return Source(records, [sum(end <= line for end in ends) for line in range(len(records))])


@dataclass
class _Walks:
    """Walks batch after batch; the rows in between are kept as the product keeps them."""

    spark: SparkSession
    files: Sequence[Source]
    model: Table = field(default_factory=lambda: Table(floor=_FLOOR))
    stored: dict[tuple[int, str], Row] = field(default_factory=dict)

    def compare(self, batch: int) -> None:
        """Walk a batch and hold every verdict against the model's."""
        judged = self.model.take(self._records(batch))
        expected = {j.record.position: (j.verdict, j.tie) for j in judged}
        walked = walk(
            self._frame(batch), self._before(), _TABLE, F.struct(F.lit(_FLOOR).alias("lsn"))
        ).collect()
        got = {_place(row[POSITION]): (row[VERDICT], row[TIE]) for row in walked}
        assert len(got) == len(walked)
        for place in sorted(expected.keys() | got.keys()):
            assert got.get(place) == expected.get(place), self._told(batch, place)
        for row in walked:
            if row[CURRENT]:
                self.stored[row["source"], row["key"]] = row

    def compare_rows(self) -> None:
        """Hold the rows after the last batch against the model's: value, sequence, position."""
        gone = dict.fromkeys(_VALUES)
        rows = {k: (row.value or gone, row.sequence, row.position) for k, row in self.model.rows.items()}
        assert rows == {
            key: ({name: row[name] for name in _VALUES}, row[SEQUENCE]["lsn"], _place(row[POSITION]))
            for key, row in self.stored.items()
        }

    def _records(self, batch: int) -> Iterable[Record]:
        for number, source in enumerate(self.files):
            for record, read_in in zip(source.records, source.batches, strict=True):
                if read_in == batch:
                    key = (number, record.key)
                    yield replace(record, key=key, position=_named(number, record))

    def _frame(self, batch: int) -> DataFrame:
        rows = []
        for number, source in enumerate(self.files):
            lines = [i for i, read_in in enumerate(source.batches) if read_in == batch]
            if lines and lines[0] > 0:
                rows.append(_source_row(number, source.records[lines[0] - 1], context=True))
            rows += [_source_row(number, source.records[i], context=False) for i in lines]
        return self.spark.createDataFrame(rows, _RECORDS)

    def _before(self) -> DataFrame:
        rows = [[row[f.name] for f in _STORED] for row in self.stored.values()]
        return self.spark.createDataFrame(rows, _STORED)

    def _told(self, batch: int, place: Position) -> str:
        source = self.files[int(place[1])]
        lines = "\n".join(
            f"  batch {read_in}: {r.position[2]} {r.key} {r.op} {r.value} lsn {r.sequence} {r.unavailable}"
            for r, read_in in zip(source.records, source.batches, strict=True)
        )
        return f"batch {batch}, line {place[2]} of\n{lines}"


def _named(number: int, record: Record) -> Position:
    return ("2024-01-01", str(number), record.position[2])


def _place(position: Row) -> Position:
    return (position["date"].isoformat(), position["file"], position["line"])


def _source_row(number: int, record: Record, *, context: bool) -> tuple[Any, ...]:
    value: Mapping[str, Any] = record.value or dict.fromkeys(_VALUES)
    position = (date(2024, 1, 1), str(number), record.position[2])
    op: Op = record.op
    sequence = None if record.sequence is None else (record.sequence,)
    unavailable = list(record.unavailable) or None
    internal = (position, op, sequence, None, context, False, unavailable, None, None, None)
    return (number, record.key, *[value[name] for name in _VALUES], *internal)


@pytest.mark.spark
@pytest.mark.slow
@settings(
    max_examples=4,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(files=st.lists(sources(), min_size=_SIDE_BY_SIDE, max_size=_SIDE_BY_SIDE))
def test_walk_gives_the_verdicts_of_the_model_wherever_batches_are_cut(
    files: list[Source], spark: SparkSession
) -> None:
    """Each record's verdict, each tie and each row is the model's, which knows nothing of batches."""
    assume(len({source.records[0].op for source in files}) > 1)
    walks = _Walks(spark, files)
    for batch in range(_BATCHES):
        walks.compare(batch)
    walks.compare_rows()
