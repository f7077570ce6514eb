"""Runs the declared tables of a batch: reads their records, applies them to stored rows, and commits the changes."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from lakejoin.orchestration.batch.compacted_topics import check_as_committed
from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.batch.first_load import table_load
from lakejoin.orchestration.batch.quarantine import commit_refused, only_open
from lakejoin.orchestration.batch.tables.replaced_files import files_of, replace_batch
from lakejoin.orchestration.batch.tables.table import TableBatch, table_batch, untouched
from lakejoin.orchestration.config.schema.expressions import referenced_columns
from lakejoin.orchestration.planning.pending_input import check_read
from lakejoin.storage.lake.layout import changes_of
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.specs import TableSpec


def read_table(batch: Batch, name: str) -> TableBatch:
    """A table of the batch with its records applied; one without files of its own is left as it is.

    Raises `SourceError` where a file is not what the plan says of it.
    """
    table = batch.pipeline.tables[name]
    files = batch.plan.files_of(name)
    if not files:
        return untouched(table.spec, batch.state)
    with batch.stage(f"read/{name}"):
        kept = _records(batch, name)
        needed = partial(_read_before, batch, table.spec)
        if batch.plan.kind == "replace":
            taken = files_of(name, batch.journal, batch.plan)
            read = replace_batch(table.spec, kept, taken, batch.state, batch.frames, needed=needed)
        else:
            stated = table.on_truncate if table.leaves_values_out else None
            flawless = partial(batch.records.read, name, flawless=True)
            load = table_load(batch, table.spec, flawless if batch.records.reads_again(name) else None)
            read = table_batch(
                table.spec, kept, batch.state, batch.frames, on_truncate=stated, needed=needed, load=load
            )
        if batch.records.compares(name):
            return replace(read, counts=_of_snapshot(batch, name, read.counts))
        check_read(table, files, None if batch.plan.kind == "retry" else read.counts["records"])
        check_as_committed(batch, table, changes_of(name), read.logged)
    return read


def _of_snapshot(batch: Batch, name: str, counts: Mapping[str, int]) -> dict[str, int]:
    """What became of a snapshot's rows, those that had not changed among them. Raises `SourceError`."""
    files = batch.plan.files_of(name)
    check_read(batch.pipeline.read_by(batch.plan.kind, name), files, None)
    records = sum(file.records for file in files)
    seen = {"records": records, "unchanged": records - counts["records"]}
    found = batch.records.differences[name]
    return {**counts, **seen, **({"withheld": found["gone"]} if found["hidden"] else {})}


def _records(batch: Batch, name: str) -> DataFrame:
    """The source records of a table that the batch reads."""
    if batch.plan.kind == "retry":
        return batch.frames.keep(only_open(batch.records.read(name), name, batch))
    return batch.records.kept(name)


def _read_before(batch: Batch, table: TableSpec) -> list[str]:
    """Columns of a table's former rows that its joins read: the foreign key, and all where a change may be unread.

    Groups that are adjusted take a former row away from its group, by what they made of it.
    """
    found: list[str] = []
    for spec in map(batch.pipeline.spec_of_join, batch.plan.joins):
        if spec.left == table.name:
            whole = spec.left_whole and not (isinstance(spec, GroupSpec) and spec.adjusts)
            found += referenced_columns(spec.foreign_key_texts) if whole else spec.left_columns.names
        for part in spec.parts:
            if part.right == table.name and not part.right_whole:
                found += part.right_columns.names
    return found


def commit_table(batch: Batch, pool: ThreadPoolExecutor, table: TableBatch) -> list[Future[None]]:
    """Commit a table's changes, and what of its records could not be accepted."""
    name, bad = table.spec.name, table.counts["quarantined"]
    changes = batch.timed(table.changes)
    return [
        pool.submit(batch.append, f"changes/{name}", changes_of(name), changes, table.logged),
        pool.submit(commit_refused, batch, name, table.quarantined, bad),
    ]
