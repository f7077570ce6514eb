"""Checks before a run, and before a batch is published, that the logs of a lake's tables are whole and its own."""

import logging
from collections.abc import Collection, Mapping

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.inventory import state_tables
from lakejoin.storage.delta_log.foreign_commits import check_own
from lakejoin.storage.delta_log.torn_commits import DamagedCommit, damaged_commits
from lakejoin.storage.errors import LakeInconsistent, remedy
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import MAINTENANCE, PLAN, PUBLISHED, Lake
from lakejoin.transforms.model.printable_text import printable

logger = logging.getLogger(__name__)


def settle_logs(pipeline: Pipeline, lake: Lake, beside: Collection[str] = ()) -> None:
    """Set aside the commits that a power loss left empty or torn and that the batch under way makes again.

    `beside`: tables that are not looked at. The caller holds the lake for writing. An object store has no such commits:
    it takes objects whole. Raises
    `LakeInconsistent` for one that was published, that a plan pins, or that others stand on.
    """
    if lake.local is None:
        return
    for damaged in damaged_commits(lake.local, (PUBLISHED, PLAN, MAINTENANCE)):
        _settle(lake, damaged, damaged.version if _is_finished(lake, damaged) else -1)
    tables = [table for table in state_tables(pipeline) if table not in beside]
    if not (found := damaged_commits(lake.local, tables)):
        return  # without a look at the journal, which grows
    journal = Journal(lake)
    snapshots = [snapshot.versions for snapshot in (journal.last, journal.unfinished) if snapshot is not None]
    for damaged in found:
        _settle(lake, damaged, max((versions.get(damaged.table, -1) for versions in snapshots), default=-1))


def _is_finished(lake: Lake, damaged: DamagedCommit) -> bool:
    """Whether the commit held the plan of a batch that was published."""
    if damaged.table != PLAN:
        return False
    published = lake.snapshot(PUBLISHED)
    plans = lake.snapshot(PLAN, damaged.version - 1) if damaged.version else None
    done, planned = (len(table.read(["batch"])) if table else 0 for table in (published, plans))
    return done > planned


def _settle(lake: Lake, damaged: DamagedCommit, pinned: int) -> None:
    """Set a commit aside, unless it is needed. `pinned`: the last version of its table that a snapshot names."""
    if damaged.version <= pinned or not damaged.last:
        needed = "later versions stand on it" if not damaged.last else "a finished batch needs it"
        raise LakeInconsistent(
            f"{lake.path(damaged.table)}: the commit of version {damaged.version} {damaged.found}, and {needed}; "
            f"expected a whole commit. The machine lost power, or {damaged.file.name} was cut. {remedy(damaged.table)}"
        )
    logger.warning(
        "%s: the commit of version %s %s and is set aside; what it did is done again",
        printable(lake.path(damaged.table)), printable(damaged.version), printable(damaged.found),
    )  # fmt: skip
    damaged.set_aside()


def check_own_commits(
    lake: Lake, journal: Journal, versions: Mapping[str, int], own: Mapping[str, int] | None = None
) -> None:
    """See that since the last publication no table got rows, or lost some, by others than this lake's runs.

    `versions`: of the tables now. `own`: how many commits to each table the caller knows of; as many are not looked
    at. Raises `LakeInconsistent`.
    """
    before = journal.last.versions if journal.last else {}
    for table, version in versions.items():
        after = before.get(table, -1)
        if version - after > (own or {}).get(table, 0):
            check_own(lake.path(table), str(journal.pipeline), after, version)


def check_begun(
    lake: Lake, journal: Journal, folded: Mapping[str, int], begun: Collection[tuple[str, int]]
) -> None:
    """See that each base was folded as `_maintenance` says: without it, purged keys would be taken for new ones.

    `folded`: the last batch in each base, by its log. `begun`: base and last batch of each fold. Raises
    `LakeInconsistent`.
    """
    for base, through in folded.items():
        if (base, through) not in begun:
            raise LakeInconsistent(
                f"{lake.path(MAINTENANCE)}: says nothing of the fold of {base} up to batch {through}, which its log "
                f"has; expected a row of {journal.application('maintenance')}. {remedy(base)}"
            )
