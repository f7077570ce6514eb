"""What a race comes to: medians over the batches, how many times faster than a rival, who begins."""

from dataclasses import fields
from datetime import UTC, datetime

import pytest

from bench.contest.contender import Work
from bench.contest.cost import Cost
from bench.contest.explain import costliest
from bench.contest.jvm import Query
from bench.contest.race import Round, in_turn
from bench.contest.report import summary

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def cost(wall: float, cpu: float = 1) -> Cost:
    """Return a cost with these times, and 1 of everything else."""
    return Cost(**{**{field.name: 1 for field in fields(Cost)}, "wall_seconds": wall, "cpu_seconds": cpu})


def turn(contender: str, batch: int, wall: float, stages: dict[str, float] | None = None) -> Round:
    """Return a contender's turn that took `wall` seconds, and twice as much of the processors."""
    return Round(contender, batch, BEGUN, cost(wall, 2 * wall), Work(stages or {}, {}), {}, cost(0), {})


def test_summary_leaves_the_first_load_out_of_medians_and_ratios() -> None:
    """Ratios are those of the medians over the batches; the first load has its own."""
    ours = [turn("ours", batch, wall) for batch, wall in enumerate([60, 3, 1, 2, 50])]
    spark = [turn("spark", batch, wall) for batch, wall in enumerate([30, 5, 5, 4, 9])]

    result = summary([*ours, *spark], loaded=900)

    assert result["medians"]["ours"]["wall_seconds"] == 2.5
    assert result["ratio_to_spark_recompute"] == 2.0
    assert result["cpu_ratio_to_spark_recompute"] == 2.0
    assert result["first_load_ratio_to_spark"] == 0.5
    assert result["first_load_rows_per_second"] == {"ours": 15, "spark": 30}
    assert [kept["batch"] for kept in result["batches"]["ours"]] == [1, 2, 3, 4]


def test_summary_has_no_ratio_to_whom_did_not_take_part() -> None:
    """Without a rival there is nothing to compare with, and that is no mistake."""
    result = summary([turn("ours", 0, 4), turn("ours", 1, 2)], loaded=8)

    assert result["ratio_to_duckdb_recompute"] is None
    assert list(result["medians"]) == ["ours"]


def test_stage_medians_are_over_the_batches_that_had_the_stage() -> None:
    """A stage that a batch did not need does not count there as zero seconds."""
    stages = [{"joined": 1.0, "fold": 9.0}, {"joined": 3.0}, {"joined": 2.0}]
    rounds = [turn("ours", batch, 1, found) for batch, found in enumerate(stages, start=1)]

    assert summary(rounds, loaded=0)["median_stage_seconds"] == {"ours": {"joined": 2.0, "fold": 9.0}}


@pytest.mark.parametrize(("batch", "order"), [(0, "abc"), (1, "bca"), (2, "cab"), (3, "abc")])
def test_each_batch_has_another_contender_first(batch: int, order: str) -> None:
    """Turns rotate, so that nobody always finds what the same other left in caches and heap."""
    assert "".join(in_turn("abc", batch)) == order


def test_costliest_query_is_not_the_command_that_ran_it() -> None:
    """A command lasts as long as its queries together, and its plan says nothing."""
    merge, scan, write = Query(1, None, "merge", 0, 9), Query(2, 1, "scan", 0, 3), Query(3, 1, "write", 0, 5)

    assert costliest([merge, scan, write]) == write
    assert costliest([]) is None
