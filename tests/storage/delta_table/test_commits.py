"""What our own Delta transactions leave behind, held against Delta's public API."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakejoin.storage.delta_log.live_files import live_files
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import append
from lakejoin.storage.delta_table.compaction import compact, has_many_small_files, small_files
from lakejoin.storage.delta_table.direct_scan import LOG_PROPERTIES, read_table
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.state.joined_table import MERGE, apply_emissions, create_joined
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from lakejoin.transforms.model.schemas import BATCH
from lakejoin.transforms.model.specs import JoinSpec

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("prunes")]

ROWS = StructType([StructField("id", LongType()), StructField(BATCH, LongType())])
JOIN = JoinSpec(
    name="j",
    left="l",
    right="r",
    left_columns=StructType(
        [StructField("id", LongType()), StructField("part", StringType()), StructField("v", StringType())]
    ),
    left_key=("id", "part"),
    right_columns=StructType([StructField("id", LongType())]),
    right_key=("id",),
    foreign_key=("id",),
    how="left",
)


def transaction(batch: int) -> Transaction:
    """A stage's transaction for a batch."""
    return Transaction("lake/stage", batch, {"note": "it's"})


def frame(spark: SparkSession, batch: int, *ids: int) -> DataFrame:
    """Rows of a log."""
    return spark.createDataFrame([(number, batch) for number in ids], ROWS)


def log_of(spark: SparkSession, path: str, batches: int) -> None:
    """A log of so many batches with a row each."""
    for batch in range(1, batches + 1):
        append(frame(spark, batch, batch * 10), path, transaction(batch), LOG_PROPERTIES)


def emissions(
    spark: SparkSession, rows: dict[tuple[int, str], str | None]
) -> tuple[DataFrame, dict[str, int]]:
    """Emissions by key, tombstones without a value, and their counts."""
    schema = StructType([*joined_schema(JOIN)]).add(TOMBSTONE, "boolean")
    values: list[tuple[Any, ...]] = [
        (number, part, value, None, 1, None, None, value is None) for (number, part), value in rows.items()
    ]
    dead = sum(value is None for value in rows.values())
    return spark.createDataFrame(values, schema), {"emissions": len(rows), "tombstones": dead}


def apply(found: DataFrame, counts: dict[str, int], path: str, transaction: Transaction) -> None:
    """Apply a few emissions whose counts are known."""
    apply_emissions(found, path, JOIN, transaction, lambda: counts, few=True)


KEYS = st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", "é`"]))
ROUNDS = st.lists(
    st.dictionaries(KEYS, st.none() | st.sampled_from("xyz"), min_size=1), min_size=2, max_size=4
)


@settings(max_examples=2, phases=[Phase.generate])
@given(rounds=ROUNDS)
def test_replaced_rows_are_those_that_a_merge_leaves(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[dict[tuple[int, str], str | None]],
) -> None:
    """Inserts, updates and deletes, over files with and without deletion vectors, in a folder of an odd name."""
    folder = tmp_path_factory.mktemp("it's [odd] {1,2} 50% ü")
    ours, merged = str(folder / "ours"), str(folder / "merged")
    for batch, rows in enumerate(rounds, start=1):
        found, counts = emissions(spark, rows)
        for path, merge in ((ours, "false"), (merged, "true")):
            if batch == 1:
                create_joined(found, path, JOIN, transaction(batch))
                continue
            spark.conf.set(MERGE, merge)
            apply(found, counts, path, transaction(batch))
            spark.conf.unset(MERGE)
        left, right = (spark.read.format("delta").load(path) for path in (ours, merged))
        assert sorted(left.collect(), key=repr) == sorted(right.collect(), key=repr)


def test_history_shows_one_merge_with_its_batch(spark: SparkSession, lake: Path) -> None:
    """The path taken is ours: a MERGE that states no condition, with deletion vectors."""
    path = str(lake / "joined")
    for batch, rows in enumerate(({(1, "a"): "x", (2, "a"): "x"}, {(1, "a"): "y", (3, "a"): "z"}), start=1):
        found, counts = emissions(spark, {**rows})
        if batch == 1:
            create_joined(found.coalesce(1), path, JOIN, transaction(batch))
        else:
            apply(found.coalesce(1), counts, path, transaction(batch))

    last = DeltaTable(path).history(1)[0]

    assert (last["operation"], last["version"]) == ("MERGE", 1)
    assert last["operationParameters"]["predicate"] == "[]"
    assert last["operationMetrics"]["numTargetRowsDeleted"] == "1"
    assert last["operationMetrics"]["numOutputRows"] == "2"
    assert json.loads(last["userMetadata"]) == {
        "batch": 2, "app": "lake/stage", "note": "it's", "counts": {"emissions": 2, "tombstones": 0},
    }  # fmt: skip
    assert DeltaTable(path).deletion_vectors()


@pytest.mark.parametrize("stated", [True, False])
def test_a_file_with_ended_rows_keeps_the_bounds_that_readers_skip_by(
    spark: SparkSession, lake: Path, stated: bool
) -> None:
    """Whether Delta states the files beside a version, or computes them from a checkpoint, in a stage's own thread."""
    path = str(lake / "joined")
    made, _ = emissions(spark, {(1, "a"): "x", (2, "a"): "x", (3, "a"): "x"})
    create_joined(made.coalesce(1), path, JOIN, transaction(1))
    found, counts = emissions(spark, {(2, "a"): None})
    if not stated:
        DeltaTable(path).create_checkpoint()
        for checksum in Path(path, "_delta_log").glob("*.crc"):
            checksum.unlink()
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    with ThreadPoolExecutor(1) as stage:
        stage.submit(apply, found, counts, path, transaction(2)).result()

    (file,) = map(dict, DeltaTable(path).get_add_actions(flatten=True).to_struct_array().to_pylist())
    assert DeltaTable(path).deletion_vectors()
    assert (file["num_records"], file["min.id"], file["max.id"]) == (3, 1, 3)


def test_rows_that_turn_out_to_be_none_make_no_commit(spark: SparkSession, lake: Path) -> None:
    """They are asked for once everything is prepared, in a log and in a joined table, by either way."""
    log, joined = str(lake / "log"), str(lake / "joined")
    log_of(spark, log, 1)
    found, counts = emissions(spark, {(1, "a"): "x"})
    create_joined(found, joined, JOIN, transaction(1))

    append(frame(spark, 2).limit(0), log, transaction(2), LOG_PROPERTIES, ready=lambda: False)
    for merge in ("false", "true"):
        spark.conf.set(MERGE, merge)
        apply(found.limit(0), dict.fromkeys(counts, 0), joined, transaction(2))
        spark.conf.unset(MERGE)

    assert [DeltaTable(path).version() for path in (log, joined)] == [0, 0]


@pytest.mark.parametrize("small", [True, False])
def test_what_is_refused_last_leaves_the_tables_as_they_were(
    spark: SparkSession, lake: Path, *, small: bool
) -> None:
    """Files may be there by then; no commit names them."""
    log, joined = str(lake / "log"), str(lake / "joined")
    log_of(spark, log, 1)
    found, _ = emissions(spark, {(1, "a"): "x"})
    create_joined(found, joined, JOIN, transaction(1))

    def refuse() -> Any:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        append(frame(spark, 2, 2), log, transaction(2), LOG_PROPERTIES, ready=refuse)
    with pytest.raises(ValueError, match="refused"):
        apply_emissions(found, joined, JOIN, transaction(2), refuse, few=small)

    assert [DeltaTable(path).version() for path in (log, joined)] == [0, 0]
    assert spark.read.format("delta").load(joined).count() == 1


@pytest.mark.guard("transaction_identifier")
def test_a_commit_is_made_once(spark: SparkSession, lake: Path) -> None:
    """The second finds the identifier of the first."""
    path = str(lake / "log")
    for _ in range(2):
        append(frame(spark, 1, 1), path, transaction(1), LOG_PROPERTIES)
    for _ in range(2):
        append(frame(spark, 2, 2), path, transaction(2), LOG_PROPERTIES)

    assert DeltaTable(path).version() == 1
    assert spark.read.format("delta").load(path).count() == 2


def test_commit_to_a_joined_table_is_made_once(spark: SparkSession, lake: Path) -> None:
    """One that comes again replaces nothing, whatever its rows are: they were computed from what was there before."""
    path = str(lake / "joined")
    for batch, rows in ((1, {(1, "a"): "x"}), (2, {(1, "a"): "y"}), (2, {(1, "a"): "z"})):
        found, counts = emissions(spark, {**rows})
        if batch == 1:
            create_joined(found, path, JOIN, transaction(batch))
        else:
            apply(found, counts, path, transaction(batch))

    assert DeltaTable(path).version() == 1


@pytest.mark.failure(12)
def test_of_two_commits_at_the_same_time_one_fails(spark: SparkSession, lake: Path) -> None:
    """Both looked before either had committed."""
    path = str(lake / "log")
    log_of(spark, path, 1)
    first, second = DeltaTransaction(spark, path), DeltaTransaction(spark, path)
    for delta in (first, second):
        assert not delta.is_committed("lake/stage", 2)
    first.commit_write(first.write(frame(spark, 2, 7)), "lake/stage", 2, "{}")

    with pytest.raises(Exception, match=r"ConcurrentTransaction|DELTA_CONCURRENT_TRANSACTION"):
        second.commit_write(second.write(frame(spark, 2, 7)), "lake/stage", 2, "{}")

    assert spark.read.format("delta").load(path).count() == 2


def test_only_the_files_of_later_batches_are_read(spark: SparkSession, lake: Path) -> None:
    """They are found by the batch numbers in Delta's log."""
    path = str(lake / "log")
    log_of(spark, path, 4)

    rows = read_table(spark, path, 3, ROWS, after=2)

    assert {row["id"] for row in rows.collect()} == {30, 40}
    assert len(rows.inputFiles()) == 2
    assert read_table(spark, path, 1, ROWS, after=2).count() == 0


def test_a_compacted_log_is_filtered(spark: SparkSession, lake: Path) -> None:
    """Someone put the files of several batches into one."""
    path = str(lake / "log")
    log_of(spark, path, 3)
    spark.sql(f"OPTIMIZE delta.`{path}`").collect()

    rows = read_table(spark, path, DeltaTable(path).version(), ROWS, after=1)

    assert {row["id"] for row in rows.collect()} == {20, 30}


def test_a_table_with_deletion_vectors_is_read_through_delta(spark: SparkSession, lake: Path) -> None:
    """Someone switched them on, and deleted a row."""
    path = str(lake / "log")
    for batch in (1, 2):
        rows = frame(spark, batch, batch * 10, batch * 10 + 1).coalesce(1)
        append(rows, path, transaction(batch), LOG_PROPERTIES)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (10, 20)")

    version = DeltaTable(path).version()

    assert {row["id"] for row in read_table(spark, path, version, ROWS).collect()} == {11, 21}
    assert {row["id"] for row in read_table(spark, path, version, ROWS, after=1).collect()} == {21}


def test_compaction_leaves_the_rows_and_fewer_files(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files become one, marks of deleted rows go, and the next batch finds its rows."""
    monkeypatch.setattr("lakejoin.storage.delta_table.compaction.SMALL_FILES", 4)
    path = str(lake / "joined")
    for batch in range(1, 5):
        found, counts = emissions(
            spark, {(1, "a"): "x", (2, "a"): "x"} if batch == 1 else {(batch, "a"): "y"}
        )
        if batch == 1:
            create_joined(found.coalesce(1), path, JOIN, transaction(batch))
        else:
            apply(found.coalesce(1), counts, path, transaction(batch))
        assert small_files(path).due == has_many_small_files(path) == (batch == 4)
    assert small_files(path).deleted == 1
    before = sorted(spark.read.format("delta").load(path).collect())

    compact(spark, path, small_files(path), [F.col("id").desc()], Transaction("lake/compact", 7, {}))

    assert not small_files(path).any
    (file,) = live_files(path)
    assert (file.rows, file.deleted) == (len(before), 0)
    rows = spark.read.format("delta").load(path)
    assert [row["id"] for row in rows.collect()] == [4, 3, 2, 1]
    assert sorted(rows.collect()) == before
    assert DeltaTable(path).history(1)[0]["operation"] == "OPTIMIZE"
    assert DeltaTable(path).transaction_version("lake/compact") == 7
    found, counts = emissions(spark, {(1, "a"): None})
    apply(found, counts, path, transaction(1000))
    assert spark.read.format("delta").load(path).count() == len(before) - 1


def test_compaction_of_a_log_leaves_alone_what_a_batch_reads(spark: SparkSession, lake: Path) -> None:
    """Files of folded batches become one, whose commit says that no data changed; later ones stay as they are."""
    path = str(lake / "log")
    log_of(spark, path, 5)
    later = {file.name for file in live_files(path) if file.last is not None and file.last > 3}

    compact(spark, path, small_files(path, through=3), [F.col(BATCH)], Transaction("lake/compact", 1, {}))

    files = live_files(path)
    assert [file.rows for file in files if file.name not in later] == [3]
    assert later < {file.name for file in files}
    entry = (Path(path) / "_delta_log" / f"{5:020}.json").read_text().splitlines()
    changed = [action.get("add") or action.get("remove") for action in map(json.loads, entry)]
    assert [action["dataChange"] for action in changed if action] == [False] * 4
    assert read_table(spark, path, DeltaTable(path).version(), ROWS, after=3).count() == 2
    assert len(read_table(spark, path, DeltaTable(path).version(), ROWS, after=3).inputFiles()) == 2


def test_compaction_gives_way_to_a_commit_that_came_meanwhile(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that it wrote anew was replaced by somebody else: that stands, and the rows are theirs."""
    path = str(lake / "log")
    log_of(spark, path, 3)
    written = DeltaTransaction.rewrite

    def overtaken(self: DeltaTransaction, *arguments: Any) -> Any:
        rewritten = written(self, *arguments)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 10")
        return rewritten

    monkeypatch.setattr(DeltaTransaction, "rewrite", overtaken)
    with pytest.raises(LakeBusy, match="another commit replaced files"):
        compact(spark, path, small_files(path), [F.col(BATCH)], Transaction("lake/compact", 1, {}))

    assert {row["id"] for row in spark.read.format("delta").load(path).collect()} == {20, 30}


def test_rows_of_a_log_have_their_batch_before_any_struct(spark: SparkSession, lake: Path) -> None:
    """Behind a struct without statistics delta-rs finds none of the batch: then no file could be passed over."""
    nested = frame(spark, 1, 1).select(F.struct("id").alias("key"), BATCH)
    for name, rows in (("behind", nested), ("before", nested.select(BATCH, "key"))):
        append(rows.coalesce(1), str(lake / name), transaction(1), LOG_PROPERTIES)

    assert [live_files(str(lake / name))[0].last for name in ("before", "behind")] == [1, None]
