"""The same pipeline with its lake, and its sources, on an S3 server."""

from dataclasses import make_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from faults.shop import Content, content, make_shop
from lakejoin.orchestration.config import load
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.lake.bookkeeping import record
from lakejoin.storage.lake.layout import PLAN, Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.sources.files.path_patterns import fixed
from lakejoin.storage.sources.files.source_files import find_files
from lakejoin.storage.sources.formats.jsonl import Jsonl
from places.conftest import DAYS
from places.processes import python, run_pipelines
from places.remote_shop import downloaded, make_remote_shop
from places.s3_server import BUCKET, SECRET, S3Server

SPARK = """\
spark:
  master: local[2]
  conf: {spark.driver.memory: 1g, spark.sql.shuffle.partitions: 2, spark.driver.extraJavaOptions: -XX:+UseSerialGC}
"""
WAYS = {"straight": "2 batches", "large": "2 batches", "crashing": "6 crashes"}


def status(path: Path, server: S3Server) -> str:
    """Return what `lakejoin status` says of a pipeline, wherever its lake is."""
    said = python("-m", "lakejoin", "status", path, environment=server.environment).stdout
    assert "orders" in said
    return said.replace(load(path).lake, "LAKE")


@pytest.mark.spark
@pytest.mark.slow
def test_lake_on_s3_has_the_tables_of_one_machine(
    on_one_machine: Content, server: S3Server, tmp_path: Path, spark: SparkSession
) -> None:
    """Every row of every table: from small batches, large ones, and ones that crashed again and again.

    Nothing that was written holds the secret.
    """
    paths = {way: make_remote_shop(tmp_path / way, server, SPARK) for way in WAYS}

    said = run_pipelines(*[(path, way) for way, path in paths.items()], environment=server.environment)

    assert said == WAYS
    for path in paths.values():
        assert content(downloaded(path, server), spark) == on_one_machine
    assert status(paths["straight"], server) == status(paths["straight"].with_name("copy.yaml"), server)
    left = server.names("large/lake/_scratch/")
    # S3A leaves a directory, which is an empty object
    assert not [name for name in left if not name.endswith("/")]
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not [content for content in written if SECRET.encode() in content]


@pytest.mark.spark
@pytest.mark.slow
def test_lake_below_a_folder_of_any_name_has_the_tables_of_one_machine(
    on_one_machine: Content, server: S3Server, tmp_path: Path, spark: SparkSession
) -> None:
    """Spark takes a key as it stands, other readers take it quoted: all find the same objects."""
    path = make_remote_shop(tmp_path / "sure? 100% #1 é", server, SPARK)

    said = run_pipelines((path, "straight"), environment=server.environment)

    assert list(said.values()) == [WAYS["straight"]]
    assert content(downloaded(path, server), spark) == on_one_machine


@pytest.mark.parametrize(
    "folder", ["a b", "100%", "a%20b", "what?", "x?region=here/y", "#1", "[a]{b}*", "é+&=@:"]
)
def test_source_on_s3_is_read_below_a_folder_of_any_name(
    folder: str, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is taken as it stands: files are listed and read that have such signs in folder and name."""
    for name, value in server.access.items():
        monkeypatch.setenv(name, value)
    (tmp_path / f"of {folder.translate(str.maketrans('', '', ':/'))}.jsonl").write_text("{}\n")
    server.upload(tmp_path, f"source {folder}")

    (found,) = find_files(
        fixed(f"s3a://{BUCKET}/source {folder}") + "/*.jsonl", settle=timedelta(0), now=datetime.now(UTC)
    )

    assert Jsonl().measure(found).lines == 1


@pytest.mark.parametrize("folder", ["a b", "100%", "what?", "x?region=here/y", "#1", "[a]{b}*", "é+&=@:"])
def test_bookkeeping_on_s3_is_kept_below_a_folder_of_any_name(
    folder: str, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease and the plan are there and nowhere else, and are found again."""
    for name, value in server.access.items():
        monkeypatch.setenv(name, value)
    root, before = f"lake {folder}", set(server.names(""))
    lake = Lake(f"s3a://{BUCKET}/{root}")
    row = make_dataclass("Row", [("batch", int)])(1)

    with writing(lake):
        made = [record(lake.path(PLAN), row, Transaction(PLAN, 1, {})) for _ in range(2)]

    assert made == [True, False]
    snapshot = lake.snapshot(PLAN)
    assert snapshot is not None
    assert snapshot.read() == [{"batch": 1}]
    assert server.names(f"{root}/{PLAN}/_delta_log/")
    assert [name for name in set(server.names("")) - before if not name.startswith(f"{root}/")] == []


def test_bookkeeping_on_s3_keeps_the_rows_of_two_writers(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw the same version; the second one's commit comes behind the first one's and not over it."""
    for name, value in server.access.items():
        monkeypatch.setenv(name, value)
    path = f"s3a://{BUCKET}/bookkeeping"
    write_deltalake(path, pa.table({"writer": ["none"]}))
    writers = {name: DeltaTable(path) for name in ("first", "second")}

    for name, table in writers.items():
        write_deltalake(table, pa.table({"writer": [name]}), mode="append")

    rows = DeltaTable(path).to_pyarrow_table()["writer"].to_pylist()
    assert sorted(rows) == ["first", "none", "second"]


@pytest.mark.bad_input(32)
def test_lake_on_s3_that_is_refused_is_explained_without_the_secret(server: S3Server, tmp_path: Path) -> None:
    """A bucket that is not there: the message says where and why, and keys stay where they are."""
    path = make_shop(tmp_path, DAYS[:1]).path
    path.write_text(path.read_text().replace("./lake", "s3a://nobody/lake"))

    result = python("-m", "lakejoin", "status", path, environment=server.environment, succeeds=False)

    assert result.returncode == 1
    assert "s3a://nobody/lake/_plan" in result.stderr
    assert "Traceback" not in result.stderr
    assert SECRET not in result.stdout + result.stderr
