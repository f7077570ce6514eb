"""The verdicts of a batch's records, case by case: order, ties, tombstone lines, purged keys, unknown values.

Random histories are held against a model in `tests/properties/test_apply_changes.py`; here are the
cases that explain the rules, and what comes beside a verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from lakejoin.transforms.changelog.apply_changes import apply_changes
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.schemas import (
    BATCH,
    CHANGED,
    CURRENT,
    DELETED,
    DETAIL,
    EXISTED,
    HASH,
    INSERTED,
    POSITION,
    POSITION_TYPE,
    PURGED,
    RAW,
    REASON,
    SEQUENCE,
    TIE,
    UNAVAILABLE,
    VERDICT,
    changes_schema,
    named,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import records_schema

pytestmark = pytest.mark.spark

_COLUMNS = StructType([
    StructField("case", StringType()),
    StructField("no.", LongType()),
    StructField("v", StringType()),
    StructField("w", StringType()),
])  # fmt: skip
_KEY = ("no.", "case")
_BY_LSN = TableSpec("rows", _COLUMNS, _KEY, StructType([StructField("lsn", LongType())]))
_BY_POSITION = replace(_BY_LSN, sequence=POSITION_TYPE)
_FLOOR = 3
_VERDICTS = {
    "A": ("applied", False), "W": ("applied", True), "O": ("out_of_order", False), "D": ("duplicate", False),
    "T": ("tombstone", False), "E": ("expired", False), "I": ("ignored", False), "Q": ("quarantined", False),
}  # fmt: skip
"""W: it won a tie."""


@dataclass(frozen=True)
class Line:
    """A record of a key, on the line after the one before it unless it says otherwise; or the stored row."""

    op: str
    sequence: int | None
    v: str | None = None
    w: str | None = None
    left_out: tuple[str, ...] = ()
    line: int | None = None
    day: int = 1
    file: str = "f"
    context: bool = False
    purged: bool = False

    def position(self, line: int) -> tuple[date, str, int]:
        """Where it stands, given the line after the one before it."""
        return (date(2013, 1, self.day), self.file, self.line or line)


def upsert(sequence: int, v: str = "a", w: str | None = "x", **more: Any) -> Line:
    """A row."""
    return Line("upsert", sequence, v, w, **more)


def partial(sequence: int, v: str = "a", **more: Any) -> Line:
    """A row without the value of w, which had not changed."""
    return Line("upsert", sequence, v, left_out=("w",), **more)


def delete(sequence: int | None, **more: Any) -> Line:
    """A deletion; without sequence, one that stands for a truncation."""
    return Line("delete", sequence, **more)


def tombstone(sequence: int | None = None, **more: Any) -> Line:
    """A line without value, as Debezium writes it behind a deletion."""
    return Line("tombstone", sequence, **more)


def records(
    spark: SparkSession, table: TableSpec, cases: Mapping[str, tuple[Line | None, Sequence[Line]]]
) -> DataFrame:
    """The records of all cases, each case a key of its own."""
    rows = [
        (
            case, 1, line.v, line.w, line.position(number), line.op,
            line.position(number) if table is _BY_POSITION else line.sequence and (line.sequence,), None,
            line.context, line.op == "delete" and line.sequence is None, line.left_out or None, None, None,
            "raw" if line.left_out else None,
        )
        for case, (_, lines) in cases.items()
        for number, line in enumerate(lines, start=1)
    ]  # fmt: skip
    return spark.createDataFrame(rows, records_schema(table))


def stored(
    spark: SparkSession, table: TableSpec, cases: Mapping[str, tuple[Line | None, Sequence[Line]]]
) -> DataFrame:
    """The rows of all cases before the batch."""
    schema = StructType([
        *_COLUMNS, StructField(SEQUENCE, table.sequence), StructField(POSITION, POSITION_TYPE),
        StructField(DELETED, BooleanType()), StructField(PURGED, BooleanType()),
    ])  # fmt: skip
    rows = [
        (case, 1, row.v, row.w, row.position(0) if table is _BY_POSITION else (row.sequence,), row.position(0),
         row.op == "delete", row.purged)
        for case, (row, _) in cases.items() if row is not None
    ]  # fmt: skip
    return spark.createDataFrame(rows, schema).withColumn(HASH, F.when(~F.col(DELETED), value_hash(_COLUMNS)))


def floor(table: TableSpec) -> Column:
    """A floor for sequences; a table that positions order has none here."""
    if table is _BY_POSITION:
        return F.lit(None).cast(table.sequence)
    return F.struct(F.lit(_FLOOR).cast("bigint").alias("lsn"))


def judged(
    spark: SparkSession, table: TableSpec, cases: Mapping[str, tuple[Line | None, Sequence[Line]]]
) -> dict[str, list[Row]]:
    """What becomes of the records of each case, in the order of their positions."""
    found: dict[str, list[Row]] = {case: [] for case in cases}
    frame = apply_changes(records(spark, table, cases), stored(spark, table, cases), table, floor(table))
    for row in frame.orderBy(POSITION).collect():
        found[row["case"]].append(row)
    return found


Cases = Mapping[str, tuple[Line | None, Sequence[Line], str]]
"""The stored row, the records, and a letter of `_VERDICTS` for each."""


def verdicts(spark: SparkSession, table: TableSpec, cases: Cases) -> dict[str, list[tuple[str, bool]]]:
    """Of each record of each case, and whether it won a tie."""
    found = judged(spark, table, {case: (row, lines) for case, (row, lines, _) in cases.items()})
    return {case: [(row[VERDICT], row[TIE]) for row in rows] for case, rows in found.items()}


def expected(cases: Cases) -> dict[str, list[tuple[str, bool]]]:
    """The same as the letters say it."""
    return {case: [_VERDICTS[letter] for letter in letters] for case, (_, _, letters) in cases.items()}


ORDER: Cases = {
    "a newer record replaces": (None, [upsert(5), upsert(6, "b")], "AA"),
    "an older record changes nothing": (None, [upsert(6), upsert(5, "b")], "AO"),
    "an older record than the stored row": (upsert(6), [upsert(5, "b"), upsert(7)], "OA"),
    "a record is held against the greatest before it": (None, [upsert(5), upsert(8), upsert(7)], "AAO"),
    "the same again is a duplicate": (upsert(5), [upsert(5), upsert(6), upsert(6)], "DAD"),
    "of a tie the later one wins": (upsert(5), [upsert(5, "b"), upsert(5)], "WW"),
    "null and empty are other content": (upsert(5, "a", None), [upsert(5, "a", "")], "W"),
    "a tie with a day that was read before it": (upsert(5, day=2), [upsert(5, "b")], "O"),
    "a duplicate of a day that was read before it": (upsert(5, day=2), [upsert(5)], "D"),
    "a value may come back": (upsert(5), [upsert(6, "b"), upsert(7)], "AA"),
    "a deleted key may come back": (upsert(5), [delete(6), upsert(7)], "AA"),
    "a deleted key does not come back with an older row": (delete(6), [upsert(5)], "O"),
    "an unknown key may be deleted": (None, [delete(6), upsert(5)], "AO"),
    "a deletion again": (delete(6), [delete(6), delete(7)], "DA"),
    "what is ignored stands nowhere": (None, [Line("ignored", 9), upsert(5)], "IA"),
}

TOMBSTONES: Cases = {
    "the second line of a deletion": (upsert(5), [delete(6), tombstone(), upsert(7)], "ATA"),
    "its own sequence counts for nothing": (upsert(5), [delete(6), tombstone(9), upsert(7)], "ATA"),
    "of a deletion that came too late": (upsert(5), [delete(4), tombstone(), upsert(5)], "OTD"),
    "of a deletion at the end of the batch before": (
        upsert(5), [delete(4, context=True), tombstone(), upsert(5)], "TD",
    ),
    "not on the next line": (upsert(5), [delete(4), tombstone(line=3)], "OA"),
    "not in the same file": (upsert(5), [delete(4), tombstone(file="g")], "OA"),
    "not of the same day": (upsert(5), [delete(4), tombstone(day=2)], "OA"),
    "not behind a deletion": (None, [upsert(5), tombstone(), tombstone()], "AAT"),
    "behind a truncation, of which a later batch would not know": (
        upsert(5, day=2), [delete(None), tombstone(6)], "OA",
    ),
    "alone, it deletes the row at its sequence": (upsert(5), [tombstone(), upsert(4), upsert(5)], "AOW"),
    "alone, without a row": (delete(5), [tombstone(), upsert(5)], "TW"),
    "alone, of an unknown key": (None, [tombstone(), upsert(4)], "TA"),
    "alone, on a day that was read too late": (upsert(5, day=2), [tombstone(), upsert(5, day=2, line=9)], "OD"),
    "alone, with a sequence, it is a deletion": (upsert(5), [tombstone(4), tombstone(6), upsert(5)], "OAO"),
    "the same of a deleted key": (delete(5), [tombstone(5), tombstone(7), upsert(6)], "DAO"),
    "the same of an unknown key": (None, [tombstone(7), upsert(6), upsert(8)], "AOA"),
    "the same, winning a tie": (upsert(5), [tombstone(5)], "W"),
    "a truncation without sequence": (upsert(5), [delete(None), upsert(4), upsert(6)], "AOA"),
    "a truncation without sequence of a deleted key": (delete(5), [delete(None)], "T"),
}  # fmt: skip

FLOOR: Cases = {
    "an unknown key below the floor": (None, [upsert(2), delete(3), upsert(3)], "EEE"),
    "an unknown key above it": (None, [upsert(2), upsert(4), upsert(3)], "EAO"),
    "a known key below it": (upsert(1), [upsert(2), upsert(3)], "AA"),
    "a tombstone of an unknown key": (None, [tombstone(3), tombstone(), upsert(3)], "ETE"),
    "a value left out": (None, [partial(3), partial(4), upsert(4)], "EQA"),
}

GONE = delete(5, day=2, purged=True)
PURGED_KEY: Cases = {
    "what is older than its tombstone": (GONE, [upsert(4), delete(4), tombstone(4, line=9)], "EEE"),
    "what is newer": (GONE, [upsert(4), upsert(6), upsert(4)], "EAO"),
    "a tie": (GONE, [upsert(5), upsert(5, day=3), upsert(4, day=3, line=9)], "EWO"),
    "its delete again": (GONE, [delete(5), delete(5, day=3), upsert(4, day=3, line=9)], "EDO"),
    "a tombstone line": (GONE, [tombstone(), upsert(6)], "TA"),
    "a value left out": (GONE, [partial(4), partial(6), upsert(6), partial(7)], "EQAA"),
}

LEFT_OUT: Cases = {
    "it is the stored one": (upsert(5), [partial(6, "b"), partial(7, "c")], "AA"),
    "it is that of a record before": (None, [upsert(5), partial(6, "b")], "AA"),
    "it may be null": (upsert(5, "a", None), [partial(6, "b")], "A"),
    "the same again": (upsert(5), [partial(5), partial(6, "b"), upsert(6, "b"), partial(6, "b")], "DADD"),
    "a tie": (upsert(5), [partial(5, "b")], "W"),
    "too late": (upsert(5), [partial(4), upsert(3, "z", "z"), partial(6)], "OOA"),
    "too late for a deleted key": (delete(5), [partial(4)], "O"),
    "too late by its position only": (delete(5, day=2), [partial(5), partial(5, day=2, line=9)], "OQ"),
    "of an unknown key": (None, [partial(9), upsert(5), partial(6)], "QAA"),
    "of a deleted key": (delete(5), [partial(9), upsert(6), partial(7)], "QAA"),
    "after a deletion": (upsert(5), [delete(6), partial(9), tombstone(), upsert(6), partial(8)], "AQTWA"),
    "after a truncation": (upsert(5), [delete(None), partial(9), upsert(6), partial(8)], "AQAA"),
    "each hides a record behind which the next is unknown": (
        None,
        [
            partial(90), upsert(10), delete(11), partial(80), upsert(20), delete(21), partial(70), upsert(30),
            delete(31), partial(60), upsert(40), partial(50), upsert(45),
        ],
        "QAAQAAQAAQAAO",
    ),
}  # fmt: skip


@pytest.mark.bad_input(6)
@pytest.mark.bad_input(7)
@pytest.mark.bad_input(8)
@pytest.mark.bad_input(24)
@pytest.mark.guard("sequence_check")
@pytest.mark.guard("deduplication")
def test_record_is_judged_by_what_its_key_was_before_it(spark: SparkSession) -> None:
    """Each record of each case has its verdict, whatever the records of other keys do."""
    groups = {
        "order": ORDER, "tombstone lines": TOMBSTONES, "floor": FLOOR, "purged key": PURGED_KEY,
        "values left out": LEFT_OUT,
    }  # fmt: skip
    cases = {
        f"{group}: {case}": told for group, told_all in groups.items() for case, told in told_all.items()
    }

    assert verdicts(spark, _BY_LSN, cases) == expected(cases)


def test_value_that_was_left_out_is_filled_in(spark: SparkSession) -> None:
    """With the last value in order before it, and hashed with it; the values that were sent stay."""
    lines = [
        partial(6, "b"), upsert(2, "z", "late"), partial(7, "c"), upsert(8, "d", None), partial(9, "e"),
        Line("upsert", 10, w="f", left_out=("v",)), Line("upsert", 11, left_out=("v", "w")),
    ]  # fmt: skip

    rows = judged(spark, _BY_LSN, {"only": (upsert(5, "a", "x"), lines)})["only"]

    assert [(row["v"], row["w"]) for row in rows if row[VERDICT] == "applied"] == [
        ("b", "x"), ("c", "x"), ("d", None), ("e", None), ("e", "f"), ("e", "f"),
    ]  # fmt: skip
    assert rows[-1][HASH] == rows[-2][HASH] != rows[-3][HASH]


def test_record_with_an_unknown_value_says_which(spark: SparkSession) -> None:
    """The reason, the columns and the raw text are there for quarantine; others have neither reason nor detail."""
    lines = [Line("upsert", 5, left_out=("v", "w")), upsert(6), partial(7)]

    rows = judged(spark, _BY_LSN, {"only": (None, lines)})["only"]

    assert [(row[REASON], row[DETAIL], row[RAW], row[CURRENT]) for row in rows] == [
        ("unavailable_value", "v, w", "raw", False),
        (None, None, None, False),
        (None, None, "raw", True),
    ]


CURRENT_LINES: Mapping[str, tuple[Line | None, Sequence[Line], int | None, bool]] = {
    # the stored row, the records, which of them is the key's state, and whether the key had a row before
    "the last one that was applied": (None, [upsert(5), upsert(7), upsert(6)], 2, False),
    "a duplicate, whose later position counts": (upsert(5), [upsert(5)], 1, True),
    "no duplicate from before the stored row": (upsert(5, day=2), [upsert(5)], None, True),
    "none that was too late": (upsert(5), [upsert(4)], None, True),
    "a deletion": (upsert(5), [delete(6), tombstone()], 1, True),
    "a tombstone line that deletes": (upsert(5), [tombstone()], 1, True),
    "no tombstone line without effect": (delete(5), [tombstone()], None, False),
    "none that is expired or ignored": (None, [upsert(2), Line("ignored", 9)], None, False),
    "none that is quarantined": (delete(5), [partial(6)], None, False),
}


@pytest.mark.bad_input(25)
def test_one_change_of_a_batch_is_its_key_s_state(spark: SparkSession) -> None:
    """Or none, where the key stays as it was."""
    found = judged(spark, _BY_LSN, {case: (row, lines) for case, (row, lines, *_) in CURRENT_LINES.items()})

    for case, (_, lines, line, existed) in CURRENT_LINES.items():
        assert [row[CURRENT] for row in found[case]] == [n == line for n in range(1, len(lines) + 1)], case
        assert {row[EXISTED] for row in found[case]} == {existed}, case


def test_key_is_changed_by_a_record_that_is_applied_and_by_no_other(spark: SparkSession) -> None:
    """All records of a key say whether the batch changed it: one that only met it is not told to the joins."""
    cases: Mapping[str, tuple[Line | None, Sequence[Line], bool]] = {
        "applied between others": (upsert(3), [upsert(2), upsert(4), upsert(4)], True),
        "deleted": (upsert(3), [delete(4), tombstone()], True),
        "met": (upsert(3), [upsert(3)], False),
        "too late": (upsert(3), [upsert(2)], False),
    }
    found = judged(spark, _BY_LSN, {case: (row, lines) for case, (row, lines, _) in cases.items()})

    for case, (_, _, changed) in cases.items():
        assert {row[CHANGED] for row in found[case]} == {changed}, case


def test_plain_insert_is_the_only_change_of_a_key_without_a_row(spark: SparkSession) -> None:
    """And its key's state: of several changes, or where a repeated record moved the row, there is none."""
    cases: Mapping[str, tuple[Line | None, Sequence[Line], list[bool]]] = {
        "new": (None, [upsert(5)], [True]),
        "new again after a deletion": (delete(4), [upsert(5)], [True]),
        "beside one that is too late": (None, [upsert(5), upsert(4)], [True, False]),
        "an update": (upsert(4), [upsert(5)], [False]),
        "changed twice": (None, [upsert(4), upsert(5, "other")], [False, False]),
        "repeated": (None, [upsert(5), upsert(5)], [False, False]),
        "deleted": (None, [delete(5)], [False]),
    }
    found = judged(spark, _BY_LSN, {case: (row, lines) for case, (row, lines, _) in cases.items()})

    for case, (_, _, inserted) in cases.items():
        assert [row[INSERTED] for row in found[case]] == inserted, case


def test_change_has_the_sequence_and_the_hash_of_the_row_it_leaves(spark: SparkSession) -> None:
    """A tombstone line stands where its key stands; a deletion has no hash."""
    lines = [upsert(6, "b"), tombstone()]

    rows = judged(spark, _BY_LSN, {"only": (upsert(5), lines)})["only"]
    hashed = spark.createDataFrame([("only", 1, "b", "x")], _COLUMNS).select(value_hash(_COLUMNS)).first()

    assert [(row[SEQUENCE]["lsn"], row[DELETED]) for row in rows] == [(6, False), (6, True)]
    assert hashed is not None
    assert [row[HASH] for row in rows] == [hashed[0], None]


BY_POSITION: Cases = {
    "what stands later replaces": (None, [upsert(1), upsert(1), delete(1), upsert(1)], "AAAA"),
    "a day that is read too late": (upsert(1, day=2, line=9), [upsert(1), tombstone()], "OO"),
    "the second line of a deletion": (upsert(1, line=1), [delete(1, line=2), tombstone(line=3)], "AT"),
    "a tombstone line alone is a deletion": (None, [tombstone(), tombstone()], "AA"),
    "of an unknown value": (None, [partial(1), upsert(1), partial(1)], "QAA"),
}


def test_position_orders_a_table_without_sequence(spark: SparkSession) -> None:
    """Nothing is a duplicate or a tie, and every tombstone line has a sequence of its own."""
    assert verdicts(spark, _BY_POSITION, BY_POSITION) == expected(BY_POSITION)


def test_key_is_one_only_as_a_whole_and_files_need_no_date(spark: SparkSession) -> None:
    """Two keys with a part in common are applied apart; a null date is a date like any other."""
    cases = {"first": (upsert(5), [delete(6), tombstone(), partial(7)]), "second": (None, [partial(7)])}
    undated = F.col(POSITION).withField("date", F.lit(None).cast("date"))
    given, before = (
        frame(spark, _BY_LSN, cases).withColumn(POSITION, undated) for frame in (records, stored)
    )
    other = given.withColumn("no.", F.lit(2).cast("bigint"))

    rows = apply_changes(given.unionByName(other), before, _BY_LSN, floor(_BY_LSN)).collect()

    found = {(row["case"], row["no."], row[POSITION]["line"]): row[VERDICT] for row in rows}
    assert found == {
        ("first", 1, 1): "applied", ("first", 1, 2): "tombstone", ("first", 1, 3): "quarantined",
        ("first", 2, 1): "applied", ("first", 2, 2): "tombstone", ("first", 2, 3): "quarantined",
        ("second", 1, 1): "quarantined", ("second", 2, 1): "quarantined",
    }  # fmt: skip


def test_apply_changes_needs_no_values_where_none_was_left_out(spark: SparkSession) -> None:
    """Without the column of unavailable values, the stored rows need none either; the columns are the log's."""
    cases = {"only": (upsert(5), [upsert(5), upsert(6)])}
    given = records(spark, _BY_LSN, cases).drop(UNAVAILABLE)
    before = stored(spark, _BY_LSN, cases).select(
        *[named(n) for n in _KEY], SEQUENCE, POSITION, HASH, DELETED
    )

    frame = apply_changes(given, before, _BY_LSN, floor(_BY_LSN))

    log = [name for name in changes_schema(_COLUMNS, _BY_LSN.sequence).names if name != BATCH]
    assert sorted(frame.columns) == sorted([*log, CHANGED, EXISTED, INSERTED, REASON, DETAIL, RAW])
    assert [row[VERDICT] for row in frame.orderBy(POSITION).collect()] == ["duplicate", "applied"]
