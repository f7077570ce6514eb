"""Which expressions other engines understand as Spark does: the others are not translated."""

import duckdb
import pytest
from pyspark.sql.types import ArrayType, StringType, StructType

from lakejoin.orchestration.config.schema.standard_sql import translated
from lakejoin.orchestration.verification.comparison import compare

COLUMNS = (
    StructType()
    .add("id", "long")
    .add("Name", "string")
    .add("amount", "integer")
    .add("price", "decimal(10,2)")
    .add("w", "double")
    .add("f", "float")
    .add("small", "short")
    .add("at", "timestamp")
    .add("day", "date")
    .add("tags", ArrayType(StringType()))
    .add("ok", "boolean")
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", '"id"'),
        ("tags", '"tags"'),
        ("NAME = 'x'", "\"Name\" = 'x'"),
        ("`Name` <=> null", '"Name" IS NOT DISTINCT FROM NULL'),
        ("amount * 2 > 10 and not id in (1, 2)", '"amount" * 2 > 10 AND NOT "id" IN (1, 2)'),
        ("price >= 0.5 or w < amount", '"price" >= 0.5 OR "w" < "amount"'),
        ("coalesce(amount, 0) between 1 and 5", 'COALESCE("amount", 0) BETWEEN 1 AND 5'),
        ("case when id > 1 then 'a' else name end", 'CASE WHEN "id" > 1 THEN \'a\' ELSE "Name" END'),
        ("if(amount > 90, null, name)", 'CASE WHEN "amount" > 90 THEN NULL ELSE "Name" END'),
        ("cast(at as date) = day", 'CAST("at" AS DATE) = "day"'),
        ("name is null and ok", '"Name" IS NULL AND "ok"'),
    ],
)
def test_what_means_the_same_is_translated(text: str, expected: str) -> None:
    """With the names of the columns as they are, and SQL that DuckDB can parse."""
    found = translated(text, COLUMNS)
    assert found == expected
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT {found} FROM (SELECT 1 AS id, 'x' AS \"Name\", 2 AS amount, 0.5 AS price, 1e0 AS w, "
            "TIMESTAMP '2024-01-01' AS at, DATE '2024-01-01' AS day, ['a'] AS tags, true AS ok)"
        )


@pytest.mark.parametrize(
    "text",
    [
        "upper(name)", "amount / 2", "name like 'a%'", "amount % 2", "round(amount)", "date_format(at, 'yyyy')",
        "other", "t.id", "id >", "(select 1)", "name || 'x'",
        "cast(name as bigint)", "cast('5' as int)", "cast(id as string)", "cast(id as timestamp)", "cast(at as bigint)",
        "cast(price as int)", "cast(w as bigint)", "cast(amount as decimal(9,2))", "cast(id as int)",
        "f > 0.1", "small + 1", "tags > array('a')", "tags = tags",
        "name = 1", "name in (1, 2)", "coalesce(name, 0)", "coalesce(amount, 0.5)", "at > '2024-01-01'", "day = at",
        "price * 2", "price + 0.1", "if(ok, 1, 'a')", "case id when 1 then 'a' end", "if(id, 1, 2)", "not id",
    ],
)  # fmt: skip
def test_what_may_mean_something_else_is_not(text: str) -> None:
    """Other functions, casts that round, kinds that are mixed, and what DuckDB orders or widens in its own way."""
    assert translated(text, COLUMNS) is None


def test_columns_of_any_name_are_compared() -> None:
    """Also those that SQL itself would give names like: nothing that is made here collides with them."""
    names = ["n", "kind", "there_b", "a", "b", "d0", "k0", "met"]
    with duckdb.connect() as connection:
        listed = ", ".join(f'{number} AS "{name}"' for number, name in enumerate(names))
        connection.execute(f"CREATE TABLE one AS SELECT i AS id, {listed} FROM range(30) AS r(i)")
        connection.execute("CREATE TABLE other AS FROM one")
        equal = compare(connection, ("one", "other"), ["n", "id"], names[1:])
    assert equal.equal
    assert equal.rows == 30


def test_first_differences_of_each_kind_are_told() -> None:
    """Many of one kind hide no other."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE one AS SELECT i AS n, i AS v FROM range(30) AS r(i)")
        connection.execute("CREATE TABLE other AS SELECT n, v + 1 AS v FROM one WHERE n > 0")
        connection.execute("INSERT INTO other VALUES (99, 1), (98, 1), (98, 1)")
        found = compare(connection, ("one", "other"), ["n"], ["v"])
    assert found.kinds == {"different": 29, "missing": 1, "extra": 3, "doubled": 1}
    assert {one.kind for one in found.first} == {"different", "missing", "extra", "doubled"}
    assert found.columns == {"v": 29}
    assert found.first[0].key == {"n": 98}
