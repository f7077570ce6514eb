"""The model of change data: verdicts, ties, tombstones, purged keys, and that no cut into batches matters."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.events import foreign_key
from reference.foreign_key_join import ForeignKeyJoin, How, fold
from reference.tables import Op, Record, Row, Table, count, relational_join

A, B = {"v": "a"}, {"v": "b"}


def _record(line: int, sequence: Any, value: Any = None, op: Op | None = None, day: int = 1) -> Record:
    position = (f"2024-01-{day:02}", "rows.jsonl", line)
    return Record("k", op or ("upsert" if value else "delete"), position, value, sequence)


def _verdicts(table: Table, *batch: Record) -> list[str]:
    return [judged.verdict for judged in table.take(batch)]


@pytest.mark.parametrize(
    ("records", "verdicts", "value"),
    [
        pytest.param([(1, A), (2, B)], ["applied", "applied"], B, id="a newer record replaces"),
        pytest.param([(2, A), (1, B)], ["applied", "out_of_order"], A, id="an older record changes nothing"),
        pytest.param([(2, A), (1, A), (2, A)], ["applied", "out_of_order", "duplicate"], A, id="a maximum"),
        pytest.param([(1, A), (1, A)], ["applied", "duplicate"], A, id="a redelivered record is a duplicate"),
        pytest.param([(1, A), (1, B)], ["applied", "applied"], B, id="of a tie the later position wins"),
        pytest.param([(1, A), (2, B), (3, A)], ["applied"] * 3, A, id="a value may come back"),
        pytest.param([(1, A), (2, None), (3, A)], ["applied"] * 3, A, id="a deleted key may come back"),
        pytest.param([(2, None), (1, A)], ["applied", "out_of_order"], None, id="no row comes back"),
        pytest.param(
            [(1, A), (2, None), (2, None)], ["applied"] * 2 + ["duplicate"], None, id="a delete again"
        ),
        pytest.param([(1, A), (2, None), (3, None)], ["applied"] * 3, None, id="a newer delete"),
        pytest.param([(1, A), (1, None)], ["applied", "applied"], None, id="a delete may win a tie"),
    ],
)
def test_record_is_judged_by_its_sequence(
    records: list[tuple[int, Any]], verdicts: list[str], value: dict[str, str] | None
) -> None:
    """A record counts unless its key has had a greater sequence, or the same record."""
    batch = [_record(line, sequence, found) for line, (sequence, found) in enumerate(records, start=1)]
    table = Table()
    assert _verdicts(table, *batch) == verdicts
    assert table.current() == ({} if value is None else {"k": value})


def test_batch_is_walked_by_position_whatever_its_order() -> None:
    """The order in which a batch's records are handed over does not matter."""
    table = Table()
    table.take([_record(2, 1, B), _record(1, 1, A)])
    assert table.current() == {"k": B}


def test_tie_with_an_earlier_day_is_lost_when_the_days_come_in_the_wrong_order() -> None:
    """The day that was read first but stands later keeps the key."""
    table = Table()
    table.take([_record(1, 1, B, day=2)])
    assert _verdicts(table, _record(1, 1, A, day=1)) == ["out_of_order"]
    assert table.current() == {"k": B}


def test_duplicate_moves_the_row_to_its_position() -> None:
    """A redelivery after a tie's other content stands later than it, in every order of days."""
    first, tie, again = _record(1, 1, A, day=1), _record(1, 1, B, day=2), _record(1, 1, A, day=3)
    table = Table()
    assert _verdicts(table, first) + _verdicts(table, again) + _verdicts(table, tie) == [
        "applied", "duplicate", "out_of_order",
    ]  # fmt: skip
    assert table.current() == {"k": A}


def test_position_orders_a_table_without_sequence() -> None:
    """Without a declared sequence a repeated record is an ordinary change, an earlier day is out of order."""
    table = Table(by_position=True)
    assert _verdicts(table, _record(1, None, A, day=2), _record(2, None, A, day=2)) == ["applied", "applied"]
    assert _verdicts(table, _record(1, None, B, day=1)) == ["out_of_order"]
    assert table.current() == {"k": A}


def test_tombstone_line_after_its_delete_changes_nothing() -> None:
    """Debezium's second line of a delete is counted, also when a batch ends between the two."""
    table = Table()
    table.take([_record(1, 1, A), _record(2, 2)])
    assert _verdicts(table, _record(3, None, op="tombstone")) == ["tombstone"]


def test_tombstone_line_after_a_late_delete_leaves_the_newer_row() -> None:
    """The second line of an out-of-order delete deletes nothing either."""
    table = Table()
    late = [_record(1, 5, A), _record(2, 2), _record(3, None, op="tombstone")]
    assert _verdicts(table, *late) == ["applied", "out_of_order", "tombstone"]
    assert table.current() == {"k": A}


def test_tombstone_line_belongs_to_the_delete_on_the_line_before_it_only() -> None:
    """A tombstone further down is one of its own: otherwise its effect would depend on where a batch ends."""
    table = Table()
    other = Record("j", "upsert", ("2024-01-01", "rows.jsonl", 3), A, 1)
    lines = [_record(1, 5, A), _record(2, 2), other, _record(4, None, op="tombstone")]
    assert _verdicts(table, *lines) == ["applied", "out_of_order", "applied", "applied"]
    assert table.current() == {"j": A}


def test_tombstone_line_alone_deletes_its_key() -> None:
    """A tombstone without a delete before it deletes, and stands where its key stands."""
    table = Table()
    assert _verdicts(table, _record(1, 5, A), _record(2, None, op="tombstone")) == ["applied", "applied"]
    assert _verdicts(table, _record(3, None, op="tombstone")) == ["tombstone"]
    assert _verdicts(table, _record(4, 4, B)) == ["out_of_order"]
    assert table.current() == {}


def test_tombstone_line_with_a_sequence_of_its_own_is_a_delete() -> None:
    """Of an unknown key as well: an older record that is read later does not bring the key back."""
    table = Table()
    assert _verdicts(table, _record(1, 7, op="tombstone"), _record(2, 6, A)) == ["applied", "out_of_order"]
    assert _verdicts(table, _record(3, 8, A), _record(4, 9, op="tombstone")) == ["applied", "applied"]


def test_second_line_of_a_delete_counts_for_nothing() -> None:
    """Also with a sequence of its own, which no row would keep for the next batch."""
    table = Table()
    assert _verdicts(table, _record(1, 5), _record(2, 9, op="tombstone"), _record(3, 6, A)) == [
        "applied", "tombstone", "applied",
    ]  # fmt: skip


def test_truncation_without_a_sequence_stands_where_its_key_stands() -> None:
    """It deletes what is there, and is no first line of a tombstone line: a later batch would not know of it."""
    table = Table()
    truncation = replace(_record(2, None), derived=True)
    assert _verdicts(table, _record(1, 5, A), truncation, _record(3, 7, op="tombstone")) == ["applied"] * 3
    assert _verdicts(table, replace(truncation, key="unknown"), _record(4, 7, A)) == ["tombstone", "applied"]
    assert _verdicts(table, truncation) == ["out_of_order"]
    assert table.current() == {"k": A}


def _partial(line: int, sequence: int, day: int = 1) -> Record:
    return replace(_record(line, sequence, {"v": "b", "w": None}, day=day), unavailable=("w",))


def test_value_that_the_source_left_out_is_the_one_its_key_had() -> None:
    """An unavailable column keeps its value, from the row or from an earlier record of the batch."""
    table = Table()
    assert _verdicts(table, _record(1, 1, {"v": "a", "w": "x"}), _partial(2, 2)) == ["applied", "applied"]
    assert table.current() == {"k": {"v": "b", "w": "x"}}
    assert _verdicts(table, _partial(2, 2)) == ["duplicate"]


def test_record_is_quarantined_when_the_value_it_left_out_is_unknown() -> None:
    """Without a row to take the value from, the record is kept aside and holds no place in the order."""
    table = Table()
    assert _verdicts(table, _partial(1, 9), _record(2, 1, A)) == ["quarantined", "applied"]
    assert _verdicts(table, _record(3, 2), _partial(4, 1), _partial(5, 3)) == [
        "applied", "out_of_order", "quarantined",
    ]  # fmt: skip


def test_ignored_record_changes_nothing() -> None:
    """A message that is no change is counted and not held against any sequence."""
    table = Table()
    assert _verdicts(table, _record(1, 9, op="ignored"), _record(2, 1, A)) == ["ignored", "applied"]


def test_late_record_of_a_purged_key_is_expired() -> None:
    """A record older than the purged tombstone brings no row back; a newer one does, of this key and of others."""
    table = Table()
    table.take([_record(1, 5, A), _record(2, 6)])
    table.purge(["k", "never seen"])
    assert table.rows == {}
    other = replace(_record(4, 1, A), key="other")
    assert _verdicts(table, _record(3, 5, A), other, _record(5, 7, B), _record(6, 6, A)) == [
        "expired", "applied", "applied", "out_of_order",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "verdict"),
    [(_record(3, 6, A), "applied"), (_record(3, 6), "duplicate"), (_record(1, 6, A), "expired")],
    ids=["a tie", "the same again", "at an earlier position"],
)
def test_record_at_the_sequence_of_a_purged_tombstone_is_judged_beside_it(
    record: Record, verdict: str
) -> None:
    """As if it were still there."""
    table = Table(purged={"k": Row(None, 6, ("2024-01-01", "rows.jsonl", 2))})
    assert _verdicts(table, record) == [verdict]


def test_purge_keeps_rows_that_exist() -> None:
    """Only tombstones can be forgotten."""
    table = Table()
    table.take([_record(1, 5, A)])
    table.purge(["k"])
    assert (table.current(), table.purged) == ({"k": A}, {})


def test_counts_name_every_record_once() -> None:
    """The verdicts of a batch add up to its records; a tie is one of the applied."""
    table = Table()
    counts = count(table.take([_record(1, 1, A), _record(2, 1, B), _record(3, 1, B), _record(4, 0, A)]))
    assert counts == {"records": 4, "applied": 2, "tie": 1, "duplicate": 1, "out_of_order": 1}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", {1: ({"fk": "x"}, {"v": "X"})}),
        ("left", {1: ({"fk": "x"}, {"v": "X"}), 2: ({"fk": "y"}, None), 3: ({"fk": None}, None)}),
    ],
)
def test_relational_join_keeps_unmatched_left_rows_only_when_left(how: How, expected: dict[int, Any]) -> None:
    """A dangling and a null foreign key match nothing."""
    left: dict[int, dict[str, Any]] = {1: {"fk": "x"}, 2: {"fk": "y"}, 3: {"fk": None}}
    assert relational_join(left, {"x": {"v": "X"}}, lambda row: row["fk"], how) == expected


_CONTENTS: tuple[tuple[Op, dict[str, str] | None], ...] = (
    ("upsert", A), ("upsert", B), ("delete", None), ("tombstone", None),
)  # fmt: skip
_RECORDS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 4), st.sampled_from("jk"), st.sampled_from(_CONTENTS)),
    max_size=12,
)
Drawn = list[tuple[int, int, str, tuple[Op, dict[str, str] | None]]]
"""Day, sequence, key, and what happens to it."""


def _drawn(lines: Drawn) -> list[Record]:
    return [
        Record(key, op, (f"day {day}", "f", line), value, sequence)
        for line, (day, sequence, key, (op, value)) in enumerate(sorted(lines, key=lambda drawn: drawn[0]))
    ]


@given(_RECORDS, st.permutations([1, 2, 3]))
def test_rows_do_not_depend_on_the_order_of_days(lines: Drawn, days: list[int]) -> None:
    """Days read in any order, or all at once, lead to the same rows: values, sequences and positions."""
    records = _drawn(lines)
    whole, cut = Table(), Table()
    whole.take(records)
    for day in days:
        cut.take([record for record in records if record.position[0] == f"day {day}"])
    assert cut.rows == whole.rows


@given(_RECORDS, st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_verdicts_do_not_depend_on_the_cut_into_batches(
    lines: Drawn, ends: set[int], unavailable: set[int]
) -> None:
    """Some values left out, some sequences too: a batch may end between any two records."""
    records = [
        replace(record, unavailable=("v",)) if record.op == "upsert" and record.position[2] in unavailable
        else replace(record, sequence=None) if record.op == "tombstone" and record.position[2] in unavailable
        else record
        for record in _drawn(lines)
    ]  # fmt: skip
    purged = {"j": Row(None, 1, ("day 2", "a", 0))}
    whole, cut = Table(purged=dict(purged)), Table(purged=dict(purged))
    judged = [
        one
        for start, end in pairwise([0, *sorted(end for end in ends if end < len(records)), len(records)])
        for one in cut.take(records[start:end])
    ]
    assert judged == whole.take(records)
    assert cut.rows == whole.rows


@given(_RECORDS, st.permutations([1, 2, 3]))
def test_purge_changes_no_row_that_comes_later(lines: Drawn, days: list[int]) -> None:
    """Whatever the order of days, and if all tombstones go after each: late records are only called otherwise."""
    records = _drawn(lines)
    kept, purged = Table(), Table()
    for day in days:
        batch = [record for record in records if record.position[0] == f"day {day}"]
        for found, usual in zip(purged.take(batch), kept.take(batch), strict=True):
            late = found.verdict == "expired" and usual.verdict in {"out_of_order", "duplicate"}
            assert late or found == usual
        assert purged.current() == kept.current()
        purged.purge(list(purged.rows))


_SIDE = st.sampled_from(["left", "right"])
_EVENTS = st.lists(
    st.tuples(
        _SIDE, st.sampled_from("jk"), st.sampled_from(["x", "y", None, "gone"]), st.sampled_from(["a", "b"])
    ),
    max_size=30,
)


@given(_EVENTS, st.sampled_from(["inner", "left"]))
def test_emissions_of_kafka_add_up_to_the_relational_join(
    events: list[tuple[str, str, str, str]], how: How
) -> None:
    """After every record, the table that Kafka's emissions amount to is the join of the two tables."""
    join, emitted = ForeignKeyJoin(how, foreign_key), []
    for side, key, fk, v in events:
        if side == "left":
            emitted += join.change_left(key, None if fk == "gone" else {"fk": fk, "v": v})
        else:
            emitted += join.change_right("x" if key == "j" else "y", None if fk == "gone" else v)
        relational = relational_join(join.left, join.right, foreign_key, how)
        assert fold(emitted) == {key: {"left": a, "right": b} for key, (a, b) in relational.items()}
