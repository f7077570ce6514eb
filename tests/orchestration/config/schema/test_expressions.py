"""Foreign keys as SQL: what may be one, and its type as far as it shows without Spark."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.config.schema.expressions import expression_type, renamed

COLUMNS: dict[str, DataType | None] = {
    name: parse_type(text)
    for name, text in {
        "text": "string",
        "other": "string",
        "tiny": "tinyint",
        "small": "smallint",
        "whole": "int",
        "big": "bigint",
        "price": "decimal(12,2)",
        "day": "date",
        "at": "timestamp",
        "flag": "boolean",
        "bin": "binary",
        "tags": "array<string>",
        "props": "map<string,int>",
        "nested": "struct<a: struct<b: int>, c: string>",
        "tail num": "string",
        "a.b": "int",
        "user": "string",
    }.items()
}

TYPED = {
    "text": "string",
    "tail num": "string",
    "a.b": "int",
    "`tail num`": "string",
    "`a.b`": "int",
    "nested.c": "string",
    "nested.a.b": "int",
    "(text)": "string",
    "'constant'": "string",
    "7": "int",
    "7000000000": "bigint",
    "7L": "bigint",
    "upper(text)": "string",
    "trim(lower(text))": "string",
    "trim(both 'x' from text)": "string",
    "ltrim(text)": "string",
    "initcap(text)": "string",
    "replace(text, 'a', 'b')": "string",
    "translate(text, 'a', 'b')": "string",
    "regexp_replace(text, 'a', 'b')": "string",
    "regexp_extract(text, '(a)', 1)": "string",
    "concat(text, '-', other)": "string",
    "concat_ws('-', text, whole)": "string",
    "text || '-' || other": "string",
    "substring(text, 1, 3)": "string",
    "substr(text, 2)": "string",
    "left(text, 2)": "string",
    "right(text, 2)": "string",
    "lpad(text, 5, '0')": "string",
    "md5(text)": "string",
    "sha2(text, 256)": "string",
    "length(text)": "int",
    "year(day)": "int",
    "month(at)": "int",
    "to_date(text)": "date",
    "coalesce(text, 'none')": "string",
    "coalesce(text, null)": "string",
    "nullif(text, '')": "string",
    "nvl(text, other)": "string",
    "if(flag, text, other)": "string",
    "case when whole > 1 then text else 'x' end": "string",
    "case text when 'a' then big end": "bigint",
    "cast(big as string)": "string",
    "cast(text as decimal(10,3))": "decimal(10,3)",
    "cast(text as timestamp_ntz)": "timestamp_ntz",
    "try_cast(text as bigint)": "bigint",
    "cast(text as varchar(3))": "string",
    "text::int": "int",
    "string(big)": "string",
    "date(at)": "date",
    "whole + 1": "int",
    "big * 2": "bigint",
    "whole - big": "bigint",
    "tiny + small": "smallint",
    "tiny + 1": "int",
    "whole % 7": "int",
    "big div 10": "bigint",
    "-whole": "int",
    "text = 'x' and not flag": "boolean",
    "whole in (1, 2)": "boolean",
    "text like 'a%'": "boolean",
    "whole / 2": "double",
    "cast(price as double) * whole": "double",
    "big / cast(text as double)": "double",
    "at is null": "boolean",
    "coalesce(text, upper('none'))": "string",
    "day > cast('2024-01-01' as string)": "boolean",
}
UNTYPED = [
    "null",
    "price + 1",
    "1.5",
    "coalesce(whole, big)",
    "nvl2(text, 'a', 'b')",
    "concat(bin, bin)",
    "substring(bin, 1, 2)",
    "split(text, ',')[0]",
    "try_element_at(split(text, ','), 1)",
    "props['a']",
    "xxhash64(text)",
    "bigint(text)",
    "date_trunc('month', at)",
    "at + interval 1 day",
    "extract(year from at)",
    "greatest(whole, big)",
    "unix_timestamp(at)",
    "get_json_object(text, '$.a')",
    "round(price, 1)",
    "upper(text) like 'a!%' escape '!'",
    "x'ff'",
    "from_utc_timestamp(at, 'Asia/Seoul')",
    "coalesce(date_format(day, 'yyyy'), 'none')",
    "array_max(sort_array(tags))",
    "sqrt(price)",
    "concat(text, chr(9), year(day))",
]


@pytest.mark.parametrize(("sql", "expected"), TYPED.items())
def test_type_shows_without_spark(sql: str, expected: str) -> None:
    """Of usual expressions the type is known when the file is read."""
    assert expression_type(sql, COLUMNS) == parse_type(expected)


@pytest.mark.parametrize("sql", UNTYPED)
def test_type_in_doubt_is_left_open(sql: str) -> None:
    """Where Spark's rule depends on more than is looked at, nothing is claimed."""
    assert expression_type(sql, COLUMNS) is None


@pytest.mark.spark
def test_types_agree_with_spark(spark: SparkSession) -> None:
    """Spark itself gives each expression the type that was told without it, and can run those left open."""
    columns = StructType([StructField(name, dtype) for name, dtype in COLUMNS.items() if dtype])
    rows = spark.createDataFrame([], columns)
    sql_of = {text: f"`{text}`" if text in COLUMNS else text for text in [*TYPED, *UNTYPED]}
    found = rows.select([F.expr(sql).alias(f"c{n}") for n, sql in enumerate(sql_of.values())]).schema

    types = dict(zip(sql_of, (field.dataType for field in found), strict=True))

    assert {sql: types[sql] for sql in TYPED} == {sql: parse_type(text) for sql, text in TYPED.items()}


def test_column_of_unknown_type_is_left_open() -> None:
    """A column whose declaration has a mistake of its own causes no second one."""
    assert expression_type("x", {"x": None}) is None
    assert expression_type("x.y", {"x": None}) is None
    assert expression_type("x + 1", {"x": None}) is None


RULE = "a foreign key is a column or a deterministic scalar expression over the left row"


@pytest.mark.bad_input(31)
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", f"is empty; {RULE}"),
        ("  ", f"is empty; {RULE}"),
        ("upper(text", "is not valid SQL, near character 10"),
        ("text +", "is not valid SQL, near character"),
        ("text)", "is not valid SQL, near character 5"),
        ("'open", "is not valid SQL (Error tokenizing"),
        ("text, other", f"is not one expression; {RULE}"),
        ("text; drop table x", f"is not one expression; {RULE}"),
        ("text;", "holds a comment, ';', '->' or '=>', which are not supported"),
        ("text -- note", "holds a comment"),
        ("/*+ hint */ text", "holds more than an expression (HINT)"),
        ("text from other", f"holds more than an expression (FROM); {RULE}"),
        ("distinct text", f"holds more than an expression (DISTINCT); {RULE}"),
        ("text where flag", f"holds more than an expression (WHERE); {RULE}"),
        ("show tables", "holds a second word or AS"),
        ("text as other", "holds a second word or AS; a foreign key is"),
        ("tail number", "holds a second word or AS"),
        ("*", f"holds *; {RULE}"),
        ("nested.*", f"holds *; {RULE}"),
        ("(text, other)", "holds '(text, other)', which is not supported"),
        (":p", f"holds a parameter; {RULE}"),
        ("?", f"holds a parameter; {RULE}"),
        ("text collate unicode", f"holds a collation; {RULE}"),
        ("(select 1)", f"holds a subquery; {RULE}"),
        ("text in (select 1)", f"holds a subquery; {RULE}"),
        ("exists(select 1)", f"holds a subquery; {RULE}"),
        ("sum(whole)", f"holds an aggregate; {RULE}"),
        ("upper(max(text))", f"holds an aggregate; {RULE}"),
        ("count(*)", f"holds an aggregate; {RULE}"),
        ("row_number() over (order by text)", f"holds a window function; {RULE}"),
        ("explode(tags)", f"holds a function that makes several rows; {RULE}"),
        ("inline(tags)", f"holds a function that makes several rows; {RULE}"),
        ("transform(tags, x -> x)", f"holds a lambda; {RULE}"),
        ("text -> 'a'", "holds a comment, ';', '->' or '=>', which are not supported"),
        ("rand()", f"calls 'rand', which gives another value each time or place it runs; {RULE}"),
        ("`rand`()", f"calls 'rand', which gives another value each time or place it runs; {RULE}"),
        ("concat(text, uuid())", "calls 'uuid', which gives another value"),
        ("now()", "calls 'now', which gives another value"),
        ("current_date", "calls 'current_date', which gives another value"),
        ("current_timestamp()", "calls 'current_timestamp', which gives another value"),
        ("localtimestamp", "calls 'localtimestamp', which gives another value"),
        ("current_user()", "calls 'current_user', which gives another value"),
        ("unix_timestamp()", "calls 'current_timestamp', which gives another value"),
        ("monotonically_increasing_id()", "calls 'monotonically_increasing_id', which gives another value"),
        ("input_file_name()", "calls 'input_file_name', which gives another value"),
        ("java_method('java.util.UUID', 'randomUUID')", "calls 'java_method', which gives another value"),
        ("to_date('now')", "holds 'now', which reads the clock where Spark takes it for a date or time"),
        ("cast('Today UTC' as date)", "holds 'Today UTC', which reads the clock"),
        ("at > ' yesterday'", "holds ' yesterday', which reads the clock"),
        (
            "uper(text)",
            (
                "calls 'uper', which is not among the functions known to be deterministic; did you mean "
                "'upper'? (docs/configuration.md lists them)"
            ),
        ),
        ("my_udf(text)", "calls 'my_udf', which is not among the functions known to be deterministic"),
        ("raise_error(text)", "calls 'raise_error', which gives no value but an error"),
        ("version()", "calls 'version', which gives another value"),
        ("typeof(text)", "calls 'typeof', which changes when a column gets a wider type"),
        ("http_request(text)", "calls 'http_request', which runs code, or reads files or the network"),
        (
            "from_protobuf(bin, 'a', 'f')",
            "calls 'from_protobuf', which runs code, or reads files or the network",
        ),
        ("aes_encrypt(text, 'k')", "calls 'aes_encrypt', which encrypts, by default with other random bytes"),
        ("xpath(text, 'a')", "calls 'xpath', which reads XML"),
        ("kll_sketch_to_string_bigint(bin)", "calls 'kll_sketch_to_string_bigint', which is of sketches"),
        (
            "cast(concat('to', 'day') as date)",
            "computes \"CONCAT('to', 'day')\" of constants, which reads the clock",
        ),
        ("coalesce(day, lower('NO' || 'W'))", "computes \"LOWER('NO' || 'W')\" of constants"),
        ("at > 'to' || 'day'", "computes \"'to' || 'day'\" of constants"),
        ("cast(cast(x'746f646179' as string) as date)", "computes"),
        ("txt", "no column is named 'txt'; did you mean 'text'? (columns: text, other,"),
        ("Text", "no column is named 'Text'; did you mean 'text'?"),
        ("planes.text", "no column is named 'planes'"),
        ("_lj_batch", "no column is named '_lj_batch'"),
        ("text.a", "takes the field 'a' of 'text', which is string, not a struct"),
        ("nested.d", "takes the field 'd', which 'nested' lacks"),
        ("nested.a.c", "takes the field 'c', which 'nested' lacks"),
        ("(" * 900 + "1" + ")" * 900, "is nested too deeply"),
        ("+".join(["1"] * 900), "is nested too deeply"),
        ("text" + " || text" * 400, "is longer than 2000 characters"),
    ],
)
def test_expression_is_refused(sql: str, expected: str) -> None:
    """Anything but a deterministic scalar expression over the row says what stands in the way."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared below
        expression_type(sql, COLUMNS)

    assert str(caught.value).startswith(expected)


def test_words_of_the_clock_are_text_elsewhere() -> None:
    """Only text that begins with such a word is in doubt, and a column may have any name."""
    assert expression_type("text = 'nowhere'", COLUMNS) is not None
    assert expression_type("upper(user)", COLUMNS) is not None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("upper(right_name)", "upper(`name`)"),
        ("`right_name` || 'right_name'", "`name` || 'right_name'"),
        ("right_rate.right_name + right_rate.low", "`rate`.right_name + `rate`.low"),
        ("right_name", "`name`"),
        ("cast(right_rate as int) / right_rate", "cast(`rate` as int) / `rate`"),
    ],
)
def test_columns_get_other_names_and_nothing_else_does(sql: str, expected: str) -> None:
    """Neither texts, nor fields, nor functions; an expression stays as it was written otherwise."""
    assert renamed(sql, {"right_name": "name", "right_rate": "rate"}) == expected
