"""Checks whether results are what DuckDB computes a second time, where the file asks for it.

A run looks at a part of each result after its batches, the next time at the next part; executed by themselves the
checks look at all rows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    DagsterInstance,
    MetadataValue,
)

from lakejoin.orchestration.config.schema.expect import Verified
from lakejoin.orchestration.defs.asset_checks import sample_table
from lakejoin.orchestration.defs.check_cursor import is_alone, last_number
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.op_checks import OpChecks, Session
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.verification.duck_tables import check_installed
from lakejoin.orchestration.verification.verify import Part, Verdict, verifiable, verify
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.transforms.model.printable_text import printable

NAME = "verified"
_PART = "part"


def verified_checks(embedded: EmbeddedPipeline) -> OpChecks:
    """The check of every result that DuckDB can compute. Raises `WrongUsage` where it is not installed."""
    pipeline, asked = embedded.pipeline, embedded.pipeline.expect.verified
    if asked is None:
        return OpChecks([], lambda *_: iter(()))
    check_installed()
    names = {AssetCheckKey(embedded.table_key(name), NAME): name for name in verifiable(pipeline)}

    def evaluate(
        context: AssetExecutionContext, selected: Sequence[AssetCheckKey], _session: Session
    ) -> Iterator[AssetCheckResult]:
        journal = Journal(Lake(pipeline.lake))
        if not journal.published:
            yield from (_nothing(key) for key in selected)
            return
        snapshot = published_snapshot(journal)
        whole = is_alone(context)
        for key in selected:
            part = Part() if whole else _part(context.instance, key, asked)
            verdicts = [*verify(pipeline, snapshot, [names[key]], part)]
            yield _result(key, verdicts, snapshot, asked)

    return OpChecks(
        [
            AssetCheckSpec(
                key.name,
                asset=key.asset_key,
                description="DuckDB computes the same from the current rows of the tables.",
                blocking=asked.blocking,
            )
            for key in names
        ],
        evaluate,
    )


def _part(instance: DagsterInstance, check: AssetCheckKey, asked: Verified) -> Part:
    """The part behind the one that was looked at last; there may be more or fewer by now."""
    if asked.rows is None:
        return Part()
    # parts are told from 1 on, and turns counted from 0: the number of the last one is the turn of the next
    return Part(asked.rows, turn=last_number(instance, check, _PART) or 0)


def _result(
    check: AssetCheckKey, verdicts: Sequence[Verdict], snapshot: Plan, asked: Verified
) -> AssetCheckResult:
    wrong = [verdict for verdict in verdicts if verdict.differs or verdict.unverified]
    compared = {verdict.name: verdict.comparison for verdict in verdicts if verdict.comparison is not None}
    metadata: Mapping[str, MetadataValue] = {
        "batch": MetadataValue.int(snapshot.batch),
        "rows": MetadataValue.int(sum(found.rows for found in compared.values())),
        _PART: MetadataValue.int(verdicts[0].part),
        "parts": MetadataValue.int(verdicts[0].parts),
    }
    first = [
        json.dumps({"result": name, **one.plain()}) for name, found in compared.items() for one in found.first
    ]
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=not wrong,
        severity=AssetCheckSeverity.ERROR if asked.blocking else AssetCheckSeverity.WARN,
        metadata={**metadata, **({"sample": sample_table(first)} if first else {})},
        description=" ".join(_said(verdict) for verdict in wrong or verdicts),
    )


def _said(verdict: Verdict) -> str:
    if verdict.unverified:
        return printable(f"{verdict.name} was not verified: {verdict.unverified}.")
    assert verdict.comparison is not None
    part = f", part {verdict.part} of {verdict.parts} by key" if verdict.parts > 1 else ""
    rows = f"{verdict.name}: {verdict.comparison.rows:,} rows{part}"
    if not verdict.differs:
        return f"{rows}: equal."
    differ = sum(verdict.comparison.kinds.values()) + verdict.overlaps
    return f"{rows}: {differ:,} are not what DuckDB computes. See `lakejoin verify` and `lakejoin explain`."


def _nothing(check: AssetCheckKey) -> AssetCheckResult:
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=True,
        description="No batch is finished yet: nothing to verify.",
    )
