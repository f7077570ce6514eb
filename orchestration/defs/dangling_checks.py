"""Checks whether more foreign keys point nowhere than the file allows: a check that warns and fails nothing.

It looks at all live rows of the joins that say `max_dangling`, once after a run's batches.
"""

from collections.abc import Iterator, Mapping

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    MetadataValue,
    multi_asset_check,
)

from lakejoin.orchestration.checks.join_frames import checked_name
from lakejoin.orchestration.checks.references import Dangling, check_dangling
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.asset_keys import step_key
from lakejoin.orchestration.defs.spark_resource import RunSpark
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.model.specs import JoinSpec


def dangling_checks(pipeline: Pipeline) -> list[AssetChecksDefinition]:
    """The checks of all joins that say how many foreign keys may point nowhere, in one op; none where none does."""
    subjects = {
        AssetCheckKey(step_key(pipeline, name, "joined"), _name(part)): (name, checked_name(part))
        for name, join in pipeline.joins_of_tables.items()
        for part in pipeline.join_spec(name).parts
        if join.max_dangling_of(part.side) is not None
    }
    if not subjects:
        return []

    @multi_asset_check(
        name=f"{pipeline.name}_dangling_checks",
        specs=[
            AssetCheckSpec(
                key.name,
                asset=key.asset_key,
                description="Few enough foreign keys point at no right row.",
                blocking=False,
            )
            for key in subjects
        ],
        can_subset=True,
        required_resource_keys={"spark"},
        pool=pipeline.name,
    )
    def checks(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        with told_errors():
            selected = sorted(context.selected_asset_check_keys)
            begun = {subjects[check][0] for check in selected} & {*Journal(Lake(pipeline.lake)).kept}
            spark: RunSpark = context.op_execution_context.resources.spark
            found = check_dangling(pipeline, spark.session(), begun) if begun else {}
            for check in selected:
                yield _result(check, found.get(subjects[check][1]))

    return [checks]


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
        "max_dangling": MetadataValue.float(found.allowed),
    }


def _verdict(found: Dangling) -> str:
    told = (
        f"{found.dangling:,} of {found.left_rows:,} foreign keys point nowhere ({found.share:.2%}); at most "
    )
    return f"{told}{found.allowed:.2%} may." + (" See `lakejoin dangling`." if found.exceeds else "")
