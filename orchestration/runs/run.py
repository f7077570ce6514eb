"""Works off what is pending: an unfinished batch first, then new joins, then new input, batch after batch."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from lakejoin.expectations.rules import rules_for
from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.join_stages import JOIN_STAGES, gated_kinds
from lakejoin.orchestration.batch.run_batch import run_batch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import unknown
from lakejoin.orchestration.lake_state.active_joins import joins_to_rebuild
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.declared_tables import check_catalogs
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.lake_state.log_checks import settle_logs
from lakejoin.orchestration.lake_state.preflight import check_progress
from lakejoin.orchestration.lake_state.sql_checks import check_expressions
from lakejoin.orchestration.maintenance.folds import tidy_up
from lakejoin.orchestration.planning.pending_input import BatchBy
from lakejoin.orchestration.runs.batch_plans import Asked, BatchPlans
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Published
from lakejoin.storage.sources.files.source_files import Dates


def run_batches(  # noqa: PLR0913 - the options of `lakejoin run`
    pipeline: Pipeline,
    spark: SparkSession,
    *,
    dates: Dates | None = None,
    batch_by: BatchBy = "date",
    batch_rows: int | None = None,
    batches: int | None = None,
    accept: Sequence[str] = (),
    settle: timedelta | None = None,
    flush: bool = False,
    rebuild: Collection[str] = (),
    replace: date | str | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Published]:
    """Work off what is pending, one finished batch after the other.

    `dates`: inclusive range of `{date}` values. `batch_by`: one batch per date, or one for everything, or by size: days
    go together up to `batch_rows` records, or as many as pay. `batch_rows`: cut batches to about so many records.
    `batches`: stop after so many. `accept`: rules that may be violated. `flush`: at the end, release what waits for its
    grace period to pass, in a batch of its own. `rebuild`: joins that begin anew, as they are declared now, before new
    input is read; until then readers see what they were.
    `replace`: a `{date}`, or the name of a file: what was exported again is taken in the place of what it was.
    Raises `LakejoinError`s; whatever was yielded before stays published.
    """
    check_accepted(pipeline, accept)
    lake, rebuilt = Lake(pipeline.lake), joins_to_rebuild(pipeline, rebuild)
    asked = Asked(dates, batch_by, batch_rows, settle, flush, rebuilt, replace)
    with writing(lake), explained(pipeline, "planning a batch"):
        settle_logs(pipeline, lake)
        journal = Journal(lake)
        check_shapes(pipeline, journal, rebuilt)
        check_progress(pipeline, lake, journal, rebuilt)
        check_expressions(pipeline, spark)
        check_catalogs(pipeline, spark)
        plans = BatchPlans(pipeline, spark, lake, journal, asked)
        for done, planned in enumerate(plans, start=1):
            with planned.held:
                published = run_batch(
                    pipeline,
                    spark,
                    lake,
                    journal,
                    planned.plan,
                    accept=accept,
                    progress=progress,
                    read=planned.read,
                )
            yield published
            if pipeline.maintenance.when == "after_batch":
                with explained(pipeline, "maintenance"):
                    finished = finished_state(pipeline, lake, journal, datetime.now(UTC))
                    tidy_up(pipeline, spark, lake, journal, finished)
            if done == batches:
                return


def check_accepted(pipeline: Pipeline, names: Collection[str]) -> None:
    """Refuse a mistyped rule at once, and not after the batch that it should have let pass.

    Raises `WrongUsage` for a name that is no rule of any declared join that has a gate.
    """
    gated = [name for name, join in pipeline.joins.items() if JOIN_STAGES[type(join)].gated]
    kinds = {kind for name in gated for kind in gated_kinds(pipeline.spec_of_join(name))}
    known = sorted({rule.name for kind in kinds for rule in rules_for(kind)})
    for name in names:
        if name not in known:
            raise unknown("rule", name, known)
