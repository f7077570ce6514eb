"""Which pipelines need what reaches S3, and which settings they get."""

from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from lakejoin.storage.filesystem import quoted_uri
from lakejoin.storage.spark.jars import JarsNotFound
from lakejoin.storage.spark.s3 import COORDINATES, HADOOP, on_s3, provide_s3_jars, s3_settings


def bring_two_jars(coordinates: Sequence[str], scratch: Path) -> Path:
    """Stand in for a resolution that finds a JAR, and one that it needs."""
    folder = scratch / "ivy" / "jars"
    folder.mkdir(parents=True)
    (folder / "b.jar").write_text(" ".join(coordinates))
    (folder / "a.jar").touch()
    return folder


def test_release_of_hadoop_is_the_one_that_spark_ships() -> None:
    """S3A of another release does not fit."""
    jars = Path(pyspark.__file__).parent / "jars"
    assert [jar.name for jar in jars.glob("hadoop-client-api-*.jar")] == [f"hadoop-client-api-{HADOOP}.jar"]


@pytest.mark.parametrize(
    ("places", "needed"),
    [
        (["/lake", "/data/{date}.jsonl"], False),
        (["hdfs://node/lake", "/data"], False),
        (["/lake", "s3a://bucket/data/{date}.jsonl"], True),
        (["s3a://bucket/lake"], True),
    ],
)
def test_only_a_lake_or_source_on_s3_needs_its_jars(places: list[str], needed: bool) -> None:
    """Nobody else fetches them."""
    assert on_s3(places) is needed


def test_jars_come_once_with_all_that_they_need(tmp_path: Path) -> None:
    """The second call finds the folder and asks nobody; nothing else is left in the cache."""

    def refuse(coordinates: Sequence[str], scratch: Path) -> Path:
        raise AssertionError(f"the network was asked for {coordinates}")

    fetched = provide_s3_jars(tmp_path, bring_two_jars)

    assert [jar.name for jar in fetched] == ["a.jar", "b.jar"]
    assert fetched[1].read_text() == " ".join(COORDINATES)
    assert provide_s3_jars(tmp_path, refuse) == fetched
    assert list(tmp_path.iterdir()) == [fetched[0].parent]


def test_jars_that_another_process_brought_meanwhile_are_taken(tmp_path: Path) -> None:
    """The folder appears whole, so whose it is does not matter."""

    def resolve(coordinates: Sequence[str], scratch: Path) -> Path:
        provide_s3_jars(tmp_path, bring_two_jars)
        return bring_two_jars(coordinates, scratch)

    assert len(provide_s3_jars(tmp_path, resolve)) == 2


def test_jars_that_cannot_be_fetched_leave_nothing_behind(tmp_path: Path) -> None:
    """The message names the folder that another machine could lend."""
    with pytest.raises(JarsNotFound, match=rf"that reach S3 could not be fetched(.|\n)*{tmp_path}/s3-"):
        provide_s3_jars(tmp_path, lambda _, scratch: scratch / "nothing")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.bad_input(32)
def test_endpoint_and_region_come_from_the_environment_and_keys_do_not() -> None:
    """What is a setting can be seen; keys stay in the environment, where Spark finds them."""
    environment = {
        "AWS_ENDPOINT_URL_S3": "http://store:9000",
        "AWS_ENDPOINT_URL": "http://elsewhere",
        "AWS_REGION": "",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    settings = s3_settings(environment)

    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://store:9000"
    assert settings["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert "secret" not in settings.values()


def test_amazons_own_buckets_have_host_names() -> None:
    """Without an endpoint nothing is said of one."""
    assert not [name for name in s3_settings({}) if "endpoint" in name or "path.style" in name]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3a://bucket/a b/100%/?x#y", "s3a://bucket/a%20b/100%25/%3Fx%23y"),
        ("s3a://bucket/a%20b", "s3a://bucket/a%2520b"),
        ("s3a://bucket/a?region=b.jsonl", "s3a://bucket/a%3Fregion%3Db.jsonl"),
        ("s3a://bucket?region=eu-central-1", "s3a://bucket?region=eu-central-1"),
        ("hdfs://node:8020/a b", "hdfs://node:8020/a%20b"),
        ("/a b/100%", "/a b/100%"),
    ],
)
def test_only_the_key_of_a_uri_is_quoted(path: str, expected: str) -> None:
    """The bucket and its options are no part of it, and a path on this machine has none."""
    assert quoted_uri(path) == expected
