"""The model of the stream-table join, held against Kafka Streams, and KIP-923's own example."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.stream_table_join import Joined, Late, StreamRecord, StreamTableJoin
from reference.timed_events import run_stream_table
from reference.versioned_table import PlainTable, VersionedTable

CASES = Path(__file__).parents[1] / "conformance" / "cases"


def _cases(*, refused: bool) -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text("utf-8"))
        if case["topology"].startswith("stream-table-") and refused == _is_refused(case):
            found.append(pytest.param(case, id=case["name"]))
    return found


def _is_refused(case: dict[str, Any]) -> bool:
    return any(line["i"] == -1 for line in case["expected"])


@pytest.mark.parametrize("case", _cases(refused=False))
def test_model_emits_what_kafka_emits(case: dict[str, Any]) -> None:
    """Every output of every event, in Kafka's order, with its time."""
    emitted = run_stream_table(case["topology"], case["options"], case["events"])
    got = [
        {"i": i, "key": one.record.key, "value": {"left": one.record.value, "right": one.right}, "ts": one.record.time}
        for i, of_event in enumerate(emitted)
        for one in of_event
    ]  # fmt: skip
    assert got == case["expected"]


@pytest.mark.parametrize("case", _cases(refused=True))
def test_model_refuses_what_kafka_refuses(case: dict[str, Any]) -> None:
    """A grace period needs versions, and history at least as long."""
    with pytest.raises(ValueError, match="grace period"):
        run_stream_table(case["topology"], case["options"], case["events"])


def test_conformance_cases_of_the_join_are_all_here() -> None:
    """The copied cases hold the whole set, so that a lost file does not pass as a success."""
    assert (len(_cases(refused=False)), len(_cases(refused=True))) == (37, 2)


# KIP-923: "Say we have a versioned table like this and a history retention time of 10":
# | Key | Value at timestamp 1 | val@TS2 | val@TS3 |
TABLE = (("1", "a", "a", "a"), ("2", "b", "x", "x"), ("3", "c", "c", "y"))
# The page has lost the stream's times; these make both of its results what it prints.
STREAM = (("1", "d", 1), ("2", "e", 1), ("3", "f", 2), ("2", "g", 3), ("3", "h", 3))
FIRST_RESULT = ["1 da", "2 ex", "3 fy", "2 gx", "3 hy"]
"""| Key | Join result | "Without buffering the stream it could look like this"."""
SECOND_RESULT = ["1 da", "2 eb", "3 fc", "2 gb", "3 hc"]
""" "Or this is also a valid result"."""
AS_OF_RESULT = ["1 da", "2 eb", "3 fc", "2 gx", "3 hy"]
"""Each record with what was valid at its own time: what the proposal is for."""


def _example(table: PlainTable | VersionedTable, grace: int | None, *, table_first: bool) -> list[str]:
    """Join the example, the stream read after the whole table or after timestamp 1; flush in the end."""
    join = StreamTableJoin("inner", table, grace)
    _put(table, 1)
    if table_first:
        _put(table, 2, 3)
    emitted = [one for record in STREAM for one in join.take([StreamRecord(*record)])]
    if not table_first:
        _put(table, 2, 3)
    emitted += join.flush()
    return [f"{one.record.key} {one.record.value}{one.right}" for one in emitted]


def _put(table: PlainTable | VersionedTable, *times: int) -> None:
    for time in times:
        for row in TABLE:
            table.put(row[0], row[time], time)


@pytest.mark.parametrize(
    ("table", "grace", "table_first", "expected"),
    [
        pytest.param(PlainTable(), None, True, FIRST_RESULT, id="plain, table first"),
        pytest.param(PlainTable(), None, False, SECOND_RESULT, id="plain, stream after timestamp 1"),
        pytest.param(VersionedTable(10), None, True, AS_OF_RESULT, id="versioned, table first"),
        pytest.param(
            VersionedTable(10), None, False, SECOND_RESULT, id="versioned, stream after timestamp 1"
        ),
        pytest.param(VersionedTable(10), 5, False, AS_OF_RESULT, id="grace, stream after timestamp 1"),
    ],
)
def test_example_of_the_proposal(
    table: PlainTable | VersionedTable, grace: int | None, table_first: bool, expected: list[str]
) -> None:
    """KIP-923's tables: two results depend on when the table was read; with grace there is one, the right one."""
    assert _example(table, grace, table_first=table_first) == expected


def _join(how: Any = "left", grace: int | None = 5, late: Late = "join") -> StreamTableJoin:
    return StreamTableJoin(how, VersionedTable(100), grace, late)


def _values(joined: list[Joined]) -> list[Any]:
    return [one.record.value for one in joined]


def test_late_record_is_kept_aside_when_it_is_to_be_dropped() -> None:
    """The proposal's text; it moves no time either."""
    join = _join(late="drop")
    join.take([StreamRecord("k", "s10", 10)])
    late, in_time = StreamRecord("k", "s4", 4), StreamRecord("k", "s5", 5)
    assert (join.route(late), join.route(in_time)) == ("late", "waits")
    assert join.take([late, in_time]) == [Joined(in_time, None)]
    assert (join.routes, join.stream_time) == ({"waits": 2, "late": 1}, 10)


def test_lateness_is_decided_in_the_order_of_arrival() -> None:
    """Against the time before the record: one that comes first in its batch is not late by what comes after it."""
    join = _join()
    assert _values(join.take([StreamRecord("k", "s1", 1), StreamRecord("k", "s9", 9)])) == ["s1"]
    other = _join(late="drop")
    assert other.take([StreamRecord("k", "s9", 9), StreamRecord("k", "s1", 1)]) == []


@pytest.mark.parametrize(("how", "expected"), [("inner", []), ("left", ["s9"])])
def test_record_without_key_waits_for_nothing_and_moves_no_time(how: Any, expected: list[str]) -> None:
    """An inner join has no use for it; a left join emits it at once, with nothing on the right."""
    join = _join(how)
    join.take([StreamRecord("k", "s1", 1)])
    assert _values(join.take([StreamRecord(None, "s9", 9)])) == expected
    assert join.stream_time == 1


_TIMES = st.integers(0, 20)
_STREAM = st.tuples(
    st.just("stream"), st.sampled_from(["j", "k", None]), st.sampled_from(["s", None]), _TIMES
)
_ROWS = st.tuples(
    st.just("table"), st.sampled_from("jk"), st.sampled_from(["a", "b", None]), st.integers(0, 4)
)
"""The last number: how long before stream time the record is, less than the grace."""
_ARRIVALS = st.lists(st.one_of(_STREAM, _ROWS), max_size=30)


def _run(arrivals: list[Any], ends: set[int], how: Any, late: Late) -> list[str]:
    """Return all that is emitted, sorted, when batches end after these arrivals, table events always first."""
    table = VersionedTable(100)
    join = StreamTableJoin(how, table, 5, late)
    emitted: list[Joined] = []
    batch: list[StreamRecord] = []
    for number, (side, key, value, time) in enumerate(arrivals):
        if side == "table":
            table.put(key, None if value is None else f"{value}{number}", time)
        else:
            batch.append(StreamRecord(key, value and f"{value}{number}", time))
        if number in ends:
            emitted += join.take(batch)
            batch = []
    emitted += [*join.take(batch), *join.flush()]
    return [*sorted(map(repr, emitted)), repr(sorted(join.routes.items()))]


@given(_ARRIVALS, st.sets(_TIMES), st.sampled_from(["inner", "left"]), st.sampled_from(["drop", "join"]))
def test_output_does_not_depend_on_the_cut_when_the_table_is_late_by_less_than_grace(
    drawn: list[Any], ends: set[int], how: Any, late: Late
) -> None:
    """Whatever a record can be released with has arrived before stream time lets it go."""
    arrivals, stream_time = [], 0
    for side, key, value, time in drawn:
        if side == "stream" and key is not None and value is not None:
            stream_time = max(stream_time, time)
        arrivals.append((side, key, value, time if side == "stream" else max(0, stream_time - time)))
    each = set(range(len(arrivals)))
    assert _run(arrivals, ends, how, late) == _run(arrivals, each, how, late)
