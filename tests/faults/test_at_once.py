"""Processes that work on one lake at the same time: two runs, a run and maintenance, a run and its readers.

`LAKEJOIN_ROUNDS` says how often two of them are started together.
"""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.market import JOINS
from faults.processes import DAILY, finish, lakejoin, wait_for
from faults.shop import Content, content, copy_of, run, texts
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux has /proc"),
]

ROUNDS = int(os.environ.get("LAKEJOIN_ROUNDS", "2"))


@pytest.mark.failure(12)
@pytest.mark.failure(13)
@pytest.mark.parametrize(
    "options", [(), ("--from", "2024-01-03", "--to", "2024-01-03")], ids=["run", "backfill"]
)
def test_of_two_runs_at_once_one_says_who_works(
    options: tuple[str, ...], market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The one that comes second ends with the other's process and what to do; both together do what one does.

    In every other round both are started at the same moment, and whichever is first may be done when the second comes.
    """
    refused = 0
    for number in range(ROUNDS):
        pipeline = copy_of(market, tmp_path / f"market-{number}")
        folder = pipeline.path.parent
        first = lakejoin(folder, *DAILY)
        same_moment = number % 2 == 1
        if not same_moment:
            wait_for((folder / "lake" / "_lock").exists, first)
        second = lakejoin(folder, *DAILY, *options)
        ends = {process.process.pid: process.end() for process in (first, second)}

        winners = [pid for pid, (code, _) in ends.items() if code == 0]
        losers = [said for code, said in ends.values() if code == 1]
        assert (len(winners), len(losers)) in ([(1, 1), (2, 0)] if same_moment else [(1, 1)]), ends
        refused += len(losers)
        for said in losers:
            assert f"is being written by process {winners[0]}; one run at a time works on a lake" in said
            assert "Traceback" not in said
        finish(pipeline)
        found = content(pipeline, spark)
        if winners == [first.process.pid]:
            assert found == undisturbed
        assert {table: rows_of(found, table) for table in map(joined_of, JOINS)} == {
            table: rows_of(undisturbed, table) for table in map(joined_of, JOINS)
        }
    with capsys.disabled():
        print(  # noqa: T201 - how much was tried is part of the result
            f"\ntwo runs at once: {ROUNDS} rounds, {ROUNDS // 2} of them from the same moment, {refused} refused"
        )


def rows_of(found: Content, table: str) -> set[str]:
    """Rows of a joined table without the batch that wrote them, which other orders of days change."""
    return {row.partition('"_lj_batch"')[0] for row in found[table]}


@pytest.mark.failure(18)
def test_maintenance_beside_runs_changes_no_row(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Both at the same time, some rounds: neither fails, and every row is where it would be without maintenance."""
    wrong = []
    for number in range(ROUNDS):
        pipeline = copy_of(market, tmp_path / f"market-{number}")
        folder = pipeline.path.parent
        both = [lakejoin(folder, "maintain", "--all"), lakejoin(folder, *DAILY)]
        ends = [process.end() for process in both]
        assert [code for code, _ in ends] == [0, 0], ends
        finish(pipeline)
        found = content(pipeline, spark)
        kept = {name: rows for name, rows in undisturbed.items() if found.get(name) != rows}
        if kept:
            wrong.append((number, sorted(kept)))
    assert wrong == []


@pytest.mark.failure(7)
def test_reader_sees_whole_batches_only(market: Pipeline, tmp_path: Path, spark: SparkSession) -> None:
    """Plain Delta readers of joined tables, over and over while batches run: each sees the rows after some batch."""
    pipeline = copy_of(market, tmp_path / "market")
    whole = copy_of(market, tmp_path / "whole")
    allowed: dict[str, list[list[str]]] = {join: [reading(whole, spark, join)] for join in JOINS}
    while run(whole, spark, batches=1):
        for join in JOINS:
            allowed[join].append(reading(whole, spark, join))
    process = lakejoin(pipeline.path.parent, *DAILY)
    seen: dict[str, list[int]] = {join: [] for join in JOINS}
    while process.process.poll() is None:
        for join in JOINS:
            found = reading(pipeline, spark, join)
            assert found in allowed[join], (join, found)
            seen[join].append(allowed[join].index(found))
    assert process.end()[0] == 0
    for join in JOINS:
        seen[join].append(allowed[join].index(reading(pipeline, spark, join)))
        assert seen[join] == sorted(seen[join])
        assert (seen[join][0], seen[join][-1]) == (0, len(allowed[join]) - 1)


def reading(pipeline: Pipeline, spark: SparkSession, join: str) -> list[str]:
    """The rows of a joined table as Delta has them at this moment."""
    return texts(spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join))))


@pytest.mark.failure(7)
def test_show_reads_the_published_cut_while_a_batch_runs(market: Pipeline, tmp_path: Path) -> None:
    """A join and its right table as of the last finished batch are those of that batch, and fit together so.

    Without a batch, either is that of some batch: another one may be finished between two commands.
    """
    pipeline = copy_of(market, tmp_path / "market")
    process = lakejoin(pipeline.path.parent, *DAILY)
    found: set[tuple[int, tuple[str, ...]]] = set()
    latest = set[str]()
    while process.process.poll() is None:
        batch = len(Journal(Lake(pipeline.lake)).published)
        found.add((batch, shown(pipeline, "--as-of-batch", str(batch))))
        latest.add(shown(pipeline)[0])
    assert process.end()[0] == 0
    whole = copy_of(market, tmp_path / "whole")
    allowed = {1: shown(whole)}
    for batch in (2, 3):
        code, said = lakejoin(whole.path.parent, *DAILY, "--batches", "1").end()
        assert code == 0, said
        allowed[batch] = shown(whole)
    assert found
    assert [(batch, pair) for batch, pair in found if pair != allowed[batch]] == []
    assert latest <= {left for left, _ in allowed.values()}


def shown(pipeline: Pipeline, *options: str) -> tuple[str, ...]:
    """What `show` prints of a join and of its right table."""
    ends = [
        lakejoin(pipeline.path.parent, "show", name, "--limit", "100", *options).end()
        for name in ("left", "customers")
    ]
    assert [code for code, _ in ends] == [0, 0], ends
    return tuple(said for _, said in ends)
