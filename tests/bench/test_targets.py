"""What results say about the targets: which of them serves a row, and the figure that it gives."""

from collections.abc import Mapping, Sequence

import pytest

from bench.targets.measures import measured
from bench.targets.recipes import RECIPES, ROWS, runs_of
from bench.targets.results import Result
from bench.targets.sought import Measured
from bench.targets.targets import TARGETS, Target
from kept_results import MEBIBYTE, race, turn


def target(row: int, scale: float | None = None) -> Target:
    """Return the target of a row, at one of its sizes."""
    return next(found for found in TARGETS if found.row == row and scale in {None, found.scale})


def found(row: int, *results: Result, scale: float | None = None, size: float = 1) -> Measured:
    """Return what results, the newest first, say about a row that they serve."""
    measure = measured(target(row, scale), results, size)
    assert measure is not None
    return measure


def test_ratio_to_recompute_is_of_the_newest_race_with_tables_and_batches_of_this_size() -> None:
    """Races with other tables, other batches or a customer with many orders say nothing about a row."""
    walls = {"ours": [2.0, 1.0, 4.0], "spark": [8.0, 6.0, 6.0]}
    results = [
        race(1, {"ours": [1], "spark": [1]}, changes=(100, 1), day=9),
        race(1, {"ours": [1], "spark": [1]}, made={"hot_share": 0.01}, day=8),
        race(1, {"ours": [1]}, day=7),
        race(1, {"ours": [1, 1], "spark": [1]}, rivals_every=2, day=7),
        race(1, walls, day=6),
        race(1, {"ours": [9], "spark": [1]}, day=5),
    ]

    measure = found(1, *results, scale=1)

    assert (measure.value, measure.results[0].commit) == (3.0, "commit6")
    assert "medians of 3; maintenance 0.50 s a batch besides" in measure.note
    assert measured(target(1, 5), results) is None


def test_size_makes_tables_and_batches_smaller() -> None:
    """A hundredth of everything serves the same row at a hundredth."""
    small = race(0.05, {"ours": [1.0], "spark": [2.0]}, changes=(1000, 10))

    assert found(3, small, size=0.01).value == 2
    assert measured(target(3), [small]) is None


def test_growth_compares_two_sizes_and_names_both() -> None:
    """The row is as old as the older of the two, so both are told; a race of a lake with a changelog is another."""
    other = race(1, {"ours": [1.0], "changelog": [2.0]}, day=5)
    measure = found(2, other, race(10, {"ours": [6.0]}, day=4), race(1, {"ours": [4.0]}, day=3))

    assert measure.value == 1.5
    assert [result.commit for result in measure.results] == ["commit4", "commit3"]


def test_smallest_batch_counts_once_it_is_warm() -> None:
    """The first five batches of a longer race are left out."""
    walls = {"ours": [9.0] * 5 + [3.0] * 6, "merge": [5.0] * 5 + [2.0] * 6}

    assert found(4, race(1, walls, changes=(1, 0))).value == 1.5


def first_loads(pieces: Mapping[str, Mapping[str, Sequence[float]]], *, day: int = 1) -> Result:
    """Return a measurement of first loads: seconds of each piece, in new processes and in turn."""
    return race(
        1,
        {"ours": [1.0]},
        day=day,
        kind="floor",
        pieces={
            name: {when: [turn(0, wall) for wall in walls] for when, walls in costs.items()}
            for name, costs in pieces.items()
        },
    )


def test_first_load_is_held_against_the_rival_and_the_shortest_program_of_its_run() -> None:
    """The figure is of new processes; a run that lacks one of the three serves no row."""
    complete = {
        "recompute": {"new_process": [20.0], "turns": [4.0, 44.0, 45.0]},
        "sources": {"new_process": [50.0], "turns": [88.0]},
        "load": {"new_process": [60.0], "turns": [110.0, 9.0, 120.0]},
    }
    partial = {name: costs for name, costs in complete.items() if name != "sources"}
    only_in_turn = {name: {"turns": costs["turns"]} for name, costs in complete.items()}

    measure = found(6, first_loads(partial, day=3), first_loads(only_in_turn, day=2), first_loads(complete))

    assert (measure.value, measure.results[0].commit) == (3, "commit1")
    assert "60.0 s against 20.0 s, medians of 1, each in a new process" in measure.note
    assert "the same tables 2.5; in turn in one process, once compiled, a load 2.5 (110.0 s" in measure.note
    assert "that program 2; 27,500 and 15,000 rows/s on 2 cores (Kafka Streams 6,500-20,000" in measure.note


def test_load_counts_as_compiled_behind_the_first_turns() -> None:
    """As a smallest batch does."""
    pieces = {
        "recompute": {"new_process": [20.0], "turns": [8.0] * 5 + [4.0] * 6},
        "sources": {"new_process": [50.0], "turns": [90.0] * 5 + [12.0] * 6},
        "load": {"new_process": [60.0], "turns": [90.0] * 5 + [14.0] * 6},
    }
    assert (
        "once compiled, a load 3.5 (14.0 s against 4.0 s), that program 3;"
        in found(6, first_loads(pieces)).note
    )


def test_hot_row_is_held_against_the_other_batches_of_the_race() -> None:
    """Every second batch changes one right row and nothing else."""
    hot = race(
        5,
        {"ours": [4.0, 6.0, 4.0, 8.0]},
        changes=[(10_000, 100), (0, 1), (10_000, 100), (0, 1)],
        made={"hot_share": 0.01},
    )

    assert found(7, hot).value == 7 / 4


def test_live_bytes_are_those_after_a_batch_that_was_maintained() -> None:
    """What was stored later, before the next maintenance, does not count."""
    stored = {"ours": {2: {"a": 10, "b": 20}, 3: {"a": 99}}, "spark": {2: {"left": 10}, 3: {"left": 1}}}
    batches = {
        name: [turn(batch, 1, stored_bytes=tables) for batch, tables in found_bytes.items()]
        for name, found_bytes in stored.items()
    }

    kept = race(1, {"ours": [1, 1, 1]}, maintain_every=2, batches=batches)

    assert found(8, kept).value == 3


def test_endurance_compares_the_share_of_a_recompute_late_with_that_early() -> None:
    """A machine that becomes slower meanwhile slows the recompute, too."""
    ours = [1.0] * 100 + [3.0] * 100
    spark = [2.0] * 100 + [4.0] * 100

    measure = found(9, race(1, {"ours": ours, "spark": spark}, changes=(1000, 10), maintain_every=50))

    assert measure.value == 1.5
    assert "batches 180-200 take 0.750 of a recompute, batches 10-30 0.500" in measure.note


def test_endurance_needs_a_recompute_in_both_windows() -> None:
    """Every fourth batch is enough; every hundredth is not."""
    every = {
        number: race(1, {"ours": [1.0] * 200, "spark": [1.0] * 200}, maintain_every=50) for number in (4, 100)
    }
    for number, result in every.items():
        turns = result.found["batches"]["spark"]
        result.found["batches"]["spark"] = [turn for turn in turns if turn["batch"] % number == 0]
    assert found(9, every[4]).value == 1
    assert measured(target(9), [every[100]], 1) is None


def test_endurance_of_a_short_race_has_windows_of_a_batch() -> None:
    """Of two batches the first is held against the second: enough to see that it is measured."""
    assert found(9, race(1, {"ours": [1.0, 3.0], "spark": [1.0, 1.0]}, maintain_every=2)).value == 3


def test_memory_is_the_difference_of_the_highest_peaks() -> None:
    """First load and batches count; the heap is told."""
    large, small = (
        race(scale, {"ours": [1.0]}, first_load={"ours": turn(0, 1, peak_python_bytes=peak * MEBIBYTE)})
        for scale, peak in ((10, 260), (1, 245))
    )

    measure = found(10, large, small)

    assert (measure.value, target(10).reached(measure.value)) == (15, "aim")
    assert "heap 4g" in measure.note


def starts(*, java: bool) -> Result:
    """Return a measurement of starts."""
    run, session = turn(0, 1.0), turn(0, 4.0)
    return Result(
        "starts.json",
        {
            "kind": "start", "date": "2026-01-01T00:00:00+00:00", "commit": "c", "machine": {"cores": 2},
            "medians": {"empty_run": 1.0, "spark_session": 4.0}, "java_in_empty_run": java,
            "empty_runs": [run], "spark_sessions": [session],
        },
    )  # fmt: skip


def test_empty_run_with_a_jvm_reaches_nothing() -> None:
    """However fast it is: the target is that none is started."""
    assert target(5).reached(found(5, starts(java=False)).value) == "must"
    assert target(5).reached(found(5, starts(java=True)).value) == "no"


@pytest.mark.parametrize(
    ("value", "reached"), [(10, "aim"), (5, "aim"), (4.9, "must"), (2, "must"), (1.9, "no")]
)
def test_more_is_better_where_the_target_says_so(value: float, reached: str) -> None:
    """Bounds belong to what reaches them."""
    assert target(1, 5).reached(value) == reached


def test_every_row_has_runs_and_rows_share_them() -> None:
    """Each row of the table can be measured; what two rows need is run once."""
    assert {str(found_target.row) for found_target in TARGETS} <= set(ROWS)
    assert runs_of(["2", "6", "1"]) == ["small", "middle", "large", "first-loads"]
    assert set(runs_of(ROWS)) == set(RECIPES)
