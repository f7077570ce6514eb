"""Runs maintenance in Dagster: by a job of one op, whose runs wait for those of the batches, and a daily schedule."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from dagster import (
    AssetObservation,
    Config,
    DefaultScheduleStatus,
    Failure,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    SkipReason,
    TableColumn,
    TableRecord,
    TableSchema,
    job,
    op,
    schedule,
)
from pydantic import Field

from lakejoin.orchestration.defs.asset_keys import assets_of_tables
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.spark_resource import session_of
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.orchestration.maintenance.maintain import Done, find_steps, maintain
from lakejoin.transforms.model.printable_text import printable

NIGHTLY = "30 3 * * *"
_FIGURES = ("files", "live_bytes", "stored_bytes")
_SCHEMA = TableSchema(
    [
        TableColumn("what"),
        TableColumn("table"),
        *[TableColumn(f"{figure}_{when}", "int") for figure in _FIGURES for when in ("before", "after")],
        TableColumn("left_for_later"),
    ]
)


class MaintenanceOptions(Config):
    """What a run may choose; the same as `lakejoin maintain` takes."""

    everything: bool = Field(default=False, description="Do whatever would change anything, due or not.")


def maintenance_job(embedded: EmbeddedPipeline) -> JobDefinition:
    """The job: one op in the pool of the pipeline, so that no run of it begins while one of batches is under way."""
    pipeline = embedded.pipeline

    @op(
        name=f"{pipeline.name}_maintain",
        required_resource_keys={embedded.spark_key},
        pool=pipeline.name,
    )
    def work(context: OpExecutionContext, config: MaintenanceOptions) -> None:
        with told_errors():
            done: list[Done] = []
            try:
                for step in maintain(
                    pipeline,
                    cache(partial(session_of, context, embedded)),
                    everything=config.everything,
                    progress=lambda stage: context.log.debug(printable(stage)),
                ):
                    done.append(step)
                    if step.skipped:
                        context.log.warning(printable(f"{_outcome(step)}: {step.skipped}"))
            finally:
                context.add_output_metadata(_metadata(done))
                for observation in _observations(embedded, done):
                    context.log_event(observation)
            if failed := [printable(f"{_outcome(step)}: {step.skipped}") for step in done if step.failed]:
                raise Failure("\n".join(failed))

    @job(
        name=f"{pipeline.name}_maintenance",
        description="Folds, compacts and vacuums what is due, and shortens Delta's logs.",
    )
    def maintenance() -> None:
        work()

    return maintenance


def nightly_schedule(embedded: EmbeddedPipeline, work: JobDefinition) -> ScheduleDefinition:
    """A schedule, stopped until somebody starts it, that maintains the lake if anything is due."""

    @schedule(
        name=f"{embedded.pipeline.name}_nightly_maintenance",
        job=work,
        cron_schedule=NIGHTLY,
        execution_timezone="UTC",
        default_status=DefaultScheduleStatus.STOPPED,
        description="Maintains the lake, if anything is due.",
    )
    def nightly() -> RunRequest | SkipReason:
        with told_errors():
            due = any(step.finding.due for step in find_steps(embedded.pipeline))
        if not due:
            return SkipReason("Nothing is due: `lakejoin maintain --dry-run` says what decides about it.")
        # one run a day, however often the schedule is evaluated
        return RunRequest(run_key=datetime.now(UTC).date().isoformat())

    return nightly


def _outcome(step: Done) -> str:
    return f"{step.step.work} {step.step.table} {'failed' if step.failed else 'is left for later'}"


def _metadata(done: Iterable[Done]) -> dict[str, Any]:
    """What a run came to: each step, and bytes on disk of all tables that it worked on."""
    done = list(done)
    first = {step.step.table: step.before for step in reversed(done)}
    last = {step.step.table: step.after for step in done}
    records = [
        TableRecord(
            {
                "what": step.step.work,
                "table": step.step.table,
                **_figures(step),
                "left_for_later": printable(step.skipped),
            }
        )
        for step in done
    ]
    return {
        "steps": MetadataValue.table(records, _SCHEMA),
        "stored_bytes_before": sum(extent.stored_bytes for extent in first.values() if extent),
        "stored_bytes_after": sum(extent.stored_bytes for extent in last.values() if extent),
    }


def _figures(step: Done) -> dict[str, int]:
    extents = {"before": step.before, "after": step.after}
    return {
        f"{figure}_{when}": getattr(extent, figure) if extent else 0
        for figure in _FIGURES
        for when, extent in extents.items()
    }


def _observations(embedded: EmbeddedPipeline, done: Iterable[Done]) -> Iterable[AssetObservation]:
    """One for each step on a table of an asset: the interface plots its figures there.

    Those of a folded base have names of their own, so that no line jumps between two tables.
    """
    assets = assets_of_tables(embedded)
    for step in done:
        asset = assets.get(step.step.table)
        if asset is None or step.skipped:
            continue
        table = step.step.table
        prefix = "" if table == asset.table else f"{table.rpartition('/')[2]}_"
        figures = {f"{prefix}{name}": figure for name, figure in _figures(step).items()}
        metadata: dict[str, str | int] = {"what": step.step.work, "table": table, **figures}
        yield AssetObservation(asset_key=asset.key, metadata=metadata)
