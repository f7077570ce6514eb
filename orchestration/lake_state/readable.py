"""Sees that what somebody wants to read was made as the file says, and that it is still there."""

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import check_up_to_date
from lakejoin.orchestration.lake_state.config_fingerprints import check_shape
from lakejoin.orchestration.lake_state.published_snapshot import check_kept
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan


def check_readable(pipeline: Pipeline, journal: Journal, snapshot: Plan, shown: str, *, kept: bool) -> None:
    """Check a table by the name it is shown by; with `kept` also that its files of that batch are still there.

    Raises `ConfigurationChanged` and `WrongUsage`.
    """
    declared = shown.partition(".")[0]
    names = [declared]
    if shown == f"{declared}.buffer":
        names.append(pipeline.joins[declared].left_side)
    check_all_readable(pipeline, journal, snapshot, names, kept=kept)


def check_all_readable(
    pipeline: Pipeline, journal: Journal, snapshot: Plan, names: list[str], *, kept: bool
) -> None:
    """Check what is declared by the first of these names, and with `kept` what is read beside it. Raises as above."""
    check_shape(pipeline, snapshot, names[0])
    check_up_to_date(pipeline, journal, snapshot, names[0])
    if kept:
        for name in names:
            check_kept(Lake(pipeline.lake), journal, snapshot, name)
