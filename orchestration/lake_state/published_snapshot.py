"""Finds the snapshot that readers see: which versions of all tables belong together after a finished batch."""

from dataclasses import replace

from lakejoin.orchestration.errors import WrongUsage
from lakejoin.storage.delta_log.live_files import is_whole
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, is_base
from lakejoin.storage.lake.plan import Plan


def published_snapshot(journal: Journal, batch: int | None = None) -> Plan:
    """Return a plan, never committed, that pins the state after a batch; by default the last finished one.

    Raises `WrongUsage` for a batch that is not published.
    """
    finished = len(journal.published)
    if finished == 0:
        raise WrongUsage("the lake has no finished batch yet; `lakejoin run` makes one")
    number = finished if batch is None else batch
    if not 1 <= number <= finished:
        raise WrongUsage(f"batch {number} is not published; finished batches: 1 to {finished}")
    plan, published = journal.plans[number - 1], journal.published[number - 1]
    # A fold replaces a base between two batches: only the plan knows how far the base it pins was folded. One that the
    # plan does not know is of a join's time before it began anew, or was folded since: its log has everything.
    bases = {table: version for table, version in plan.versions.items() if table in plan.folded}
    others = {table: version for table, version in published.versions.items() if not is_base(table)}
    return replace(
        plan, batch=number + 1, versions={**others, **bases}, clocks=published.clocks,
        flushed=number if published.kind == "flush" else plan.flushed,
        begun={**plan.begun, **dict.fromkeys(plan.bootstrap, number)},
    )  # fmt: skip


def check_kept(lake: Lake, journal: Journal, snapshot: Plan, name: str) -> None:
    """See that a table or join can still be read as of a batch. Raises `WrongUsage` where that state is gone since."""
    number = snapshot.batch - 1
    for table, version in snapshot.versions.items():
        if name not in table.split("/"):
            continue
        newest = lake.snapshot(table)
        anew = newest is None or newest.version < version
        if not anew and not is_whole(lake.path(table), version):
            raise WrongUsage(
                f"batch {number} is too old for {name}: files of {lake.path(table)} that only versions before the "
                "retention have (`maintenance: {retention: ...}`) were removed; ask for a later batch, or for none"
            )
        # versions of a table that was moved aside and made anew begin again at 0
        if anew or _last_batch(lake, journal, table, version) > number:
            raise WrongUsage(
                f"batch {number} is too old for {name}: {lake.path(table)} was repaired since, and what it had then is "
                "no longer there; ask for a later batch, or for none"
            )


def _last_batch(lake: Lake, journal: Journal, table: str, version: int) -> int:
    """The last batch that has committed something to a version of a table."""
    snapshot, last = lake.snapshot(table, version), journal.last
    assert snapshot is not None
    assert last is not None  # there is a snapshot
    stages = [stage for stage in last.commits if journal.table_of(stage) == table]
    return max(snapshot.transaction(journal.application(stage)) or 0 for stage in (f"fold/{table}", *stages))
