"""Checks whether the records of each table and stream could be accepted: a check that warns and fails nothing.

A run that quarantines records has done what it should, so somebody has to be told, unless the file expects that many.
Reads the journal alone, no rows.
"""

from collections.abc import Iterator, Mapping, Sequence

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    MetadataValue,
)

from lakejoin.orchestration.checks.figures import Intake, intake
from lakejoin.orchestration.config.schema.expect import Bound
from lakejoin.orchestration.defs.check_cursor import THROUGH, first_batch
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.op_checks import OpChecks, Session
from lakejoin.orchestration.lake_state.quarantine_counts import open_counts, without_late
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

NAME = "records_accepted"
_NONE = Bound.at_most(0)
"""What is expected where the file says nothing."""


def intake_checks(embedded: EmbeddedPipeline) -> OpChecks:
    """The check of every table and stream: over the last batch and those it has not seen; by itself over what waits."""
    pipeline = embedded.pipeline
    names = {AssetCheckKey(embedded.table_key(name), NAME): name for name in pipeline.inputs}
    bounds = {name: pipeline.expected_of(name).quarantined or _NONE for name in pipeline.inputs}

    def known(journal: Journal, first: int | None) -> Mapping[AssetCheckKey, AssetCheckResult]:
        waiting = open_counts(Lake(pipeline.lake), journal)
        found = {name: intake(journal, name, first, waiting.get(name, {})) for name in pipeline.inputs}
        through = {THROUGH: MetadataValue.int(len(journal.published))}
        return {
            key: _result(key, found[name], waiting.get(name, {}), bounds[name], first, through)
            for key, name in names.items()
        }

    def evaluate(
        context: AssetExecutionContext, selected: Sequence[AssetCheckKey], _session: Session
    ) -> Iterator[AssetCheckResult]:
        journal = Journal(Lake(pipeline.lake))
        first = first_batch(context, selected, len(journal.published)) if journal.published else None
        found = known(journal, first)
        yield from (found[key] for key in selected)

    return OpChecks(
        [
            AssetCheckSpec(
                key.name, asset=key.asset_key, description=_statement(bounds[name]), blocking=False
            )
            for key, name in names.items()
        ],
        evaluate,
        known,
    )


def _statement(bound: Bound) -> str:
    if bound is _NONE:
        return "No record was quarantined."
    return f"Of the records were quarantined {bound.text}."


def _result(
    check: AssetCheckKey,
    read: Intake,
    reasons: Mapping[str, int],
    bound: Bound,
    first: int | None,
    through: Mapping[str, MetadataValue],
) -> AssetCheckResult:
    """`first`: since which batch records were counted; None for those that are in quarantine still."""
    still = without_late(reasons)
    where = "in quarantine" if first is None else f"quarantined since batch {first}"
    expected = "" if bound is _NONE else f", {read.share:.2%} of all; expected {bound.text}"
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=bound.allows(read.share),
        severity=AssetCheckSeverity.WARN,
        metadata={
            **through,
            "records": MetadataValue.int(read.quarantined),
            "share": MetadataValue.float(read.share),
            "in_quarantine": MetadataValue.int(sum(still.values())),
            **{f"in_quarantine_{reason}": MetadataValue.int(count) for reason, count in still.items()},
        },
        description=f"{read.quarantined:,} records {where}{expected}."
        + (" See `lakejoin quarantine list`." if read.quarantined else ""),
    )
