"""Finds files that were exported again, and measures them as new ones."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime, timedelta

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Input, Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.planning.pending_input import blamed
from lakejoin.storage.errors import SourceChanged, SourceNotFound
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.files.source_files import FoundFile, find_files
from lakejoin.storage.sources.formats.file_format import FileFormat
from lakejoin.storage.sources.planned.planned_file import PlannedFile


def day_or_name(text: str | None) -> date | str | None:
    """What `--replace` names: a `{date}`, or else a file."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return text


def exported_again(
    pipeline: Pipeline, journal: Journal, what: date | str, *, now: datetime, spark: SparkSession | None,
    finished: Plan | None,
) -> list[PlannedFile]:  # fmt: skip
    """Return the files of a `{date}`, or of a name, whose content is no longer what was read, whole.

    A file that merely grew is left out: its new lines are ordinary input. `finished`: the plan that this run found
    under way. Where that was what is asked for, none need be left. Raises `SourceNotFound` where one of them is gone,
    and `WrongUsage` where none of them changed, or where a table or stream does not allow it.
    """
    found = list(_changed(pipeline, journal, what, now, spark))
    just_replaced = finished.files if finished is not None and finished.kind == "replace" else ()
    if not found and not any(_is_meant(what, file) for file in just_replaced):
        which = f"of the name {what!r}" if isinstance(what, str) else "of that day"
        raise WrongUsage(
            f"--replace {what}: no file {which} that was read has other content now; new files and new lines need no "
            "--replace"
        )
    for name in {file.table for file in found}:
        if name in pipeline.streams:
            raise WrongUsage(
                f"--replace {what}: {name} is a stream, and what its records met cannot be taken back; bring the "
                "correction as later records"
            )
        if name in pipeline.snapshot_tables:
            raise WrongUsage(
                f"--replace {what}: {name} is made of snapshots; bring the correction as a later one, and what "
                "differs is found"
            )
        if pipeline.tables[name].versioned:
            raise WrongUsage(
                f"--replace {what}: {name} is versioned; bring the correction as records of the same times in a new "
                "file: at the same time the later record counts"
            )
    return found


def _changed(
    pipeline: Pipeline, journal: Journal, what: date | str, now: datetime, spark: SparkSession | None
) -> Iterator[PlannedFile]:
    """The files that have other content; that one of any table is gone is told before any is read."""
    asked = [
        (table, form, _listed(table, what, now), _known(journal, name, what))
        for name, table in pipeline.inputs.items()
        if isinstance(form := table.source_format, FileFormat)
    ]
    for table, _, found, known in asked:
        if table.name in pipeline.tables and not pipeline.tables[table.name].versioned:
            _check_none_gone(table, {file.name for file in found}, known)
    for table, form, found, known in asked:
        for file in found:
            before = known.get(file.name)
            if before is None or _has_grown(table, form, file, before):
                continue
            with blamed(table):
                measured = form.measure(file, None, spark, table.source.file_limits)
            if measured.fingerprint != before.fingerprint:
                yield PlannedFile.behind(0, measured, table.name)


def _listed(table: Input, what: date | str, now: datetime) -> list[FoundFile]:
    with blamed(table):
        day, order = what if isinstance(what, date) else None, table.source.file_order
        found = find_files(table.source.path, settle=timedelta(0), now=now, since=day, until=day, order=order)
    return [file for file in found if _is_meant(what, file)]


def _known(journal: Journal, table: str, what: date | str) -> dict[str, PlannedFile]:
    known = journal.known_files(table)
    return {name: file for name, file in known.items() if _is_meant(what, file)}


def _is_meant(what: date | str, file: FoundFile | PlannedFile) -> bool:
    """Whether a file is of the day, or has the name by which the lake knows it, or that it really has."""
    if what in (file.date, file.name):
        return True
    if not isinstance(what, str) or file.path.endswith(f"/{file.name}"):
        return False
    return file.path.endswith(f"/{what}") and file.name.count("/") - what.count("/") in {0, 1}


def _check_none_gone(table: Input, there: Collection[str], known: Mapping[str, PlannedFile]) -> None:
    """Refuse to keep, unasked, the records of a file that is not there any more.

    Those of streams and versioned tables stay in any case: there nothing is replaced.
    """
    gone = [file.path for name, file in known.items() if file.lines and name not in there]
    if not gone:
        return
    more = f" (and {len(gone) - 1} more of this table's)" if gone[1:] else ""
    with blamed(table):
        raise SourceNotFound(
            f"{gone[0]}{more}: was read and is gone, and nothing says what shall become of its records; nothing was "
            "changed. Put back what was there; or, for its records to go as well, put a file without records in its "
            "place (empty; of CSV, Parquet, Avro and ORC with the header only), then run again."
        )


def _has_grown(table: Input, form: FileFormat, file: FoundFile, before: PlannedFile) -> bool:
    """Whether all bytes that were read are still there, and whole lines behind them."""
    if file.size <= before.size:  # as large, it may have other content, whatever its time
        return False
    try:
        with blamed(table):  # without a session only the bytes are looked at
            form.measure(file, before.measured, None, table.source.file_limits)
    except SourceChanged:
        return False
    return True
