"""The examples of docs/stores.md are run as they stand."""

import doctest
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.demo.example import Example

DOCS = Path(__file__).parents[2] / "docs" / "stores.md"


@pytest.mark.spark
@pytest.mark.usefixtures("tiny_days")
def test_examples_of_the_documentation_answer_as_they_say(
    tiny: Example, spark: SparkSession, tmp_path: Path
) -> None:
    """With the session of the tests and the tiny lake."""
    names = {"spark": spark, "folder": tmp_path, "config": tiny.pipeline.path}
    example = doctest.DocTestParser().get_doctest(DOCS.read_text("utf-8"), names, DOCS.name, str(DOCS), 0)
    assert len(example.examples) > 30
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)
