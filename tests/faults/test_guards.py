"""What guards are for, in a lake: each such test runs once more without its guard and must fail (tests/guards.py)."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from faults.crashing import Crash, commits
from faults.shop import copy_of, joins, make_pipeline, run, texts, write_lines
from guards import GUARDS
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.errors import LakeBusy, LakeInconsistent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.model.join_sides import left_changes
from lakejoin.transforms.model.specs import JoinSpec

CONFIGURATION = """\
name: parts
lake: ./lake
tables:
  parts:
    source: {format: jsonl, path: "parts/{date}.jsonl"}
    columns: {id: bigint, kind: string, n: bigint, at: timestamp}
    key: [id]
    sequence: [n]
    event_time: at
    tombstone_retention: 30 days
  kinds:
    source: {format: jsonl, path: "kinds/{date}.jsonl"}
    columns: {kind: string, name: string}
    key: [kind]
joins:
  named: {left: parts, right: kinds, foreign_key: [kind], how: inner}
"""
_BEHIND_ALL_LOGS = "joins/named/joined"
"""The table of the commit that only the publication comes after."""

pytestmark = pytest.mark.spark


def write_parts(pipeline: Path, day: str, *rows: tuple[str, int, str | None, int]) -> None:
    """Write records of parts by op, id, kind and sequence."""
    records = [
        {"op": op, "id": key, "kind": kind, "n": n, "at": f"{day}T00:00:00Z"} for op, key, kind, n in rows
    ]
    write_lines(pipeline / "parts" / f"{day}.jsonl", records)


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a lake with one batch: two parts of a kind that is known."""
    folder = tmp_path_factory.mktemp("first") / "parts"
    write_parts(folder, "2024-01-02", ("c", 1, "a", 100), ("c", 2, "a", 101))
    write_lines(folder / "kinds" / "2024-01-02.jsonl", [{"op": "c", "kind": "a", "name": "anchor"}])
    pipeline = make_pipeline(folder, CONFIGURATION)
    assert run(pipeline, spark) == 1
    return pipeline


@pytest.fixture
def parts(first_day: Pipeline, tmp_path: Path) -> Pipeline:
    """Return a copy of that lake."""
    return copy_of(first_day, tmp_path / "parts")


@pytest.mark.guard("transaction_identifier", slow=True)
@pytest.mark.guard("pinned_versions", slow=True)
def test_batch_that_is_cut_off_behind_its_logs_ends_as_if_undisturbed(
    parts: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The rerun neither appends to the logs again nor takes what they hold for the state before the batch."""
    write_parts(parts.path.parent, "2024-01-03", ("u", 1, None, 102), ("c", 3, "a", 103))
    alone = copy_of(parts, tmp_path / "alone")
    run(alone, spark)

    with commits(_BEHIND_ALL_LOGS, "before"), pytest.raises(Crash):
        run(parts, spark)
    run(parts, spark)

    assert joins(parts, spark) == joins(alone, spark)
    for log in ("tables/parts/changes", "joins/named/subscription_log", "joins/named/response_log"):
        rows = [spark.read.format("delta").load(Lake(lake.lake).path(log)) for lake in (parts, alone)]
        assert texts(rows[0]) == texts(rows[1]), log


@pytest.mark.failure(13)
@pytest.mark.guard("dense_batches")
def test_plan_after_a_batch_that_another_run_planned_after_is_not_kept(parts: Pipeline) -> None:
    """Also when this run comes to it long after the other did."""
    early, late = (Journal(Lake(parts.lake)) for _ in range(2))
    plan = replace(early.plans[-1], batch=2, files=())
    first, second = (
        replace(plan, planned_at=plan.planned_at + timedelta(seconds=seconds)) for seconds in (1, 2)
    )
    early.write_plan(first)

    with pytest.raises(LakeBusy, match=r"_plan: another run planned batch 2 meanwhile"):
        late.write_plan(second)

    assert Journal(Lake(parts.lake)).unfinished == first


@pytest.mark.guard("hash_check", slow=True)
def test_answer_to_a_change_that_was_overtaken_in_its_batch_is_not_applied(
    parts: Pipeline, spark: SparkSession
) -> None:
    """The first kind has a row, the second has none: an inner join shows nothing."""
    write_parts(parts.path.parent, "2024-01-03", ("c", 3, "a", 102), ("u", 3, "gone", 103))

    run(parts, spark)

    assert [row for row in joins(parts, spark)["named"] if '"id":3' in row] == []
    assert Journal(Lake(parts.lake)).published[-1].joins["named"]["stale"] == 1


@pytest.mark.slow
@pytest.mark.guard("tombstone_retention", slow=True)
def test_deleted_key_is_remembered_as_long_as_promised(parts: Pipeline, spark: SparkSession) -> None:
    """Until then an older record of it is out of order, and one of an unknown key is none the worse for it."""
    write_parts(parts.path.parent, "2024-01-03", ("d", 2, None, 200))
    write_parts(parts.path.parent, "2024-01-04", ("c", 5, "a", 300))
    write_parts(parts.path.parent, "2024-01-05", ("u", 2, "a", 150), ("c", 6, "a", 160))

    with mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", 1):
        run(parts, spark)

    counts = Journal(Lake(parts.lake)).published[-1].tables["parts"]
    assert counts | {"out_of_order": 1, "applied": 1} == counts
    assert [row for row in joins(parts, spark)["named"] if '"id":2' in row] == []


@pytest.mark.bad_input(21)
def test_hash_and_place_of_an_answer_that_disagree_end_the_batch(
    parts: Pipeline, spark: SparkSession
) -> None:
    """As they would if another version of the product hashed otherwise: no answer is taken for stale on its word."""
    write_parts(parts.path.parent, "2024-01-03", ("c", 3, "a", 102))

    def hashed_otherwise(changes: DataFrame, join: JoinSpec) -> DataFrame:
        other = F.col("hash").withField("high", F.col("hash")["high"] + 1)
        return left_changes(changes, join).withColumn("hash", other)

    with (
        mock.patch("lakejoin.orchestration.batch.joins.sides.left_changes", hashed_otherwise),
        pytest.raises(
            LakeInconsistent, match=rf"(?s)named: 1 answers are .*run {parts.path} --rebuild named"
        ),
    ):
        run(parts, spark)

    assert run(parts, spark) == 1


def test_every_guard_has_a_test() -> None:
    """So that each was seen to be missed."""
    tests = Path(__file__).parents[1].rglob("test_*.py")
    marked = {name for test in tests for name in re.findall(r'mark\.guard\("(\w+)"', test.read_text())}
    assert marked == {*GUARDS}
