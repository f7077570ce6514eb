"""Which pipelines need the JAR that reads Avro, and how it comes."""

from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from lakejoin.orchestration.config import load_text
from lakejoin.storage.spark.avro import AVRO, in_avro, provide_avro_jar
from lakejoin.storage.spark.jars import jar_name

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: {form}, path: "orders/*"}}
    columns: {{id: bigint}}
    key: [id]
"""


@pytest.mark.parametrize(
    ("form", "needed"), [("avro", True), ("orc", False), ("parquet", False), ("jsonl", False)]
)
def test_only_a_source_in_avro_needs_its_jar(form: str, needed: bool) -> None:
    """Nobody else fetches it; what it needs comes with Spark, and of the same release."""
    pipeline = load_text(TEXT.format(form=form), "lakejoin.yaml")

    assert pipeline.formats == (form,)
    assert in_avro(pipeline.formats) is needed
    jars = [jar.name for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")]
    for name in ("avro-1", "avro-mapred-", "xz-", "zstd-jni-", "snappy-java-", "commons-compress-"):
        assert any(jar.startswith(name) for jar in jars), name


def test_jar_comes_once(tmp_path: Path) -> None:
    """The second call finds it and asks nobody."""

    def bring(coordinates: Sequence[str], scratch: Path) -> Path:
        (folder := scratch / "ivy").mkdir()
        (folder / jar_name(coordinates[0])).touch()
        return folder

    def refuse(coordinates: Sequence[str], scratch: Path) -> Path:
        raise AssertionError(f"the network was asked for {coordinates}")

    fetched = provide_avro_jar(tmp_path, bring)

    assert [jar.name for jar in fetched] == [jar_name(AVRO)]
    assert provide_avro_jar(tmp_path, refuse) == fetched
