"""Says what the op of a pipeline asks of checks: their specifications, and what they find after its batches.

They are evaluated by the op that makes the assets, so that one process and one Spark session serve both, whatever
executor a project has.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dagster import AssetCheckKey, AssetCheckResult, AssetCheckSpec, AssetExecutionContext

Evaluation = Callable[[AssetExecutionContext, Sequence[AssetCheckKey]], Iterator[AssetCheckResult]]
"""Evaluates checks that were selected, in their order."""


@dataclass(frozen=True)
class OpChecks:
    """Checks of one kind."""

    specs: Sequence[AssetCheckSpec]
    evaluate: Evaluation

    def selected(self, context: AssetExecutionContext) -> list[AssetCheckKey]:
        """Those that a run was started for, sorted."""
        return sorted({spec.key for spec in self.specs} & context.selected_asset_check_keys)
