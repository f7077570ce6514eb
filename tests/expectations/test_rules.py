"""Each rule finds exactly its violation, and nothing in a sound state: on DuckDB fast, on Spark for good."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import combinations
from string import Formatter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.gate import gate
from lakejoin.expectations.keys import Kind, frames_for, keys_sql
from lakejoin.expectations.rules import RULES, rules_for
from lakejoin.expectations.totals import differing_totals
from lakejoin.transforms.model.keys import KeyTotals, key_hash
from lakejoin.transforms.model.specs import How

State = dict[str, list[dict[str, Any]]]
Change = tuple[str, str, tuple[object, ...]]  # add to a frame, or drop a row by the beginning of its values
HOURS = [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in range(4)]
STREAMS: tuple[Kind, ...] = ("stream", "stream_left")
ROWS: tuple[Kind, ...] = ("inner", "left", "members")
KINDS: tuple[Kind, ...] = (
    *ROWS,
    "groups",
    "totals",
    "versions",
    "event_versions",
    "table",
    "history",
    *STREAMS,
    "batches",
)


def add(frame: str, *values: object) -> Change:
    """Say that a row is too many."""
    return ("add", frame, values)


def drop(frame: str, key: object) -> Change:
    """Say that the rows of a primary key are missing."""
    return ("drop", frame, (key,))


CASES: list[tuple[str, tuple[Kind, ...], str, list[Change]]] = [
    ("one_row_per_key", ("inner", "left"), "the key is joined twice", [add("joined", 1, 11, "A", 21, 3)]),
    ("one_row_per_key", ("groups",), "a group is there twice", [add("found", 1, 11, 3)]),
    ("totals_agree", ("totals",), "more rows went than came", [add("totals", 3, -1, False)]),
    ("totals_agree", ("totals",), "what the last row added is there", [add("totals", 3, 0, True)]),
    ("versions_disjoint", ("versions",), "a version has not ended", [add("kept", 1, 0, 2, 10)]),
    ("versions_disjoint", ("versions",), "two are current", [add("kept", 2, 3, None, 12)]),
    ("versions_disjoint", ("versions",), "one ended before it began", [add("kept", 3, 4, 2, 13)]),
    ("current_version_shown", ("versions",), "a row changed since", [drop("shown", 1), add("shown", 1, 91)]),
    ("current_version_shown", ("versions",), "a row is gone", [drop("shown", 2)]),
    ("current_version_shown", ("versions",), "a row has no version", [drop("kept", 2)]),
    (
        "versions_disjoint",
        ("event_versions",),
        "two rows are true at once",
        [add("spells", 2, HOURS[2], HOURS[3], 12)],
    ),
    (
        "versions_disjoint",
        ("event_versions",),
        "a row was true at no time",
        [add("spells", 3, HOURS[2], HOURS[2], 13)],
    ),
    (
        "versions_differ",
        ("event_versions",),
        "a row was cut in two",
        [
            drop("spells", 2),
            add("spells", 2, HOURS[1], HOURS[2], 12),
            add("spells", 2, HOURS[2], HOURS[3], 12),
        ],
    ),
    (
        "true_at_each_moment",
        ("event_versions",),
        "another row was true",
        [
            drop("spells", 1),
            add("spells", 1, HOURS[1], HOURS[2], 10),
            add("spells", 1, HOURS[2], None, 91),
        ],
    ),
    ("true_at_each_moment", ("event_versions",), "a row is missing", [drop("spells", 2)]),
    ("true_at_each_moment", ("event_versions",), "a row never ended", [add("spells", 2, HOURS[3], None, 13)]),
    ("group_exists", ("groups",), "a group has no rows any more", [drop("expected", 1)]),
    ("group_current", ("groups",), "a row has changed since", [drop("found", 1), add("found", 1, 91, 1)]),
    ("nothing_pending", ("groups",), "a group is not there", [drop("found", 2)]),
    ("one_row_per_key", ("table",), "the table has a key twice", [add("rows", 1, 12, False)]),
    ("hash_of_live_row", ("table",), "a live row has no hash", [add("rows", 2, None, False)]),
    ("hash_of_live_row", ("table",), "a tombstone has a hash", [add("rows", 2, 12, True)]),
    ("left_row_exists", ("inner", "left"), "the left row is deleted", [add("joined", 4, 14, "A", 21, 1)]),
    ("left_row_exists", ("inner", "left"), "the left row was purged", [add("joined", 9, 19, "A", 21, 1)]),
    (
        "left_row_current",
        ("inner", "left"),
        "the left row has changed since",
        [drop("joined", 1), add("joined", 1, 91, "A", 21, 1)],
    ),
    (
        "left_row_current",
        ("inner", "left"),
        "the joined row lost its left hash",
        [drop("joined", 1), add("joined", 1, None, "A", 21, 1)],
    ),
    (
        "left_row_current",
        ("inner", "left"),
        "the left row pointed elsewhere",
        [drop("joined", 1), add("joined", 1, 91, "B", 22, 1)],
    ),
    ("right_row_exists", ("inner",), "the right row is deleted", [add("joined", 6, 16, "C", 23, 1)]),
    ("right_row_exists", ("inner",), "the right row was purged", [add("joined", 5, 15, "Z", 25, 1)]),
    ("right_row_exists", ("inner",), "an inner row has no match", [add("joined", 3, 13, None, None, 1)]),
    (
        "right_columns_null",
        ("left",),
        "the right row is deleted",
        [drop("joined", 6), add("joined", 6, 16, "C", 23, 1)],
    ),
    (
        "right_columns_null",
        ("left",),
        "a right hash stayed behind",
        [drop("joined", 3), add("joined", 3, 13, None, 21, 1)],
    ),
    (
        "right_row_current",
        ("inner", "left"),
        "the right row has changed since",
        [drop("joined", 1), add("joined", 1, 11, "A", 91, 1)],
    ),
    (
        "right_row_matches",
        ("inner", "left"),
        "another right row was joined",
        [drop("joined", 1), add("joined", 1, 11, "B", 22, 1)],
    ),
    (
        "right_row_matches",
        ("inner",),
        "a row without foreign key was joined",
        [add("joined", 3, 13, "A", 21, 1)],
    ),
    (
        "condition_met",
        ("inner", "left"),
        "a pair was joined that does not meet it",
        [add("joined", 1, None, None, None, None, True)],
    ),
    ("one_subscription", ROWS, "there is none", [drop("subscriptions", 5)]),
    ("one_subscription", ROWS, "there are two", [add("subscriptions", "A", 1, 11)]),
    (
        "no_other_subscription",
        ROWS,
        "the left row has no foreign key",
        [add("subscriptions", "A", 3, 13)],
    ),
    ("no_other_subscription", ROWS, "the left row is gone", [add("subscriptions", "B", 4, 14)]),
    (
        "no_other_subscription",
        ROWS,
        "the left row was purged",
        [add("subscriptions", "B", 9, 19)],
    ),
    (
        "subscription_agrees",
        ROWS,
        "it has an older hash",
        [drop("subscriptions", 5), add("subscriptions", "Z", 5, 95)],
    ),
    (
        "subscription_agrees",
        ROWS,
        "it is under another foreign key",
        [drop("subscriptions", 5), add("subscriptions", "A", 5, 15)],
    ),
    (
        "answer_subscribed",
        ("inner", "left"),
        "the answer came from another right row",
        [drop("answers", 1), add("answers", 1, "B", 11, "subscription")],
    ),
    (
        "answer_subscribed",
        ("inner", "left"),
        "a right change reached a row without foreign key",
        [drop("answers", 3), add("answers", 3, "A", 13, "right_change")],
    ),
    ("nothing_pending", ("inner", "left"), "a matched row was not joined", [drop("joined", 1)]),
    ("nothing_pending", ("left",), "an unmatched row was not joined", [drop("joined", 3)]),
    (
        "nothing_pending",
        ("left",),
        "the match was not joined",
        [drop("joined", 1), add("joined", 1, 11, None, None, 1)],
    ),
    (
        "intervals_disjoint",
        ("history",),
        "two versions are valid at once",
        [drop("versions", 1), add("versions", 1, HOURS[1], HOURS[3]), add("versions", 1, HOURS[2], None)],
    ),
    (
        "intervals_disjoint",
        ("history",),
        "a version was valid at no time",
        [add("versions", 7, HOURS[2], HOURS[2])],
    ),
    (
        "intervals_adjoin",
        ("history",),
        "a version ended before the next",
        [drop("versions", 1), add("versions", 1, HOURS[1], HOURS[2]), add("versions", 1, HOURS[3], None)],
    ),
    (
        "last_version_current",
        ("history",),
        "the last version is another row",
        [drop("latest", 1), add("latest", 1, 12)],
    ),
    ("last_version_current", ("history",), "a row has no version", [drop("latest", 1)]),
    ("last_version_current", ("history",), "a deleted key has a value", [add("latest", 2, 12)]),
    ("joined_once", STREAMS, "a record was joined twice", [add("joined", 1, 11, None, None, 2)]),
    ("joined_or_waiting", STREAMS, "a joined record waits", [add("waiting", 1)]),
    ("joined_or_waiting", STREAMS, "a joined record was late", [add("late", 1)]),
    ("record_exists", STREAMS, "no such record came", [add("joined", 9, 19, None, None, 1)]),
    ("record_exists", STREAMS, "the record said something else", [drop("records", 1), add("records", 1, 12)]),
    ("nothing_lost", ("stream_left",), "a record is nowhere", [drop("waiting", 2)]),
    (
        "stream_time_monotone",
        ("batches",),
        "time went back",
        [add("batches", 3, HOURS[1], HOURS[2], 0, 0, 1, 1, 0, 0, 1, 1)],
    ),
    (
        "stream_time_monotone",
        ("batches",),
        "time was forgotten",
        [add("batches", 3, None, HOURS[2], 0, 0, 1, 1, 0, 0, 1, 1)],
    ),
    (
        "counts_add_up",
        ("batches",),
        "a record went nowhere",
        [add("batches", 3, HOURS[2], HOURS[2], 2, 1, 1, 1, 0, 0, 1, 1)],
    ),
    (
        "counts_add_up",
        ("batches",),
        "a waiting record vanished",
        [add("batches", 3, HOURS[2], HOURS[2], 0, 0, 2, 1, 0, 0, 1, 1)],
    ),
    (
        "counts_add_up",
        ("batches",),
        "less waits than is said",
        [add("batches", 3, HOURS[2], HOURS[2], 0, 0, 1, 1, 0, 0, 1, 0)],
    ),
    (
        "emissions_kept",
        ("batches",),
        "a joined row was lost",
        [add("batches", 3, HOURS[2], HOURS[2], 0, 0, 1, 1, 2, 1, 1, 1)],
    ),
]
VIOLATIONS = [
    pytest.param(kind, rule, changes, id=f"{kind}-{rule}-{what.replace(' ', '_')}")
    for rule, kinds, what, changes in CASES
    for kind in kinds
]


def broken(state: State, changes: Iterable[Change], row: Callable[..., dict[str, Any]]) -> State:
    """Return the state with the changes made."""
    for action, frame, values in changes:
        if action == "add":
            state[frame].append(row(frame, *values))
        else:
            kept = [old for old in state[frame] if old["primary_key"]["flight_id"] != values[0]]
            assert len(kept) < len(state[frame])
            state[frame] = kept
    return state


def restricted(state: State, keys: Iterable[int]) -> State:
    """Return the closed frames of some primary keys, as a batch that touched them has them at hand."""
    wanted = set(keys)
    rows = {
        name: [row for row in rows if name == "right_rows" or row["primary_key"]["flight_id"] in wanted]
        for name, rows in state.items()
    }
    named = [row["foreign_key"] for row in rows.get("left_rows", [])]
    named += [row["right_key"] for row in rows.get("joined", [])]
    if "right_rows" in rows:
        rows["right_rows"] = [row for row in rows["right_rows"] if row["primary_key"] in named]
    return rows


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a database in memory."""
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def offences(
    database: duckdb.DuckDBPyConnection, tables: Callable[[State], dict[str, pa.Table]]
) -> Callable[[Kind, State], dict[str, list[Any]]]:
    """Return what finds the offending rows by DuckDB, by the rules that they offend."""

    def find(kind: Kind, state: State) -> dict[str, list[Any]]:
        for name, table in tables(state).items():
            database.register(name, table)
        quoted = {name: f'"{name}"' for name in state}
        found = {
            rule.name: database.sql(rule.query(kind).format(**quoted)).fetchall() for rule in rules_for(kind)
        }
        return {name: rows for name, rows in found.items() if rows}

    return find


@pytest.mark.parametrize("kind", KINDS)
def test_sound_state_offends_no_rule(kind: Kind, sound: Any, offences: Any) -> None:
    """In a sound state every rule holds."""
    assert offences(kind, sound(kind)) == {}


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_sound_state_offends_no_rule_on_any_touched_keys(kind: Kind, sound: Any, offences: Any) -> None:
    """Restricted to whichever keys a batch touches, a sound state stays sound."""
    state = sound(kind)
    keys = range(1, 7)
    for touched in [*combinations(keys, 1), *combinations(keys, 2), tuple(keys)]:
        assert offences(kind, restricted(state, touched)) == {}, touched


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_pair_that_does_not_meet_the_condition_is_missed_by_nobody(
    kind: Kind, sound: Any, row: Any, offences: Any
) -> None:
    """It stands for the joined row that there is none of."""
    changes = [drop("joined", 1), add("joined", 1, None, None, None, None, True)]
    assert offences(kind, broken(sound(kind), changes, row)) == {}


@pytest.mark.parametrize(("kind", "rule", "changes"), VIOLATIONS)
def test_rule_finds_its_violation_alone(
    kind: Kind, rule: str, changes: list[Change], sound: Any, row: Any, offences: Any
) -> None:
    """One thing that is wrong offends one rule, with one row that names the key."""
    found = offences(kind, broken(sound(kind), changes, row))
    assert {name: len(rows) for name, rows in found.items()} == {rule: 1}


@pytest.mark.parametrize(("kind", "rule", "changes"), VIOLATIONS)
def test_rule_finds_its_violation_among_the_rows_of_its_key(
    kind: Kind, rule: str, changes: list[Change], sound: Any, row: Any, offences: Any
) -> None:
    """What is wrong with a key shows also where only that key's rows are at hand, and the key comes first."""
    state = broken(sound(kind), changes, row)
    everywhere = offences(kind, state)
    key = everywhere[rule][0][0]["flight_id"]
    assert offences(kind, restricted(state, [key])) == everywhere


def test_every_rule_has_a_violation() -> None:
    """No rule of any kind is without a case above."""
    tried = {(rule, kind) for rule, kinds, _, _ in CASES for kind in kinds}
    assert tried == {(rule.name, kind) for rule in RULES for kind in rule.kinds}


@pytest.mark.parametrize("kind", KINDS)
def test_rules_are_told_apart_by_name(kind: Kind) -> None:
    """The rules of a kind have names of their own, in snake case, and each says something of its own."""
    rules = rules_for(kind)
    assert len({rule.name for rule in rules}) == len({rule.statement for rule in rules}) == len(rules)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", rule.name) for rule in rules)
    assert all(re.fullmatch(r"[A-Z][^.]+\.", rule.statement) for rule in rules)


@pytest.mark.parametrize("kind", KINDS)
def test_view_reads_each_frame_of_its_kind_once(kind: Kind) -> None:
    """The view that all rules of a kind share names every frame of the kind once, and no other."""
    read = [name for _, name, _, _ in Formatter().parse(keys_sql(kind)) if name]
    assert sorted(read) == sorted(frames_for(kind))


def among_other_keys(state: State, shift: int) -> State:
    """Return the state with other primary keys; right rows stay as they are."""
    for row in (row for name, rows in state.items() if name != "right_rows" for row in rows):
        row["primary_key"]["flight_id"] += shift
    return state


@pytest.mark.spark
@pytest.mark.parametrize(
    "options", [{"small": True}, {}, {"digests": True}], ids=["small", "large", "digests"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_spark_finds_what_duckdb_finds(
    kind: Kind,
    options: dict[str, bool],
    sound: Any,
    row: Any,
    frames: Callable[[State], dict[str, DataFrame]],
) -> None:
    """The gate finds nothing in a sound state, and every violation where each is made among keys of its own."""
    made = [(rule, changes) for rule, kinds, _, changes in CASES if kind in kinds]
    state = sound(kind)
    for number, (_, changes) in enumerate(made, start=1):
        other = among_other_keys(broken(sound(kind), changes, row), 100 * number)
        for name in state.keys() - {"right_rows"}:
            state[name] += other[name]

    clean = gate(frames(sound(kind)), kind, **options).collect()
    dirty = gate(frames(state), kind, **options).collect()

    assert clean == []
    assert {result["rule"]: result["offending"] for result in dirty} == Counter(rule for rule, _ in made)
    for result in dirty:
        assert len(result["sample"]) == min(result["offending"], 5)
        assert all("primary_key" in json.loads(line) for line in result["sample"])


def of_plain_inserts(state: State, kind: Kind, row: Callable[..., dict[str, Any]]) -> State:
    """Return a join's state as a batch leaves it that only inserts: each row has the one answer that it was due."""
    state["left_rows"] = [old for old in state["left_rows"] if not old["deleted"]]
    due = [(1, "A"), (2, "B")] if kind == "inner" else [(1, "A"), (2, "B"), (3, None), (5, "Z"), (6, "C")]
    state["answers"] = [row("answers", key, named, key + 10, "subscription") for key, named in due]
    return state


def keys_of(left: DataFrame) -> KeyTotals:
    """The keys of left rows, as they are seen before there are any."""
    keys = left.where(~F.col("deleted")).select("primary_key.*")
    (found,) = keys.agg(F.count("*"), F.bit_xor(key_hash([keys[name] for name in keys.columns]))).collect()
    return KeyTotals(*found)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", ["inner", "left"])
def test_totals_of_plain_inserts_differ_wherever_a_rule_is_broken(
    kind: How,
    known: bool,
    sound: Any,
    row: Any,
    offences: Any,
    frames: Callable[[State], dict[str, DataFrame]],
) -> None:
    """And agree where none is, without rows as well: whoever goes by them misses nothing that the rules find."""
    plain = of_plain_inserts(sound(kind), kind, row)
    keys = keys_of(frames(plain)["left_rows"]) if known else None

    def differing(state: State, keys: KeyTotals | None = keys) -> list[str]:
        return [found["rule"] for found in differing_totals(frames(state), kind, keys).collect()]

    nothing: State = {name: [] for name in plain}
    assert (offences(kind, plain), differing(plain)) == ({}, [])
    assert (offences(kind, nothing), differing(nothing, KeyTotals(0, None) if known else None)) == ({}, [])
    twice = {name: rows * 2 if name != "right_rows" else rows for name, rows in plain.items()}
    grouped = "joined" if kind == "left" else "subscriptions"
    assert differing(twice) == [f"totals of {'keys' if known else grouped}"]
    missed, looked_at = [], 0
    for rule, kinds, what, changes in CASES:
        if kind not in kinds:
            continue
        state = of_plain_inserts(sound(kind), kind, row)
        there = [change for change in changes if change[0] == "add" or _has(state, change)]
        state = broken(state, there, row)
        looked_at += 1
        if offences(kind, state) and not differing(state):
            missed.append((rule, what))
    assert (missed, looked_at > 15) == ([], True)


def _has(state: State, change: Change) -> bool:
    _, frame, (key,) = change
    return any(old["primary_key"]["flight_id"] == key for old in state[frame])
