"""Compares what came of a test with what it expects."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from lakejoin.orchestration.unit_tests.declared import Row, UnitTest
from lakejoin.orchestration.unit_tests.values import comparable, row_text


@dataclass(frozen=True)
class Difference:
    """A row that is not as expected."""

    expected: Row | None
    """Null where there should be none."""
    found: Row | None
    """Of the columns that are compared; null where there is none."""

    def lines(self) -> list[str]:
        """Say it."""
        return [
            f"expected {row_text(self.expected) if self.expected else 'no such row'}",
            f"found    {row_text(self.found) if self.found else 'no such row'}",
        ]


@dataclass(frozen=True)
class Outcome:
    """What came of a test."""

    test: UnitTest
    rows: Mapping[str, Sequence[Row]]
    """Of whatever it expects something of, all rows: their columns that are compared."""
    differences: Mapping[str, Sequence[Difference | str]]
    """What is not as expected, by result."""
    error: str | None = None
    """Why no batch was finished."""
    explained: Sequence[str] = ()
    """How the first row that differs came about."""

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return self.error is None and not self.differences


def compare(
    expected: int | Sequence[Row], rows: Sequence[Row], schema: StructType, key: Sequence[str]
) -> list[Difference | str]:
    """Return how rows differ from those that are expected, or from how many are.

    rows: with the columns that are compared; schema: has their types; key: what identifies a row.
    """
    if isinstance(expected, int):
        return [] if len(rows) == expected else [f"expected {expected:,} rows; found {len(rows):,}"]

    def alike(row: Row) -> Hashable:
        return frozenset((name, comparable(value, schema[name].dataType)) for name, value in row.items())

    missing = _beyond(expected, alike, Counter(map(alike, rows)))
    others = _beyond(rows, alike, Counter(map(alike, expected)))
    return _pairs(missing, others, key if missing and set(key) <= missing[0].keys() else ())


def _beyond(rows: Sequence[Row], alike: Callable[[Row], Hashable], there: Counter[Hashable]) -> list[Row]:
    """Return the rows for which there is none alike on the other side."""
    left = Counter(there)
    beyond = []
    for row in rows:
        if left[alike(row)]:
            left[alike(row)] -= 1
        else:
            beyond.append(row)
    return beyond


def _pairs(missing: Sequence[Row], others: Sequence[Row], key: Sequence[str]) -> list[Difference | str]:
    """Put rows of one key together."""
    waiting = list(others)
    pairs: list[Difference | str] = []
    for row in missing:
        met = next((other for other in waiting if key and _of_key(other, key) == _of_key(row, key)), None)
        if met is not None:
            waiting.remove(met)
        pairs.append(Difference(row, met))
    return [*pairs, *[Difference(None, row) for row in waiting]]


def _of_key(row: Row, key: Sequence[str]) -> list[str]:
    return [row_text({"": row[part]}) for part in key]
