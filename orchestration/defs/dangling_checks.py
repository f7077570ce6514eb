"""Checks whether more foreign keys point nowhere than the file allows: a check that warns and fails nothing.

It looks at all live rows of the joins that say how many may, once after a run's batches.
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

from lakejoin.orchestration.checks.join_frames import checked_name
from lakejoin.orchestration.checks.references import Dangling, check_dangling
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.op_checks import OpChecks, Session
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.model.specs import JoinSpec


def dangling_checks(embedded: EmbeddedPipeline) -> OpChecks:
    """The checks of all joins that say how many foreign keys may point nowhere."""
    pipeline = embedded.pipeline
    subjects = {
        AssetCheckKey(embedded.table_key(name), _name(part)): (name, checked_name(part))
        for name in pipeline.joins_of_tables
        for part in pipeline.join_spec(name).parts
        if pipeline.dangling_bound(name, part.side) is not None
    }

    def evaluate(
        _context: AssetExecutionContext, selected: Sequence[AssetCheckKey], session: Session
    ) -> Iterator[AssetCheckResult]:
        begun = {subjects[check][0] for check in selected} & {*Journal(Lake(pipeline.lake)).kept}
        found = check_dangling(pipeline, session(), begun) if begun else {}
        for check in selected:
            yield _result(check, found.get(subjects[check][1]))

    return OpChecks(
        [
            AssetCheckSpec(
                key.name,
                asset=key.asset_key,
                description="Few enough foreign keys point at no right row.",
                blocking=False,
            )
            for key in subjects
        ],
        evaluate,
    )


def _name(part: JoinSpec) -> str:
    """Each right side of a star has a check of its own, called as those of its rules are."""
    return f"{part.side}_dangling" if part.side else "dangling"


def _result(check: AssetCheckKey, found: Dangling | None) -> AssetCheckResult:
    """What was found of a join; None where no batch has begun it."""
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=found is None or not found.exceeds,
        severity=AssetCheckSeverity.WARN,
        metadata=_metadata(found) if found else {},
        description=_verdict(found) if found else "No batch has begun the join yet: nothing to check.",
    )


def _metadata(found: Dangling) -> Mapping[str, MetadataValue]:
    return {
        "dangling": MetadataValue.int(found.dangling),
        "left_rows": MetadataValue.int(found.left_rows),
        "share": MetadataValue.float(found.share),
        "expected": MetadataValue.text(found.bound.text),
    }


def _verdict(found: Dangling) -> str:
    told = f"{found.dangling:,} of {found.left_rows:,} foreign keys point nowhere ({found.share:.2%})"
    return f"{told}; expected {found.bound.text}." + (" See `lakejoin dangling`." if found.exceeds else "")
