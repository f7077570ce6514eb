"""Foreign keys that are expressions, as Spark itself sees them before anything is planned."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import ConfigurationError, load_text
from lakejoin.orchestration.lake_state.sql_checks import check_expressions
from lakejoin.orchestration.runs.run import run_batches

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders.jsonl"}}
    columns: {{id: bigint, codes: string, "the-code": string, at: timestamp}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers.jsonl"}}
    columns: {{code: string, at: date}}
    key: [code, at]
joins:
  first: {{left: orders, right: customers, foreign_key: [{0}, to_date(at)], how: left}}
"""


@pytest.mark.parametrize(
    "text",
    [
        "codes",
        "\"split(codes, ',')[0]\"",
        "upper(codes)",
        '"concat(codes, `the-code`)"',
        "\"get_json_object(codes, '$.a')\"",
        # some rows need the part that cannot be computed, others do not
        '"coalesce(codes, string(1 / 0))"',
        '"string(1 / nullif(id, 0))"',
    ],
)
def test_expression_of_the_right_type_is_taken(spark: SparkSession, text: str) -> None:
    """Columns, and expressions whose type showed without Spark or not."""
    check_expressions(load_text(TEXT.format(text), "/etc/shop.yaml"), spark)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\"split(codes, ',')\"",
            "\"split(codes, ',')\" is array<string>, but a key or foreign key is never",
        ),
        (
            "\"size(split(codes, ','))\"",
            "is int, but the right key customers.code is string; expected exactly",
        ),
        ('"sha2(codes)"', "'sha2(codes)' is refused by Spark: [WRONG_NUM_ARGS.WITHOUT_SUGGESTION]"),
        (
            '"concat(codes, string(1 / 0))"',
            "'concat(codes, string(1 / 0))' cannot be computed, whatever the row is: [DIVIDE_BY_ZERO]",
        ),
        (
            "\"date_format(cast('x' as date), 'y')\"",
            "whatever the row is: [CAST_INVALID_INPUT] The value 'x'",
        ),
        ('"element_at(codes, 1)"', "'element_at(codes, 1)' is refused by Spark: [DATATYPE_MISMATCH"),
    ],
)
def test_wrong_expression_is_a_mistake_of_the_file(spark: SparkSession, text: str, message: str) -> None:
    """It is reported as every other mistake is: with file, line and path, in one line."""
    with pytest.raises(ConfigurationError) as refused:
        check_expressions(load_text(TEXT.format(text), "/etc/shop.yaml"), spark)

    assert str(refused.value).startswith("/etc/shop.yaml:13: joins.first.foreign_key[0]: ")
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert "SQLSTATE" not in str(refused.value)


def test_run_checks_expressions_before_it_plans(spark: SparkSession, tmp_path: Path) -> None:
    """No table of the lake is made by a configuration that cannot work."""
    (tmp_path / "orders.jsonl").write_text('{"op": "c", "id": 1}\n')
    (tmp_path / "customers.jsonl").write_text("")
    pipeline = load_text(TEXT.format('"sha2(codes)"'), tmp_path / "lakejoin.yaml")

    with pytest.raises(ConfigurationError, match="is refused by Spark"):
        list(run_batches(pipeline, spark))

    assert [path.name for path in (tmp_path / "lake").iterdir()] == ["_lock"]


STREAM = """\
name: shop
lake: ./lake
tables:
  customers: {{source: {{format: jsonl, path: customers.jsonl}}, columns: {{id: int}}, key: [id]}}
streams:
  clicks:
    source: {{format: jsonl, path: clicks.jsonl}}
    columns: {{id: int, status: string, at: timestamp}}
    key: [id]
    event_time: at
    where: {0}
joins:
  known: {{stream: clicks, table: customers, foreign_key: [id], how: left}}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\"array_contains(status, 'x')\"", "is refused by Spark: [DATATYPE_MISMATCH"),
        ("\"split(status, ',')[0]\"", "is string; expected a condition, which is true or false"),
        ('"id > array(1)[2]"', "cannot be computed, whatever the row is: [INVALID_ARRAY_INDEX]"),
    ],
)
def test_wrong_condition_of_a_stream_is_a_mistake_of_the_file(
    spark: SparkSession, text: str, message: str
) -> None:
    """After the plan it would stop the batch, and every one after it."""
    with pytest.raises(ConfigurationError) as refused:
        check_expressions(load_text(STREAM.format(text), "/etc/shop.yaml"), spark)

    assert str(refused.value).startswith("/etc/shop.yaml:11: streams.clicks.where: ")
    assert message in str(refused.value)
    check_expressions(load_text(STREAM.format("\"status = 'x'\""), "/etc/shop.yaml"), spark)
    named = STREAM.format("is-new").replace("status: string", "is-new: boolean")
    check_expressions(load_text(named, "/etc/shop.yaml"), spark)
