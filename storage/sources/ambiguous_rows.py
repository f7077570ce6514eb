"""Asks rows of a source what in them can be read in two ways."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from transforms.parsing.ambiguity import Answer, Question, answers, counted, names


def ask(rows: DataFrame, asked: Sequence[Question]) -> list[Answer]:
    """Return the answers that are open. Names of columns are compared only where some column is in no row."""
    if not asked:
        return []
    row = counted(rows, asked).first()
    assert row is not None  # an aggregate without groups has one row
    found = [answer for answer in answers(row, asked) if answer.is_open]
    if any(answer.kind == "name" for answer in found):
        written = {row["name"].lower(): row["name"] for row in names(rows).collect()}
        others = {answer.column: written.get(answer.column.lower()) for answer in found}
        found = [a if a.kind != "name" else replace(a, text=others[a.column] or "") for a in found]
    return [answer for answer in found if answer.kind != "name" or answer.text]
