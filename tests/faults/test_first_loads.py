"""A large first load puts its rows into the files of tables to be, judges them there, and commits them last."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from faults.shop import ORDERS, content, make_shop, run
from lakejoin.expectations.totals import differing_totals
from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.batch.joins import gate
from lakejoin.orchestration.batch.joins.gate import GateFailed
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of, response_log_of, subscription_log_of
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.transforms.foreign_key_join import insert_only
from lakejoin.transforms.model.keys import KeyTotals
from lakejoin.transforms.model.schemas import HASH_TYPE, LEFT_HASH, PRIMARY_KEY, RAW, VERDICT, named

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("large")]

FIRST_DAY = ["2024-01-01"]
TABLES = {
    table(join) for join in ("inner", "left") for table in (subscription_log_of, response_log_of, joined_of)
}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch is one of many records."""
    monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", -1)


@pytest.mark.slow
def test_first_load_of_many_rows_ends_as_that_of_a_few(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row in every table, each made in one commit; no other file of its rows is written.

    It is judged by totals and by the keys that were seen when its records were read, and not key by key.
    """
    with patch("lakejoin.storage.spark.kept_frames.SMALL", 1_000):
        few = make_shop(tmp_path / "few", FIRST_DAY)
        run(few, spark)
    written: list[str] = []
    kept: list[DataFrame] = []
    judged_by: list[KeyTotals | None] = []
    monkeypatch.setattr(
        gate, "differing_totals", _watched(differing_totals, lambda *to: judged_by.append(to[-1]))
    )
    monkeypatch.setattr(gate, "gate", _fail)
    monkeypatch.setattr(Batch, "write", _watched(Batch.write, lambda _, stage, *__: written.append(stage)))
    monkeypatch.setattr(Frames, "_written", _watched(Frames._written, lambda _, frame: kept.append(frame)))
    many = make_shop(tmp_path / "many", FIRST_DAY)

    run(many, spark)

    assert content(many, spark) == content(few, spark)
    assert {*written} == {
        "changes/orders", "changes/customers",
        *[f"{kind}/{join}" for join in ("inner", "left") for kind in ("subscription_log", "response_log", "joined")],
    }  # fmt: skip
    assert [keys and keys.count for keys in judged_by] == [len(ORDERS[day]) for day in FIRST_DAY] * 2
    # source records, of a format that is slow to read again, and nothing that is made of them
    assert all(RAW in frame.columns and VERDICT not in frame.columns for frame in kept)
    versions = Lake(many.lake).versions([*TABLES, "tables/orders/changes", "tables/customers/changes"])
    assert {*versions.values()} == {0}


@pytest.mark.slow
def test_join_that_was_cut_off_behind_its_logs_is_not_written_ahead(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gate would not look at those files: it looks at what the steps lead to, as where tables are there."""
    whole, cut_off = (make_shop(tmp_path / name, FIRST_DAY) for name in ("whole", "cut off"))
    run(whole, spark)
    with monkeypatch.context() as patched:
        patched.setattr("lakejoin.orchestration.batch.joins.stage.commit_joined", _fail)
        with pytest.raises(RuntimeError, match="cut off"):
            run(cut_off, spark)
    lake, written = Lake(cut_off.lake), list[str]()
    assert {table for table in TABLES if lake.snapshot(table)} == TABLES - {
        joined_of("inner"),
        joined_of("left"),
    }
    monkeypatch.setattr(Batch, "write", _watched(Batch.write, lambda _, stage, *__: written.append(stage)))

    run(cut_off, spark)

    assert [stage for stage in written if not stage.startswith("changes/")] == []
    assert content(cut_off, spark) == content(whole, spark)


def _fail(*_: object) -> None:
    raise RuntimeError("cut off")


def _watched(call: Callable[..., Any], look: Callable[..., object]) -> Callable[..., Any]:
    def watched(*args: Any) -> Any:
        look(*args)
        return call(*args)

    return watched


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one row of key 2, and which rules it breaks."""

    step: str
    """Function of `join_inserts` whose rows have another value in a column."""
    key: str
    column: str
    value: str
    """In SQL."""
    rules: tuple[str, ...]

    def __call__(self, step: Callable[..., DataFrame], *args: object) -> DataFrame:
        """The rows of the step with the fault."""
        value = F.when(named(self.key)["id"] == 2, F.expr(self.value)).otherwise(named(self.column))
        return step(*args).withColumn(self.column, value)


_NO_HASH = f"CAST(NULL AS {HASH_TYPE.simpleString()})"
FAULTS = [
    Fault("emit_pairs", PRIMARY_KEY, LEFT_HASH, _NO_HASH, ("left_row_current",)),
    Fault("subscribe", "primary_key", "hash", _NO_HASH, ("answer_subscribed", "subscription_agrees")),
    Fault(
        "applied_answers", "primary_key", "foreign_key", "struct('ada' AS customer)", ("answer_subscribed",)
    ),
]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.step, marks=[] if fault.step == "subscribe" else pytest.mark.slow)
        for fault in FAULTS
    ],
)
def test_first_load_that_its_gate_refuses_leaves_no_table_of_its_join(
    fault: Fault, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever totals differ, every key is looked at: the message names rules and rows, and a way on that works."""
    pipeline = make_shop(tmp_path, FIRST_DAY)
    with monkeypatch.context() as patched:
        patched.setattr(insert_only, fault.step, partial(fault, getattr(insert_only, fault.step)))
        with pytest.raises(GateFailed, match=r"\"id\":2") as failed:
            run(pipeline, spark)
        assert tuple(sorted(re.findall(r"^  (\w+): 1 rows$", str(failed.value), re.MULTILINE))) == fault.rules
        lake = Lake(pipeline.lake)
        assert [table for table in TABLES if lake.snapshot(table)] == []
        assert [path for table in TABLES for path in (Path(pipeline.lake) / table).rglob("*.parquet")] == []
        assert Journal(lake).unfinished is not None
        assert run(pipeline, spark, accept=fault.rules) == 1
    assert Journal(lake).published[-1].accepted == fault.rules
