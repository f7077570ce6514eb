"""From the state that a failed gate leaves, each way that its message names leads on."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner, Result

from faults.crashing import Crash, commits
from faults.shop import CONFIGURATION, joins, make_pipeline, make_shop, run, write_lines
from lakejoin.orchestration.batch.joins.gate import GateFailed
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.runs.put_in_quarantine import place_of, put_in_quarantine
from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, retry
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, records_of
from lakejoin.transforms.foreign_key_join.emissions import emit_results
from lakejoin.transforms.foreign_key_join.resolution import resolve_responses
from lakejoin.transforms.model.schemas import HASH_TYPE, LEFT_HASH, PRIMARY_KEY, named

pytestmark = pytest.mark.spark

DAYS = ("2024-01-01", "2024-01-02")
EMIT, RESOLVE = (
    "lakejoin.transforms.foreign_key_join.join.emit_results",
    "lakejoin.transforms.foreign_key_join.join.resolve_responses",
)
PLACES = ["2024-01-02.jsonl:5", "2024-01-02.jsonl:6"]
"""The records of orders that order 6 comes from."""


def _wrong_hash(*args: object) -> DataFrame:
    """The emissions, of which those of order 6 have no hash of their left row."""
    nothing = F.lit(None).cast(HASH_TYPE)
    of_six = named(PRIMARY_KEY)["id"] == 6
    return emit_results(*args).withColumn(LEFT_HASH, F.when(of_six, nothing).otherwise(named(LEFT_HASH)))


def _contradicted(*args: object) -> DataFrame:
    """The answers, of which those to order 6 contradict their hash."""
    of_six = F.col("primary_key")["id"] == 6
    told = F.when(of_six, F.lit("contradictory")).otherwise(F.col("resolution"))
    return resolve_responses(*args).withColumn("resolution", told)


def _command(line: str, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Result:
    """Run what a message says, in the session of the tests."""
    monkeypatch.setattr(options, "open_session", lambda _, **__: spark)
    program, *arguments = shlex.split(line)
    assert program == "lakejoin"
    return CliRunner().invoke(app, arguments)


def _ways(message: str) -> dict[str, str]:
    """The commands of a message by their first option; of two with the same, the first."""
    found = re.findall(r"`(lakejoin [^`]*)`", message)
    return {
        next(word for word in command.split() if word.startswith("--")): command
        for command in reversed(found)
    }


@pytest.fixture
def failed(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A shop whose second batch its gate keeps out, however often it is run."""
    pipeline = make_shop(tmp_path / "shop", DAYS[:1])
    run(pipeline, spark)
    make_shop(tmp_path / "shop", DAYS)
    monkeypatch.setattr(EMIT, _wrong_hash)
    return pipeline


def _fails(pipeline: Pipeline, spark: SparkSession, **options: object) -> str:
    with pytest.raises(GateFailed) as error:
        run(pipeline, spark, **options)
    return str(error.value)


def _plain(folder: Path, spark: SparkSession, without: Sequence[int] = ()) -> dict[str, list[str]]:
    """What the joins are if nothing ever goes wrong, and some lines of orders of the second day have nothing."""
    pipeline = make_shop(folder, DAYS)
    path = folder / "orders" / f"{DAYS[1]}.jsonl"
    lines = path.read_text().splitlines()
    write_lines(path, ["?" if number in without else line for number, line in enumerate(lines, start=1)])
    with pytest.MonkeyPatch.context() as right:
        right.setattr(EMIT, emit_results)
        run(pipeline, spark)
    return joins(pipeline, spark)


def _by_hand(pipeline: Pipeline, spark: SparkSession) -> list[str]:
    rows = (
        in_quarantine(pipeline, spark, tuple(pipeline.inputs)).where(F.col("reason") == "by_hand").collect()
    )
    return [f"{row['file']}:{row['line']}" for row in rows]


@pytest.mark.slow
def test_batch_is_done_without_the_records_that_its_gate_fails_for(
    failed: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names rule, row, records and commands; the records are read again once the mistake is gone."""
    message = _fails(failed, spark)
    assert message.startswith("inner: the batch would break 1 rule(s); its joined table was not touched.\n")
    assert "  left_row_current: 1 rows\n" in message
    assert '"primary_key":{"id":6}' in message
    assert _fails(failed, spark) == message
    ways = _ways(message)
    config = failed.path
    assert ways["--rebuild"] == f"lakejoin run {config} --rebuild inner"
    assert ways["--record"] == f"lakejoin quarantine add {config} orders --record {' --record '.join(PLACES)}"
    assert ways["--accept"] == f"lakejoin run {config} --accept left_row_current"

    result = _command(ways["--record"], monkeypatch, spark)

    assert result.exit_code == 0, result.output
    assert [batch.kind for batch in Journal(Lake(failed.lake)).published] == ["batch", "abandoned", "batch"]
    assert _by_hand(failed, spark) == PLACES
    assert Journal(Lake(failed.lake)).last.tables["orders"]["quarantined"] == 3
    assert joins(failed, spark) == _plain(tmp_path / "without", spark, without=(5, 6))
    listed = _command(f"lakejoin quarantine list {config} orders", monkeypatch, spark).output
    assert "by_hand" in listed

    monkeypatch.setattr(EMIT, emit_results)
    list(retry(failed, lambda: spark, ["orders"]))
    assert _by_hand(failed, spark) == []
    assert joins(failed, spark) == _plain(tmp_path / "plain", spark)


@pytest.mark.slow
def test_record_for_which_a_retry_fails_goes_back(
    failed: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of records from quarantine is done without those of them that its gate fails for."""
    _command(_ways(_fails(failed, spark))["--record"], monkeypatch, spark)
    with pytest.raises(GateFailed) as error:
        list(retry(failed, lambda: spark, ["orders"]))
    result = _command(_ways(str(error.value))["--record"], monkeypatch, spark)
    assert result.exit_code == 0, result.output
    # the first of the two gave no row, for the second stands behind it
    assert Journal(Lake(failed.lake)).last.kind == "retry"
    assert set(_by_hand(failed, spark)) <= set(PLACES)
    assert run(failed, spark) == 0


@pytest.mark.slow
def test_joins_are_computed_anew_once_the_mistake_is_gone(
    failed: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is there, the message names every join that has to be left out of the batch together."""
    first = _ways(_fails(failed, spark))["--rebuild"]
    result = _command(first, monkeypatch, spark)
    assert result.exit_code == 1
    second = _ways(result.output)
    assert second["--rebuild"].endswith(" --rebuild inner --rebuild left")
    # the batch is finished without the joins, and they begin with the next one: the mistake is in that one now
    third = _fails(failed, spark, rebuild=["inner", "left"])
    assert len(Journal(Lake(failed.lake)).published) == 2
    assert Journal(Lake(failed.lake)).unfinished.kind == "bootstrap"
    assert "--record" not in _ways(third)
    assert "no record that can be put into quarantine changed these rows in this batch" in third

    monkeypatch.setattr(EMIT, emit_results)
    result = _command(second["--rebuild"], monkeypatch, spark)
    assert result.exit_code == 0, result.output
    assert joins(failed, spark) == _plain(tmp_path / "plain", spark)


@pytest.mark.slow
def test_join_begins_without_a_record_that_was_read_before(
    failed: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that begins joins reads no record; the record is taken back from the batch that read it."""
    _fails(failed, spark)
    _fails(failed, spark, rebuild=["inner", "left"])
    command = f"lakejoin quarantine add {failed.path} orders --record {PLACES[0]} --record {PLACES[1]}"
    result = _command(command, monkeypatch, spark)
    assert result.exit_code == 0, result.output
    kinds = [batch.kind for batch in Journal(Lake(failed.lake)).published]
    assert kinds == ["batch", "batch", "abandoned", "replace", "bootstrap"]
    assert joins(failed, spark) == _plain(tmp_path / "without", spark, without=(5, 6))

    monkeypatch.setattr(EMIT, emit_results)
    list(retry(failed, lambda: spark, ["orders"]))
    assert joins(failed, spark) == _plain(tmp_path / "plain", spark)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--rebuild", "--record"])
def test_answers_that_contradict_themselves_are_told_with_rows_and_ways(
    way: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be accepted has the two other ways."""
    pipeline = make_shop(tmp_path / "shop", DAYS)
    with monkeypatch.context() as patched:
        patched.setattr(RESOLVE, _contradicted)
        with pytest.raises(LakeInconsistent) as error:
            run(pipeline, spark)
        message = str(error.value)
        assert '    {"primary_key":{"id":6},"foreign_key":{"customer":"cyd"}}\n' in message
        ways = _ways(message)
        assert sorted(ways) == ["--rebuild", "--record"]
        if way == "--record":
            result = _command(ways[way], monkeypatch, spark)
            assert result.exit_code == 0, result.output
            assert joins(pipeline, spark) == _plain(tmp_path / "without", spark, without=(5, 6))
            return
    result = _command(f"{ways[way]} --rebuild left", monkeypatch, spark)
    assert result.exit_code == 0, result.output
    assert joins(pipeline, spark) == _plain(tmp_path / "plain", spark)


OVER = """\
  over: {left: left, right: cities, foreign_key: [right_city], how: left, prefix: "of_city_"}
"""


@pytest.mark.parametrize("select", ["", ", select: [{order: id}, right_city]"], ids=["plain", "renamed"])
def test_record_of_every_table_of_a_chain_is_named(
    select: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a join over a join: what changed the row's left row, and the right rows that either of the joins met.

    The key of the first join's rows may have another name than that of its left rows.
    """
    cities = """\
  cities:
    source: {format: jsonl, path: "cities/{date}.jsonl"}
    columns: {city: string, country: string}
    key: [city]
joins:
"""
    folder = tmp_path / "shop"
    make_shop(folder, DAYS[:1])
    write_lines(folder / "cities" / "2024-01-01.jsonl", [{"op": "c", "city": "Paris", "country": "France"}])
    text = CONFIGURATION.replace("joins:\n", cities).replace("how: left}", f"how: left{select}}}")
    pipeline = make_pipeline(folder, text + OVER)
    monkeypatch.setattr(EMIT, _of_over)
    message = _fails(pipeline, spark)
    assert message.startswith("over: ")
    found = re.findall(r"quarantine add \S+ (\w+) --record (\S+?)`", message)
    assert found == [
        ("orders", "2024-01-01.jsonl:1"),
        ("customers", "2024-01-01.jsonl:1"),
        ("cities", "2024-01-01.jsonl:1"),
    ]


def _of_over(*args: object) -> DataFrame:
    """The emissions, of which that of order 1 in the join over the other has no hash of its left row."""
    emissions = emit_results(*args)
    if "of_city_country" not in emissions.columns:
        return emissions
    nothing = F.lit(None).cast(HASH_TYPE)
    (key,) = emissions.select(f"{PRIMARY_KEY}.*").columns
    of_one = named(PRIMARY_KEY)[key] == 1
    return emissions.withColumn(LEFT_HASH, F.when(of_one, nothing).otherwise(named(LEFT_HASH)))


CHANGES = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: debezium, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string}
    key: [customer]
joins:
  left: {left: orders, right: customers, foreign_key: [customer], how: left}
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, at: timestamp}
    key: [id]
    event_time: at
"""


@pytest.mark.slow
def test_delete_and_record_of_a_stream_are_put_into_quarantine(tmp_path: Path, spark: SparkSession) -> None:
    """A delete is taken back though its tombstone line comes; a stream's record of the batch under way waits."""
    row = {"id": 1, "customer": "ada"}
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [
        {"before": None, "after": row, "op": "c", "ts_ms": 1},
        {"before": row, "after": None, "op": "d", "ts_ms": 2},
        "null",
    ])  # fmt: skip
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", [])
    clicks = [{"op": "c", "id": number, "at": "2024-01-01T00:00:00Z"} for number in (1, 2)]
    write_lines(tmp_path / "clicks" / "2024-01-01.jsonl", clicks)
    pipeline = make_pipeline(tmp_path, CHANGES)
    with commits(records_of("clicks"), "after"), pytest.raises(Crash):
        run(pipeline, spark)
    lake = Lake(pipeline.lake)

    list(put_in_quarantine(pipeline, lambda: spark, [place_of("clicks", "2024-01-01.jsonl:2")]))
    assert Journal(lake).last.tables["clicks"]["applied"] == 1
    assert joins(pipeline, spark) == {"left": []}

    list(put_in_quarantine(pipeline, lambda: spark, [place_of("orders", "2024-01-01.jsonl:2")]))
    assert [text[:8] for text in joins(pipeline, spark)["left"]] == ['{"id":1,']
    assert _by_hand(pipeline, spark) == ["2024-01-01.jsonl:2", "2024-01-01.jsonl:2"]

    list(retry(pipeline, lambda: spark, tuple(pipeline.inputs)))
    assert Journal(lake).last.tables["clicks"]["applied"] == 1
    assert joins(pipeline, spark) == {"left": []}
    assert _by_hand(pipeline, spark) == []
