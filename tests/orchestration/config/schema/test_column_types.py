"""Types of columns, read without Spark, and which of them may be keys or order changes."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.orchestration.config.schema.column_types import (
    may_be_key,
    may_be_sequence,
    parse_type,
    type_text,
)

TYPES = {
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "INTEGER": IntegerType(),
    "bigint": LongType(),
    "Long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal": DecimalType(10, 0),
    "decimal(12)": DecimalType(12, 0),
    "decimal( 12 , 2 )": DecimalType(12, 2),
    "numeric(38,38)": DecimalType(38, 38),
    "string": StringType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "date": DateType(),
    " timestamp ": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "array<array<int>>": ArrayType(ArrayType(IntegerType())),
    "map<string, decimal(4,1)>": MapType(StringType(), DecimalType(4, 1)),
    "struct<a: int, `b c``d` string, E:array<date>>": StructType(
        [
            StructField("a", IntegerType()),
            StructField("b c`d", StringType()),
            StructField("E", ArrayType(DateType())),
        ]
    ),
}
UNKNOWN = "(allowed: tinyint, smallint, int, bigint,"


@pytest.mark.parametrize(("text", "dtype"), TYPES.items())
def test_declaration_names_the_type(text: str, dtype: DataType) -> None:
    """Every type of the reference is understood, in Spark's spellings."""
    assert parse_type(text) == dtype


@pytest.mark.spark
def test_types_agree_with_spark(spark: object) -> None:
    """Spark's own parser reads each of these declarations as the same type."""
    assert {text: DataType.fromDDL(text) for text in TYPES} == TYPES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("strng", "unknown type 'strng'; did you mean 'string'? " + UNKNOWN),
        ("varchar(20)", "unknown type 'varchar'; did you mean 'string'? " + UNKNOWN),
        ("datetime", "unknown type 'datetime'; did you mean 'timestamp'? " + UNKNOWN),
        ("interval day", "unknown type 'interval'"),
        ("", "expected a type in the type '', found its end"),
        (
            "decimal(",
            "expected a number of digits in the type 'decimal(', found its end; a type with a comma",
        ),
        ("decimal(x)", "expected a number of digits in the type 'decimal(x)', found 'x'"),
        ("decimal(0)", "decimal(0,0) does not exist"),
        ("decimal(39)", "decimal(39,0) does not exist; allowed: 1 to 38 digits"),
        ("decimal(5,6)", "decimal(5,6) does not exist"),
        ("decimal(99999)", "expected a number of digits in the type 'decimal(99999)', found '99999'"),
        ("int(11)", "expected the end of the type in the type 'int(11)', found '('"),
        ("string not null", "expected the end of the type in the type 'string not null', found 'not'"),
        ("array", "expected '<' in the type 'array', found its end"),
        ("array<int", "expected '>' in the type 'array<int', found its end"),
        ("array<nope>", "unknown type 'nope'"),
        ("map<string>", "expected ',' in the type 'map<string>', found '>'"),
        ("map<map<int,int>,int>", "the key of a map may not hold a map"),
        ("struct<>", "expected the name of a field in the type 'struct<>', found '>'"),
        ("struct<a: int, A: int>", "the field 'A' stands twice in a struct"),
        ("struct<a: int b: int>", "expected '>' in the type"),
        ("int;", "expected the end of the type in the type 'int;', found ';'"),
        ("array<" * 2000, "nested deeper than 16 levels"),
    ],
)
def test_declaration_is_refused(text: str, expected: str) -> None:
    """What is no type says what was expected where."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared below
        parse_type(text)

    assert str(caught.value).startswith(expected)


def test_type_is_written_as_it_is_declared() -> None:
    """Messages show types in the spelling that the file takes."""
    assert all(parse_type(type_text(dtype)) == dtype for dtype in TYPES.values() if "b c" not in str(dtype))


@pytest.mark.parametrize(
    ("text", "key", "sequence"),
    [
        ("bigint", True, True),
        ("string", True, True),
        ("decimal(12,2)", True, True),
        ("timestamp", True, True),
        ("boolean", True, False),
        ("binary", True, False),
        ("float", False, True),
        ("double", False, True),
        ("array<int>", False, False),
        ("map<int,int>", False, False),
        ("struct<a:int>", False, False),
    ],
)
def test_type_may_be_key_or_sequence(text: str, key: bool, sequence: bool) -> None:
    """Floats and nested values identify nothing; what has no order in time orders nothing."""
    assert (may_be_key(parse_type(text)), may_be_sequence(parse_type(text))) == (key, sequence)
