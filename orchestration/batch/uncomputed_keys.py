"""Counts left rows of a join whose foreign key cannot be computed, where no record can be refused for it, and tells so.

The foreign key of such a row is null. A batch counts the rows that it meets, as `UNCOMPUTED`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.gate import SAMPLES
from orchestration.batch.context import Batch
from orchestration.config import Pipeline
from orchestration.lake_state.active_joins import rebuild_command
from orchestration.planning.row_expressions import foreign_key_not_asked
from transforms.model.expressions import RowExpression, any_fails
from transforms.model.printable_text import printable

UNCOMPUTED = "uncomputed"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UncomputedKeys:
    """What a batch has to ask of the left rows of a join."""

    pipeline: Pipeline
    join: str
    expressions: Sequence[RowExpression]
    """The foreign key as far as rows may fail that were not asked; empty where there are none, which costs nothing."""

    @classmethod
    def of(cls, batch: Batch, join: str) -> "UncomputedKeys":
        """Those of a join in a batch."""
        return cls(batch.pipeline, join, foreign_key_not_asked(batch.pipeline, batch.plan, join))

    def counted(self, key: Column) -> list[Column]:
        """Aggregates over left rows: how many there are, as `UNCOMPUTED`, and the first keys of them, as `sample`.

        `key`: what identifies a row.
        """
        line = F.when(any_fails(self.expressions), F.to_json(key))
        first = F.call_function("min_by", line, line, F.lit(SAMPLES))
        return [F.count(line).alias(UNCOMPUTED), first.alias("sample")]

    def in_gate(self, rows: DataFrame, key: Column) -> DataFrame:
        """The same as a row of what a gate gathers: `rule`, `offending`, `sample`."""
        return rows.agg(*self.counted(key)).select(
            F.lit(UNCOMPUTED).alias("rule"), F.col(UNCOMPUTED).alias("offending"), "sample"
        )

    def told(self, count: int, first: Sequence[str]) -> dict[str, int]:
        """Warn of the rows; return their count by its name, or nothing where there are none."""
        if not count:
            return {}
        texts = ", ".join(expression.text for expression in self.expressions)
        more = ", ..." if count > len(first) else ""
        way = (
            f": {rebuild_command(self.pipeline, [self.join])}"
            if self.join in self.pipeline.rebuildable
            else " and give the join another name"
        )
        _log.warning(
            printable(
                f"{self.join}: the foreign key ({texts}) of {count:,} rows cannot be computed, so it is null: "
                f"{', '.join(first)}{more}. Correct the rows by later records, or mend the expression{way}."
            )
        )
        return {UNCOMPUTED: count}
