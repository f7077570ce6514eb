"""Counts over the records of a source what in them can be read in two ways, and says which questions stay open.

A value, an order or a name that has two meanings is read wrongly half of the time, and nobody is told. So new input is
looked at before a batch is planned for it (`transforms.parsing.questions`). Where a source's other values tell the
answer, it is no question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import POSITION

MARKS = "_lj_marks"
"""Column of records that were asked: what each says to the questions (`marks_of`)."""
_BITS, _IN_A_WORD = 3, 20
"""What a record says to a question takes three bits; what it says to so many is kept in one number."""
DOUBTFUL, PLAIN, CONTRARY = 1, 2, 4
"""A record can be read in two ways; shows that the source means what is declared; or that it means the other."""
_COUNTED = {"doubtful": DOUBTFUL, "plain": PLAIN, "contrary": CONTRARY}

Kind = Literal["number", "binary", "time", "absent", "name", "table", "sequence", "read"]
"""Numbers in quotes that are base64 as well; binary that is base64 and hexadecimal; whole numbers that are no times by
their unit; updates that lack a column; a column that the source has in other capitals; events of two tables; an order
that is none; reads of a snapshot that nothing orders among the changes."""

NAMES, ROW_OP = "_lj_names", "_lj_row_op"
"""Columns of a record that has names of its own: those of its row, null where all that are declared are seen to be
among them; and what left the row, c, r or u."""
_OF_NAMES: tuple[Kind, ...] = ("absent", "name")
"""They ask for what `NAMES` and `ROW_OP` say, which are kept themselves: almost every record has all declared names."""
_SHOWN = 100
"""Characters of a value that a message shows."""
_MOST_OF_TIMES = 0.01
"""A larger share of a column's times that cannot be meant is asked about."""


@dataclass(frozen=True)
class Question:
    """Something that can be read in two ways, as columns of a record."""

    kind: Kind
    column: str
    """The declared column that it is about; empty where it is about no single one."""
    says: Column
    """What the record says to it: one of `DOUBTFUL`, `PLAIN`, `CONTRARY`, or null."""
    text: Column
    """What the record has."""
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


def marks_of(asked: Sequence[Question]) -> Column:
    """What a record says to questions: records are kept with it, so it is packed into few numbers."""
    values, of_names = split(asked)
    words = [
        _word(values[first : first + _IN_A_WORD]).alias(f"word_{first // _IN_A_WORD}")
        for first in range(0, len(values), _IN_A_WORD)
    ]
    numbers = [q.differs.alias(f"differs_{index}") for index, q in enumerate(values) if q.differs is not None]
    return F.struct(*words, *numbers, *([NAMES, ROW_OP] if of_names else []))


def split(asked: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """The questions that ask for values, and those that ask for names."""
    of_names = [question for question in asked if question.kind in _OF_NAMES]
    return [question for question in asked if question.kind not in _OF_NAMES], of_names


def counts_of(values: Sequence[Question]) -> list[Column]:
    """Aggregates over the columns of `marks_of` that `answers` reads, for the questions that ask for values."""
    return [_counts_in_words(index, question).alias(str(index)) for index, question in enumerate(values)]


def counts_of_names(of_names: Sequence[Question]) -> list[Column]:
    """Aggregates over the columns of `marks_of` that `answers` reads, for the questions that ask for names."""
    return [
        _counts([q.says == said for said in _COUNTED.values()], F.lit(True)).alias(str(index))
        for index, q in enumerate(of_names)
    ]


def answers(counts: Row, asked: Sequence[Question]) -> list[Answer]:
    """The answers in the values of `counts_of`, or of `counts_of_names`."""
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


def _word(asked: Sequence[Question]) -> Column:
    said = [F.coalesce(question.says, F.lit(0)).cast("bigint") for question in asked]
    return reduce(Column.bitwiseOR, [F.shiftleft(number, _BITS * index) for index, number in enumerate(said)])


def _counts_in_words(index: int, question: Question) -> Column:
    word, shift = F.col(f"word_{index // _IN_A_WORD}"), _BITS * (index % _IN_A_WORD)
    several = F.lit(True)
    if question.differs is not None:
        number = F.col(f"differs_{index}")
        several = F.coalesce(F.min(number) != F.max(number), F.lit(False))
    bits = [word.bitwiseAND(F.lit(said << shift).cast("bigint")) != 0 for said in _COUNTED.values()]
    return _counts(bits, several)


def _counts(said: Sequence[Column], several: Column) -> Column:
    counts = [F.count_if(holds).alias(name) for name, holds in zip(_COUNTED, said, strict=True)]
    return F.struct(*counts, several.alias("several"))


def _examples(question: Question) -> Column:
    doubtful = question.says == DOUBTFUL
    text = F.when(doubtful, F.substring(question.text, 1, _SHOWN))
    place = F.when(doubtful, F.struct(F.col(POSITION), text.alias("text")))
    return F.struct(
        (F.lit(True) if question.placed is None else F.coalesce(question.placed, F.lit(True))).alias(
            "placed"
        ),
        F.min(place).alias("first"),
        F.min(text).alias("least"),
        F.max(text).alias("greatest"),
    )
