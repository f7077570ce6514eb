"""Counts over the records of a source what in them can be read in two ways, and says which questions stay open.

A value, an order or a name that has two meanings is read wrongly half of the time, and nobody is told. So new input is
looked at before a batch is planned for it (`transforms.parsing.questions`). Where a source's other values tell the
answer, it is no question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from transforms.model.schemas import POSITION

Kind = Literal["number", "binary", "time", "absent", "name", "table", "sequence", "read"]
"""Numbers in quotes that are base64 as well; binary that is base64 and hexadecimal; whole numbers that are no times by
their unit; updates that lack a column; a column that the source has in other capitals; events of two tables; an order
that is none; reads of a snapshot that nothing orders among the changes."""

_SHOWN = 100
"""Characters of a value that a message shows."""
_MOST_OF_TIMES = 0.01
"""A larger share of a column's times that cannot be meant is asked about."""


@dataclass(frozen=True)
class Question:
    """Something that can be read in two ways, as conditions over a record."""

    kind: Kind
    column: str
    """The declared column that it is about; empty where it is about no single one."""
    doubtful: Column
    """The record can be read in two ways."""
    text: Column
    """What the record has."""
    plain: Column | None = None
    """The record shows that the source means what is declared."""
    contrary: Column | None = None
    """The record shows that the source means the other."""
    differs: Column | None = None
    """A whole number, of which there must be two for any record to be doubtful."""
    placed: Column | None = None
    """An aggregate: the doubtful records stand where they must, for any to be doubtful."""


@dataclass(frozen=True)
class Answer:
    """What all records together say to a question."""

    kind: Kind
    column: str
    doubtful: int
    plain: int
    contrary: int
    several: bool = True
    """Not all records have the same where they should."""
    place: str = ""
    """The first doubtful record, as `file:line`."""
    text: str = ""
    """What it has."""
    bounds: tuple[str, str] = ("", "")
    """The least and the greatest of all texts."""

    @property
    def is_open(self) -> bool:
        """Whether nobody but the user can say what is meant."""
        if not (self.doubtful and self.several):
            return False
        match self.kind:
            case "time":
                return self.doubtful > _MOST_OF_TIMES * (self.doubtful + self.plain)
            case "absent":
                # where no record has it and inserts lack it, too, the source just has no such column
                return self.plain > 0 or self.contrary == 0
            case "name":
                return self.plain == 0
            case "number" | "binary":
                return self.plain == 0 or self.contrary > 0
        return True


def counts_of(asked: Sequence[Question]) -> list[Column]:
    """Aggregates over all rows that `answers` reads: of whole numbers alone, which Spark adds up fastest."""
    return [_counts(question).alias(str(index)) for index, question in enumerate(asked)]


def answers(counts: Row, asked: Sequence[Question]) -> list[Answer]:
    """The answers in the values of `counts_of`."""
    found = [(question, counts[str(index)].asDict()) for index, question in enumerate(asked)]
    return [Answer(question.kind, question.column, **values) for question, values in found]


def examples_of(asked: Sequence[Question]) -> list[Column]:
    """Aggregates over all rows that `with_examples` reads."""
    return [_examples(question).alias(str(index)) for index, question in enumerate(asked)]


def with_examples(found: Sequence[Answer], examples: Row) -> list[Answer]:
    """The answers with the values of `examples_of`; none that the places of its records answer."""
    shown = [(answer, examples[str(index)]) for index, answer in enumerate(found)]
    return [
        replace(
            answer,
            place=f"{row['first'][POSITION].file}:{row['first'][POSITION].line}",
            text=row["first"]["text"] or "",
            bounds=(row["least"] or "", row["greatest"] or ""),
        )
        for answer, row in shown
        if row["placed"]
    ]


def _counts(question: Question) -> Column:
    several = F.lit(True)
    if question.differs is not None:
        several = F.coalesce(F.min(question.differs) != F.max(question.differs), F.lit(False))
    return F.struct(
        *[
            F.count_if(F.lit(False) if condition is None else condition).alias(name)
            for name in ("doubtful", "plain", "contrary")
            for condition in [getattr(question, name)]
        ],
        several.alias("several"),
    )


def _examples(question: Question) -> Column:
    text = F.when(question.doubtful, F.substring(question.text, 1, _SHOWN))
    place = F.when(question.doubtful, F.struct(F.col(POSITION), text.alias("text")))
    return F.struct(
        (F.lit(True) if question.placed is None else F.coalesce(question.placed, F.lit(True))).alias(
            "placed"
        ),
        F.min(place).alias("first"),
        F.min(text).alias("least"),
        F.max(text).alias("greatest"),
    )
