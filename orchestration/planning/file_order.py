"""Refuses new files whose names say two orders, where nothing else orders the changes of a row."""

from collections.abc import Collection
from functools import partial

from lakejoin.orchestration.config import Input
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.sources.files.file_names import out_of_order
from lakejoin.storage.sources.planned.known_files import KnownFiles
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile
from lakejoin.transforms.model.printable_text import printable


def check_file_order(table: Input, known: Known, unread: Collection[PlannedFile]) -> None:
    """Ask which of two files is the older. Raises `SourceRefused`.

    A lake that has read such files goes on as it began. `known`: what was read, by name.
    """
    asked = isinstance(table, Table) and not table.sequence and table.source.file_order is None
    if not (asked and table.source_format.has_lines):
        return
    read = partial(KnownFiles.of(known).each, "date", "name")
    files = dict.fromkeys((file.date, file.name) for file in unread)
    if swapped := out_of_order(read, files):
        first, second = (printable(name) for name in swapped[0])
        raise SourceRefused(
            f"no `sequence` orders the changes, and {first} stands before {second} by its name, but behind it by the "
            f"numbers in it ({len(swapped):,} such pairs of files). Expected one order: write `file_order: number` "
            "under source if the numbers say it, `file_order: name` if the names do"
        )
