"""Files that were exported again: found, and measured as new ones."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

from orchestration.config import Pipeline
from orchestration.errors import WrongUsage
from orchestration.pending import blamed, list_files, planned
from storage.files import FileCounter, measure_file
from storage.journal import Journal
from storage.plan import Plan, PlannedFile


def day_or_name(text: str | None) -> date | str | None:
    """What `--replace` names: a `{date}`, or else a file."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return text


def exported_again(
    pipeline: Pipeline, journal: Journal, what: date | str, *, now: datetime, counter: FileCounter | None,
    finished: Plan | None,
) -> list[PlannedFile]:  # fmt: skip
    """Return the files of a `{date}`, or of a name, whose content is no longer what was read, whole.

    `finished`: the plan that this run found under way. Where that was what is asked for, none need be left. Raises
    `WrongUsage` where none of them changed, or where a table or stream does not allow it.
    """
    found = list(_changed(pipeline, journal, what, now, counter))
    just_replaced = finished.files if finished is not None and finished.kind == "replace" else ()
    if not found and not any(what in (file.date, file.name) for file in just_replaced):
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
        if pipeline.tables[name].versioned:
            raise WrongUsage(
                f"--replace {what}: {name} is versioned; bring the correction as records of the same times in a new "
                "file: at the same time the later record counts"
            )
    return found


def _changed(
    pipeline: Pipeline, journal: Journal, what: date | str, now: datetime, counter: FileCounter | None
) -> Iterator[PlannedFile]:
    for name, table in pipeline.inputs.items():
        if table.source.format == "delta":
            continue
        known = journal.known_files(name)
        for file in list_files(table, settle=timedelta(0), now=now):
            if what not in (file.date, file.name) or file.name not in known:
                continue
            with blamed(table):
                measured = measure_file(file, table.source.format, None, counter, table.source.file_limits)
            if measured.fingerprint != known[file.name].fingerprint:
                yield planned(name, measured, from_line=0)
