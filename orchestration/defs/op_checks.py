"""Says what the op of a pipeline asks of checks: their specifications, and what they find after its batches.

They are evaluated by the op that makes the assets, so that one process and one Spark session serve both, whatever
executor a project has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
)
from pyspark.sql import SparkSession

from lakejoin.storage.lake.journal import Journal

Known = Callable[[Journal, int], Mapping[AssetCheckKey, AssetCheckResult]]
"""What the batches of a lake, from one on, say of checks by themselves."""
Session = Callable[[], SparkSession]
"""Gives the session of a run, which is started, or begun beside another, when it is first asked for."""
Evaluation = Callable[[AssetExecutionContext, Sequence[AssetCheckKey], Session], Iterator[AssetCheckResult]]
"""Evaluates checks that were selected, in their order."""


@dataclass(frozen=True)
class OpChecks:
    """Checks of one kind."""

    specs: Sequence[AssetCheckSpec]
    evaluate: Evaluation
    known: Known = lambda _, __: {}
    """What is known without a look at any row."""

    def selected(self, context: AssetExecutionContext) -> list[AssetCheckKey]:
        """Those that a run was started for, sorted."""
        return sorted({spec.key for spec in self.specs} & context.selected_asset_check_keys)


def evaluation(check: AssetCheckKey, result: AssetCheckResult, *, blocking: bool) -> AssetCheckEvaluation:
    """What was found of a check, for whoever reports it outside of a run."""
    return AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
        blocking=blocking,
    )
