"""Explains rows of a pipeline by the name of what they are in."""

from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import unknown
from lakejoin.orchestration.explain.explanation import Explanation, Finding
from lakejoin.orchestration.explain.files import explain_file, explain_line, key_at, place_of
from lakejoin.orchestration.explain.grouped_rows import explain_group
from lakejoin.orchestration.explain.impact import impact as impact_of
from lakejoin.orchestration.explain.joined_rows import explain_joined
from lakejoin.orchestration.explain.log_rows import Key, Logs, key_of
from lakejoin.orchestration.explain.raw_texts import RawTexts
from lakejoin.orchestration.explain.records import table_records
from lakejoin.orchestration.explain.sentences import listed
from lakejoin.orchestration.explain.stream_rows import explain_event, explain_record
from lakejoin.orchestration.explain.versions import version_findings
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.lake_state.readable import check_all_readable
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changes_of, records_of
from lakejoin.transforms.model.schemas import DERIVED


@dataclass(frozen=True)
class Question:
    """What somebody asks of a row."""

    name: str
    """Of a result, a declared table or a stream."""
    key: str
    """As it is typed; of several columns a JSON array. Of a `record` its place, `FILE:LINE`, or a file."""
    batch: int | None = None
    """After which it is asked for; by default the last finished one."""
    column: str | None = None
    """The only one to say something of."""
    impact: bool = False
    """Whether it is what is made of the row, instead of what that is made of."""
    raw: bool = False
    """Whether the text of each record is wanted."""
    record: bool = False
    """Whether a record of a source is asked for by its place, or all of a file."""


def explained(pipeline: Pipeline, asked: Question) -> Explanation:
    """Say why a row is as it is or not there.

    Raises `WrongUsage` for a question that has no answer, `ConfigurationChanged` for a result that was made otherwise,
    and `LakeUnusable` and `LakeInconsistent` for what cannot be read.
    """
    name = asked.name
    if asked.record:
        return _of_place(pipeline, asked)
    key = key_of("--key", asked.key, key_type(pipeline, name), nulls=name in pipeline.groups)
    return _answered(pipeline, logs_of(pipeline, asked), asked, key)


def _answered(pipeline: Pipeline, logs: Logs, asked: Question, key: Key) -> Explanation:
    """Explain a row as it is asked for."""
    name = asked.name
    found = explain_row(pipeline, logs, name, key)
    if asked.impact:
        return replace(found, findings=impact_of(pipeline, logs, name, key), next=())
    if asked.column is None or not found.found:
        return found
    if asked.column not in found.columns:
        raise unknown(f"column of {name}", asked.column, found.columns)
    return found.of_column(asked.column)


def _of_place(pipeline: Pipeline, asked: Question) -> Explanation:
    """Explain the row that a record is about, or say what became of the records of a file."""
    if asked.name not in pipeline.inputs:
        raise unknown("table or stream", asked.name, pipeline.inputs)
    logs = logs_of(pipeline, asked)
    spec, is_table = pipeline.inputs[asked.name].spec, asked.name in pipeline.tables
    log, own = (changes_of(asked.name), f"NOT {DERIVED}") if is_table else (records_of(asked.name), "true")
    file, line = place_of(asked.key)
    if line is None:
        return explain_file(logs, log, spec, file, own)
    key = key_at(logs, log, spec, file, line)
    if key is None:
        return explain_line(logs, spec, file, line)
    return _answered(pipeline, logs, asked, key)


def logs_of(pipeline: Pipeline, asked: Question) -> Logs:
    """Return the logs after a batch, seen that they can be read. Raises as `explained`."""
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    snapshot = published_snapshot(journal, asked.batch)
    names = pipeline.made_of(asked.name)
    check_all_readable(pipeline, journal, snapshot, names, kept=asked.batch is not None)
    return Logs(lake, snapshot, RawTexts(pipeline, journal).of if asked.raw else None)


def key_type(pipeline: Pipeline, name: str) -> StructType:
    """Return the columns of the key by which rows are asked for. Raises `WrongUsage` for an unknown name."""
    if name in pipeline.joins:
        return pipeline.spec_of_join(name).joined_key_type
    if name not in pipeline.inputs:
        raise unknown("result, table or stream", name, [*pipeline.joins, *pipeline.inputs])
    spec = pipeline.inputs[name].spec
    return StructType([spec.columns[part] for part in spec.key])


def explain_row(pipeline: Pipeline, logs: Logs, name: str, key: Key) -> Explanation:
    """Explain a row by the typed values of its key, down to the records that it is made of."""

    def below(side: str, side_key: Key) -> Explanation:
        return explain_row(pipeline, logs, side, side_key)

    if name in pipeline.tables:
        return _of_table(pipeline, logs, name, key)
    if name in pipeline.streams:
        return explain_record(pipeline, logs, name, key)
    if name in pipeline.groups:
        return explain_group(pipeline, logs, pipeline.group_spec(name), key)
    if name in pipeline.joins_of_streams:
        return explain_event(pipeline, logs, name, key, below)
    return explain_joined(logs, pipeline.join_spec(name), key, below)


def _of_table(pipeline: Pipeline, logs: Logs, name: str, key: Key) -> Explanation:
    table = pipeline.tables[name]
    records = table_records(logs, table.spec, key)
    row = [Finding(f"the row: {listed(records.values)}", {"row": records.values})] if records.is_there else []
    versions = version_findings(logs, table.spec, key) if table.versioned else []
    return Explanation(
        name,
        key.texts,
        logs.batch,
        records.is_there,
        records.answer,
        (*row, *records.findings, *versions),
        ("a record of it with a later sequence" if records.current else "a record of it",),
        records.columns,
    )
