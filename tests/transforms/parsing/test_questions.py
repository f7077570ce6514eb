"""What each record says to a question: it comes with the record, and no line is taken apart a second time for it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakejoin.transforms.model.schemas import POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing import debezium, json_rows
from lakejoin.transforms.parsing.ambiguity import (
    DOUBTFUL,
    MARKS,
    Answer,
    Question,
    answers,
    counts_of,
    counts_of_names,
    split,
)
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.questions import questions, with_questions
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, PRESETS
from lakejoin.transforms.parsing.validation import finish_records
from tests.transforms.parsing.lines import numbered

pytestmark = pytest.mark.spark

FORMS = ["jsonl", "debezium"]


def orders(columns: str) -> TableSpec:
    """A table that nothing but the place of its records orders."""
    return TableSpec("orders", StructType.fromDDL(columns), ("id",), POSITION_TYPE)


def said(
    spark: SparkSession, form: str, lines: Sequence[str], columns: str = "id int, city string"
) -> dict[tuple[str, str], Answer]:
    """What lines say to each question, by its kind and column."""
    table, options = orders(columns), ParseOptions(form, asks=True)
    if form == "jsonl":
        parts, members = (
            json_rows.take_apart(numbered(spark, lines), table, options),
            json_rows.members(table, options),
        )
    else:
        parts = debezium.take_apart(numbered(spark, lines), table, options)
        members = debezium.members(table, options)
    asked = questions(table, options, members)
    marks = finish_records(with_questions(parts, table, options, members), table).select(f"{MARKS}.*")
    found = [
        answer
        for of_kind, counts in zip(split(asked), (counts_of, counts_of_names), strict=True)
        if of_kind
        for answer in answers(marks.agg(*counts(of_kind)).first(), of_kind)
    ]
    return {(answer.kind, answer.column): answer for answer in found}


def update(form: str, row: str) -> str:
    """The line of an update, of a row as JSON."""
    return (
        row.replace("{", '{"op":"u",', 1) if form == "jsonl" else f'{{"op":"u","before":null,"after":{row}}}'
    )


@pytest.mark.parametrize("form", FORMS)
def test_member_is_found_however_it_is_written(form: str, spark: SparkSession) -> None:
    """Null or not, with spaces or escapes, beside objects and braces in texts."""
    rows = ['{"id":1,"city":"Oslo"}', '{"id":1,"city":null}', '{"id" : 1, "city" : null}',
            '{"id":1,"c\\u0069ty":null}', '{"id":1,"city":null,"more":{"a":[{}]}}', '{"id":1,"city":"{"}']  # fmt: skip

    found = said(spark, form, [update(form, row) for row in rows])["absent", "city"]

    assert (found.doubtful, found.plain) == (0, len(rows))


@pytest.mark.parametrize("form", FORMS)
def test_member_of_an_object_within_a_row_or_of_the_row_before_is_none_of_its_own(
    form: str, spark: SparkSession
) -> None:
    """Nor is a text that looks like one."""
    rows = [
        '{"id":1}',
        '{"id":1,"more":{"city":null}}',
        '{"id":1,"note":"\\"city\\":null"}',
        '{"id":1,"City":2}',
    ]
    lines = [update(form, row) for row in rows]
    if form == "debezium":
        lines.append('{"op":"u","before":{"id":1,"city":null},"after":{"id":1}}')

    found = said(spark, form, lines)["absent", "city"]

    assert (found.doubtful, found.plain) == (len(lines), 0)


@pytest.mark.parametrize("form", FORMS)
def test_lines_that_are_no_records_say_nothing(form: str, spark: SparkSession) -> None:
    """Broken ones, and those whose operation nobody knows."""
    lines = ['{"op":"u"', "{}", "[]", '{"op":"x","id":1,"after":{"id":1}}']

    found = said(spark, form, lines)

    assert {
        key for key, answer in found.items() if answer.doubtful or answer.plain or answer.contrary
    } == set()


def test_value_that_does_not_fit_says_what_it_is(spark: SparkSession) -> None:
    """Its record goes to quarantine; still it tells how the source writes the others."""
    lines = [f'{{"op":"c","before":null,"after":{{"id":{n},"price":{price}}}}}' for n, price in
             enumerate(['"AfQ="', '"1234"', '"12.5"', "1234", "null"])]  # fmt: skip

    found = said(spark, "debezium", lines, "id int, price decimal(9,2)")["number", "price"]

    assert (found.doubtful, found.plain, found.contrary) == (1, 1, 1)


def test_unwrapped_reads_without_a_place_in_the_log_are_asked_about(spark: SparkSession) -> None:
    """Rows as events: nothing orders a read that has no `lsn`, until somebody says that it is older than changes."""
    columns = StructType.fromDDL("id int, __lsn bigint")
    table = TableSpec("orders", columns, ("id",), StructType.fromDDL("__lsn bigint"))
    lines = [
        '{"id":1,"__op":"r","__lsn":null}', '{"id":2,"__op":"r","__lsn":1}', '{"id":3,"__op":"r"}',
        '{"id":4,"__op":"u","__lsn":null}',
    ]  # fmt: skip

    def asked(options: ParseOptions) -> dict[tuple[str, str], Question]:
        found = questions(table, options, json_rows.members(table, options))
        return {(question.kind, question.column): question for question in found}

    options = ParseOptions("jsonl", asks=True, row_op=PRESETS["debezium-unwrapped"])
    parts = json_rows.take_apart(numbered(spark, lines), table, options)
    says = asked(options)["read", "lsn"].says
    told = parts.frame.select(POSITION, says.alias("says")).orderBy(f"{POSITION}.line").collect()

    assert [row["says"] for row in told] == [DOUBTFUL, None, DOUBTFUL, None]
    assert ("read", "lsn") not in asked(replace(options, snapshots="oldest"))
    assert ("read", "lsn") not in asked(replace(options, row_op=DEFAULT_OP))
