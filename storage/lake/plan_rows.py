"""Reads the rows of `_plan`, and the files of all plans only where one of them is asked for."""

from collections.abc import Iterator
from functools import cached_property, partial

import pyarrow as pa

from lakejoin.storage.delta_log.snapshot import Snapshot
from lakejoin.storage.lake.layout import PLAN, Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.planned.planned_files import PlannedFiles


def plans_of(lake: Lake, snapshot: Snapshot) -> Iterator[Plan]:
    """Yield the plans that a version of `_plan` has. Raises `LakeUnusable`, `LakeInconsistent`."""
    files = _Files(lake)
    columns = [field.name for field in snapshot.delta.schema().fields if field.name != "files"]
    for row in snapshot.read(columns):
        yield Plan.of_row({**row, "files": PlannedFiles(partial(files.of, row["batch"]))})


class _Files:
    """The files of a lake's plans: of a source with a million files, nearly all that `_plan` holds."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def of(self, batch: int) -> pa.StructArray:
        """A row for each part that a batch was planned with."""
        return self._rows[batch]

    @cached_property
    def _rows(self) -> dict[int, pa.StructArray]:
        """By batch, of the newest version: the rows of a plan never change, and files of older versions go."""
        snapshot = self._lake.snapshot(PLAN)
        assert snapshot is not None  # its plans were read
        table = snapshot.arrow(["batch", "files"])
        files = (row for chunk in table["files"].chunks for row in chunk)
        return {batch: row.values for batch, row in zip(table["batch"].to_pylist(), files, strict=True)}
