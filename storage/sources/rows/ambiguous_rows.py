"""Asks the new parts of a source what in them can be read in two ways."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, StructType, TimestampNTZType, TimestampType

from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import CONTEXT, DERIVED, POSITION_TYPE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import (
    MARKS,
    NAMES,
    Answer,
    Question,
    answers,
    counts_of,
    counts_of_names,
    examples_of,
    marks_of,
    split,
    with_examples,
)
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.questions import of_times, questions

Schema = Mapping[str, DataType | None]
"""The names of a part's columns, with the types of those that are declared."""


def ask(
    records: Callable[[], DataFrame],
    asked: Sequence[Question],
    apart: Callable[[], DataFrame],
) -> list[Answer]:
    """Return the answers that are open.

    `records`: those with marks (`transforms.parsing.ambiguity.marks_of`). `apart`: reads those that were asked once
    more, taken apart as the questions know them; only where an answer is open.
    """
    if not asked:
        return []
    marks = records().where(~F.col(CONTEXT) & ~F.col(DERIVED)).select(f"{MARKS}.*")
    still = _open_answers(marks, asked)
    if not still:
        return []
    rows = apart().where(~F.col(CONTEXT))
    examples = _aggregated(rows, examples_of([question for question, _ in still]))
    return with_examples([answer for _, answer in still], examples)


def _open_answers(marks: DataFrame, asked: Sequence[Question]) -> list[tuple[Question, Answer]]:
    """The questions that some record makes ask, each with what all records say. `marks`: columns of `marks_of`."""
    values, of_names = split(asked)
    looked_at = [F.count(NAMES).alias(NAMES)] if of_names else []
    counts = _aggregated(marks, [*counts_of(values), *looked_at])
    found = [*zip(values, answers(counts, values), strict=True)]
    if of_names and counts[NAMES]:
        counts = _aggregated(marks, counts_of_names(of_names))
        found += zip(of_names, answers(counts, of_names), strict=True)
    return [(question, answer) for question, answer in found if answer.is_open]


def _aggregated(rows: DataFrame, values: Sequence[Column]) -> Row:
    """Values over all rows, by name, for which a job runs; `storage.spark` has the same, but imports a JVM."""
    row = rows.agg(*values).first()
    assert row is not None  # an aggregate without groups has one row
    return row


def ask_columns(table: TableSpec, parts: Sequence[tuple[PlannedFile, Sequence[str]]]) -> list[Answer]:
    """Ask for columns that no part has, but some part in other capitals. `parts`: with the names of their columns."""
    found = []
    for column in table.columns.names:
        if column in table.written or any(column in names_of for _, names_of in parts):
            continue
        same = [(part, name) for part, of in parts for name in of if name.lower() == column.lower()]
        if same:
            (part, name), rows = same[0], sum(part.records for part, _ in parts)
            found.append(Answer("name", column, rows, 0, 0, place=part.name, text=name))
    return found


def ask_typed(
    table: TableSpec,
    options: ParseOptions,
    parts: Sequence[tuple[PlannedFile, Schema]],
    read: Callable[[TableSpec, ParseOptions], DataFrame],
) -> list[Answer]:
    """Ask parts with a schema for columns in other capitals, and for whole numbers that are read as times.

    `read`: reads the parts as another table; nothing is read where no such number is.
    """
    found = ask_columns(table, [(part, list(schema)) for part, schema in parts])
    times = [
        field
        for field in table.columns
        if field.name not in options.encodings and isinstance(field.dataType, TimestampType | TimestampNTZType)
        and any(isinstance(schema.get(table.name_in_source(field.name)), IntegralType) for _, schema in parts)
    ]  # fmt: skip
    if not times:
        return found
    asked_of = replace(
        table, columns=StructType(times), key=(times[0].name,), sequence=POSITION_TYPE, event_time=None,
        max_future=None,
    )  # fmt: skip
    asked = questions(asked_of, replace(options, time="micros"))
    rows = of_times(read(asked_of, options), asked_of).withColumn(MARKS, marks_of(asked))
    return found + ask(lambda: rows, asked, lambda: rows)
