"""Brings into a history the versions that a batch ends, and those that it begins."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.orchestration.batch.context import Batch, GateResult
from lakejoin.orchestration.lake_state.config_fingerprints import kept_history
from lakejoin.storage.delta_table.alignment import lay_out
from lakejoin.storage.delta_table.commits import overwrite
from lakejoin.storage.delta_table.schema_evolution import schema_of
from lakejoin.storage.lake.layout import history_of
from lakejoin.storage.spark.kept_frames import fits_one_task
from lakejoin.storage.state.joined_table import OF_HISTORIES, properties_of
from lakejoin.storage.state.result_histories import apply_versions
from lakejoin.transforms.foreign_key_join.batch import JoinBatch
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.foreign_key_join.history import current, history_schema, next_versions
from lakejoin.transforms.groups.batch import GroupBatch
from lakejoin.transforms.model.keys import Keys, restrict, without
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import absent, by_reference, empty, named


def commit_history(
    batch: Batch, join: JoinBatch | GroupBatch, gate_result: GateResult, ready: Callable[[], None]
) -> None:
    """Bring the emissions of a batch into the history of their result, in one commit, once `ready` returns.

    A history that begins, or that was not kept meanwhile, is compared with all rows of the result.
    """
    spec, counts = join.spec, gate_result.result()
    goes_on = continues(batch, spec)
    kept = kept_history(batch.pipeline, batch.journal, spec.name, batch.plan.batch - 1)
    whole = not goes_on or not kept or spec.name in batch.plan.bootstrap
    if not whole and not counts["emissions"]:
        return
    with batch.stage(f"history/{spec.name}"):
        number, time = F.lit(batch.plan.batch).cast("bigint"), F.lit(batch.plan.planned_at)
        rows = _all_rows(batch, join) if whole else _emissions(join)
        versions = _current(batch, join, whole=whole) if goes_on else empty(batch.spark, history_schema(spec))
        made = next_versions(rows, versions, spec, by_reference(number), by_reference(time), whole=whole)
        if whole and goes_on:
            batch.frames.expect(versions.count())
        bring_in(batch, spec, made, apply_versions, ready, goes_on=goes_on)


def bring_in(
    batch: Batch, spec: ResultSpec, made: DataFrame, apply: Callable[..., None], ready: Callable[[], None],
    *, goes_on: bool,
) -> None:  # fmt: skip
    """Commit what a batch makes of a history, if it is anything, once `ready` returns.

    `made`: what `apply` takes (`apply_versions`, `apply_revisions`); of a history that begins, its rows. One that goes
    on gets the partitions that are declared of it where its result is computed anew, which is how they are asked for.
    """
    stage, table = f"history/{spec.name}", history_of(spec.name)
    path, declared = batch.lake.path(table), batch.pipeline.joins[spec.name].declared_history
    transaction = batch.journal.transaction(stage, batch.plan.batch)
    if not goes_on:
        ready()
        overwrite(made, path, transaction, properties_of(OF_HISTORIES, declared), declared)
    else:
        if spec.name in batch.plan.bootstrap:
            lay_out(batch.spark, path, declared, batch.journal.transaction_apart("laid-out", table))
        made = batch.frames.keep(made)
        count = made.count()
        if count == 0:
            return

        def settled() -> int:
            ready()
            return count

        few = batch.frames.small or fits_one_task(count)
        apply(made, path, spec, transaction, settled, few=few, marks=declared.deletion_vectors)
    batch.committed.append(stage)


def continues(batch: Batch, spec: ResultSpec) -> bool:
    """Whether there is a history with the columns of the result: one with others begins anew."""
    version = batch.plan.versions.get(history_of(spec.name))
    snapshot = None if version is None else batch.lake.snapshot(history_of(spec.name), version)
    if snapshot is None:
        return False
    return _columns(schema_of(snapshot.delta)) == _columns(history_schema(spec))


def _columns(schema: StructType) -> dict[str, str]:
    """Names and types, without where nulls may be: a table does not say that."""
    return {field.name: field.dataType.simpleString() for field in schema}


def _current(batch: Batch, join: JoinBatch | GroupBatch, *, whole: bool) -> DataFrame:
    """The versions that the batch may end: all current ones, or those of the keys that it emits."""
    versions = current(batch.state.history(join.spec))
    return versions if whole else restrict(versions, _keys(batch, join), join.spec.joined_key)


def _keys(batch: Batch, join: JoinBatch | GroupBatch) -> Keys:
    names = map(named, join.spec.joined_key)
    return batch.frames.keys(join.emissions.select(*names), null_matches=join.spec.key_may_be_null)


def _all_rows(batch: Batch, join: JoinBatch | GroupBatch) -> DataFrame:
    """Every row that the result has after the batch, as an emission."""
    spec = join.spec
    if spec.name in batch.plan.bootstrap or not batch.state.has_joined(spec.name):
        return _emissions(join)
    others = without(batch.state.joined(spec), _keys(batch, join), spec.joined_key).select(
        *[named(name) for name in spec.columns.names],
        *[absent(field.name, field.dataType) for field in spec.sequences],
        F.lit(False).alias(TOMBSTONE),
    )
    return _emissions(join).select(*map(named, others.columns)).unionByName(others)


def _emissions(join: JoinBatch | GroupBatch) -> DataFrame:
    """The emissions of a batch with the sequences of their rows, which the files of a joined table do not hold."""
    made = join.made if isinstance(join, JoinBatch) and join.spec.sequences else None
    return join.emissions if made is None else made
