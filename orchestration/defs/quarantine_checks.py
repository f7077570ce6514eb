"""Checks whether all records of each table and stream could be accepted: a check that warns and fails nothing.

A run that quarantines records has done what it should, so somebody has to be told. Reads the journal alone, no rows.
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

from lakejoin.orchestration.defs.check_cursor import THROUGH, first_batch
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.op_checks import OpChecks, Session
from lakejoin.orchestration.lake_state.quarantine_counts import LATE, open_counts
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

NAME = "records_accepted"


def intake_checks(embedded: EmbeddedPipeline) -> OpChecks:
    """The check of every table and stream: over the last batch and those it has not seen; by itself over what waits."""
    pipeline = embedded.pipeline
    names = {AssetCheckKey(embedded.table_key(name), NAME): name for name in pipeline.inputs}

    def known(journal: Journal, first: int | None) -> Mapping[AssetCheckKey, AssetCheckResult]:
        waiting = open_counts(Lake(pipeline.lake), journal)
        return {key: _result(key, name, journal, first, waiting) for key, name in names.items()}

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
                key.name, asset=key.asset_key, description="No record was quarantined.", blocking=False
            )
            for key in names
        ],
        evaluate,
        known,
    )


def _result(
    check: AssetCheckKey,
    name: str,
    journal: Journal,
    first: int | None,
    waiting: dict[str, dict[str, int]],
) -> AssetCheckResult:
    still = {reason: count for reason, count in waiting.get(name, {}).items() if reason != LATE}
    if first is None:
        found, where = sum(still.values()), "in quarantine"
    else:
        batches = [batch for batch in journal.published if batch.batch >= first]
        found = sum(batch.tables.get(name, {}).get("quarantined", 0) for batch in batches)
        where = f"quarantined since batch {first}"
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=not found,
        severity=AssetCheckSeverity.WARN,
        metadata={
            THROUGH: MetadataValue.int(len(journal.published)),
            "records": MetadataValue.int(found),
            "in_quarantine": MetadataValue.int(sum(still.values())),
            **{f"in_quarantine_{reason}": MetadataValue.int(count) for reason, count in still.items()},
        },
        description=f"{found:,} records {where}." + (" See `lakejoin quarantine list`." if found else ""),
    )
