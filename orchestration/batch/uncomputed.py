"""Counts what an expression of a join cannot be computed for, where no record can be refused for it, and tells so.

The foreign key of such a left row is null; so is a selected value of such a pair of rows, and a condition is not met. A
batch counts what it meets, as `UNCOMPUTED`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.gate import SAMPLES
from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import rebuild_command
from lakejoin.orchestration.planning.row_expressions import foreign_key_not_asked
from lakejoin.transforms.model.expressions import any_fails
from lakejoin.transforms.model.printable_text import printable
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import named
from lakejoin.transforms.model.selection import FAILED

UNCOMPUTED = "uncomputed"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Uncomputed:
    """What a batch has to ask of the rows of a join."""

    pipeline: Pipeline
    join: str
    what: str
    """Which expressions these are, for people."""
    so: str
    """What becomes of a row that they cannot be computed for."""
    fails: Column | None
    """True for such a row; None where there is none, which costs nothing."""

    @classmethod
    def keys(cls, batch: Batch, join: str) -> "Uncomputed":
        """Foreign keys of left rows, as far as rows may fail that were not asked."""
        asked = [expression.text for expression in foreign_key_not_asked(batch.pipeline, batch.plan, join)]
        fails = any_fails(asked) if asked else None
        what = f"the foreign key ({', '.join(asked)})"
        return cls(batch.pipeline, join, what, "it is null", fails)

    @classmethod
    def results(cls, batch: Batch, join: ResultSpec) -> "Uncomputed":
        """What is selected of pairs, and the condition on them, of emissions with `FAILED`."""
        asked = join.computed_texts
        what = f"what is selected, or the condition ({', '.join(asked)}),"
        so = "a value is null, and a condition is not met"
        return cls(batch.pipeline, join.name, what, so, named(FAILED) if asked else None)

    def counted(self, key: Column) -> list[Column]:
        """Aggregates over rows: how many there are, as `UNCOMPUTED`, and the first keys of them, as `sample`.

        `key`: what identifies a row. Nothing where none may fail.
        """
        if self.fails is None:
            return []
        line = F.when(self.fails, F.to_json(key))
        first = F.call_function("min_by", line, line, F.lit(SAMPLES))
        return [F.count(line).alias(UNCOMPUTED), first.alias("sample")]

    def in_gate(self, rows: DataFrame, key: Column, rule: str) -> DataFrame:
        """The same as a row of what a gate gathers: `rule`, `offending`, `sample`."""
        counted = rows.agg(*self.counted(key))
        return counted.select(F.lit(rule).alias("rule"), F.col(UNCOMPUTED).alias("offending"), "sample")

    def told(self, count: int, first: Sequence[str]) -> int:
        """Warn of so many rows, and return how many they are."""
        if count:
            more = ", ..." if count > len(first) else ""
            way = (
                f": {rebuild_command(self.pipeline, [self.join])}"
                if self.join in self.pipeline.rebuildable
                else " and give the join another name"
            )
            _log.warning(
                printable(
                    f"{self.join}: {self.what} of {count:,} rows cannot be computed, so {self.so}: "
                    f"{', '.join(first)}{more}. Correct the rows by later records, or mend the expression{way}."
                )
            )
        return count

    def taken(self, found: dict[str, Any]) -> dict[str, int]:
        """Take what `counted` made out of the aggregates that were found, and tell of it; return its count by name."""
        return as_counts(self.told(found.pop(UNCOMPUTED, 0), found.pop("sample", None) or ()))


def as_counts(*told: int) -> dict[str, int]:
    """Their sum by its name, or nothing where there are none."""
    return {UNCOMPUTED: sum(told)} if any(told) else {}
