"""Jan Filipiak's one-to-many join, row by row: the steps in the second half of KIP-213, each an event.

What forwards something has a batch of its own. His A is the right table, his B the left one: "there is one A for each B
and there may be many B's for each A".
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest
from dagster import AssetKey
from pyspark.sql import Row, SparkSession

from faults.shop import make_pipeline
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.orchestration.show.stores import stored_tables
from lakejoin.orchestration.show.tables import View, find_view
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State
from lakejoin.storage.stores.pipeline.tables import joined_store

pytestmark = pytest.mark.spark

CONFIGURATION = """\
name: jan
lake: ./lake
tables:
  a:
    source: {format: jsonl, path: "a/{date}.jsonl"}
    columns: {key: string, value: string}
    key: [key]
  b:
    source: {format: jsonl, path: "b/{date}.jsonl", absent: clear}
    columns: {key: string, ref: string, value: string}
    key: [key]
joins:
  ab: {left: b, right: a, foreign_key: [ref], how: inner, prefix: a_, result_key: combined, changelog: true}
"""


@dataclass(frozen=True)
class Step:
    """A row of the table: its input, and what it says that comes out."""

    topology_input: str
    output: str
    table: str
    record: dict[str, str]
    changelog: tuple[tuple[str, str | None], ...]
    """Keys that are forwarded, each with the two values that are joined, or null."""


def a(key: str) -> dict[str, str]:
    """`key: A0 value: [A0 ...]`."""
    return {"op": "u", "key": key, "value": f"[{key} ...]"}


def b(key: str, ref: str) -> dict[str, str]:
    """`key: B0 : value [A2,B0 ...]`."""
    return {"op": "u", "key": key, "ref": ref, "value": f"[{ref},{key} ...]"}


STEPS = (
    Step("key: A0 value: [A0 ...]", "invoked but nothing found. Nothing forwarded", "a", a("A0"), ()),
    Step("key: A1 value: [A1 ...]", "invoked but nothing found. Nothing forwarded", "a", a("A1"), ()),
    Step("key: B0 : value [A2,B0 ...]", "invoked but nothing found Nothing forwarded", "b", b("B0", "A2"), ()),
    Step("key: B1 : value [A2,B1 ...]", "invoked but nothing found Nothing forwarded", "b", b("B1", "A2"), ()),
    Step(
        "key: A2 value: [A2 ...]",
        "key A2B0 value: Change<null,join([A2 ...],[A2,B0 ...]) key A2B1 value: Change<null,join([A2 ...],[A2,B1...])",
        "a", a("A2"),
        (("A2B0", "join([A2 ...],[A2,B0 ...])"), ("A2B1", "join([A2 ...],[A2,B1 ...])")),
    ),
    Step(
        "key: B1 : value null", "key A2B1 value: Change<join([A2 ...],[A2,B1...],null)", "b",
        {"op": "d", "key": "B1"}, (("A2B1", None),),
    ),
    Step(
        "key: B3 : value [A0,B3 ...]", "key A0B3 value: Change<join(null,[A0 ...],[A0,B3...])", "b",
        b("B3", "A0"), (("A0B3", "join([A0 ...],[A0,B3 ...])"),),
    ),
    Step(
        "key: A2 value: null", "key A2B0 value: Change<join([A2 ...],[A2,B0 ...],null)", "a",
        {"op": "d", "key": "A2"}, (("A2B0", None),),
    ),
    # beyond the table: the algorithm's "forward(key, null) for old", "forward(key, b) for new", "skip old if A's key
    # didn't change", and "B records with a 'null' A-key value would be silently dropped"
    Step("B3 from A0 to A1", "retracted, then added", "b", b("B3", "A1"),
         (("A0B3", None), ("A1B3", "join([A1 ...],[A1,B3 ...])"))),
    Step("B3 again", "only added", "b", b("B3", "A1"), (("A1B3", "join([A1 ...],[A1,B3 ...])"),)),
    Step("B4 without an A", "dropped", "b", {"op": "u", "key": "B4", "value": "[B4 ...]"}, ()),
    Step("B5 : value [A1,B5 ...]", "added", "b", b("B5", "A1"), (("A1B5", "join([A1 ...],[A1,B5 ...])"),)),
)  # fmt: skip
BATCHES = (STEPS[:4], *[(step,) for step in STEPS[4:9]], STEPS[9:])
FIRST_DAY = date(2024, 1, 1)


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Return the pipeline after its batches."""
    folder = tmp_path_factory.mktemp("jan")
    for table in ("a", "b"):
        (folder / table).mkdir()
    for number, steps in enumerate(BATCHES):
        for step in steps:
            path = folder / step.table / f"{FIRST_DAY + timedelta(days=number)}.jsonl"
            with path.open("a") as file:
                file.write(json.dumps(step.record) + "\n")
    made = make_pipeline(folder, CONFIGURATION)
    assert len(list(run_batches(made, spark))) == len(BATCHES)
    return made


def view(pipeline: Pipeline, name: str, spark: SparkSession) -> View:
    """A table of the lake as `show` opens it."""
    lake = Lake(pipeline.lake)
    return find_view(pipeline, name)(State(spark, lake, published_snapshot(Journal(lake))))


def pair(row: Row) -> tuple[str, str | None]:
    """The combined key and the joined value, as the table writes them."""
    gone = "_lj_tombstone" in row and row["_lj_tombstone"]
    return row["a_key"] + row["key"], None if gone else f"join({row['a_value']},{row['value']})"


@pytest.mark.slow
def test_each_row_of_the_table_comes_out(pipeline: Pipeline, spark: SparkSession) -> None:
    """Input and output of every row; a retraction stands before the addition that goes with it."""
    changelog = view(pipeline, "ab.changelog", spark)
    rows = changelog.rows.orderBy(*changelog.order).collect()

    for number, steps in enumerate(BATCHES, start=1):
        found = [pair(row) for row in rows if row["_lj_batch"] == number]
        expected = [forwarded for step in steps for forwarded in step.changelog]
        assert found == expected, [f"{step.topology_input}: {step.output}" for step in steps]
    assert [pair(row)[0] for row in rows if row["redundant"]] == ["A1B3"]  # B3 again


@pytest.mark.slow
def test_joined_table_is_keyed_by_both_keys(pipeline: Pipeline, spark: SparkSession) -> None:
    """Rows of one A stand together, and `--key` takes both keys."""
    joined = view(pipeline, "ab", spark)

    assert [pair(row)[0] for row in joined.shown(internal=False).collect()] == ["A1B3", "A1B5"]
    assert list(joined.key) == ["a_key", "key"]
    assert [pair(row)[0] for row in joined.of_key('["A1","B3"]').rows.collect()] == ["A1B3"]
    assert _first_column(view(pipeline, "ab.changelog", spark).of_key('["A0","B3"]').rows.collect()) == {"A0"}


@pytest.mark.slow
def test_joined_table_opens_as_a_store_in_which_a_foreign_key_is_a_prefix(pipeline: Pipeline) -> None:
    """The subscribers of an A are one range of the CombinedKey."""
    lake = Lake(pipeline.lake)
    store = joined_store(lake, published_snapshot(Journal(lake)), pipeline.join_spec("ab"))

    assert [entry.key for entry in store.prefix_scan(("A1",))] == [("A1", "B3"), ("A1", "B5")]
    assert store.get(("A0", "B3")) is None
    assert stored_tables(pipeline)["ab"].ordered.key.names == ["a_key", "key"]


def _first_column(rows: Iterable[Row]) -> set[str]:
    return {row["a_key"] for row in rows}


@pytest.mark.slow
def test_rules_hold_and_counts_add_up(pipeline: Pipeline, spark: SparkSession) -> None:
    """The expectations over the whole lake, and over what the last batches touched."""
    assert check_lake(pipeline, spark, batches=None).passed
    assert check_lake(pipeline, spark, batches=4).passed
    for batch in Journal(Lake(pipeline.lake)).published:
        counts = batch.joins["ab"]
        assert counts["answers"] == counts["applied"] + counts["superseded"] + counts["stale"]


def test_dagster_shows_both_columns_as_the_key(pipeline: Pipeline) -> None:
    """Neither of them alone is unique."""
    definitions = pipeline_definitions(EmbeddedPipeline(pipeline), datetime(2024, 1, 20, tzinfo=UTC))
    spec = definitions.resolve_asset_graph().get(AssetKey(["jan", "ab"]))
    columns = spec.metadata["dagster/column_schema"].columns

    keys = {column.name: column.constraints.unique for column in columns if not column.constraints.nullable}
    assert keys == {"a_key": False, "key": False}
