"""Tells which joins a lake keeps up to date, which begin with the next batch, and which are left out or computed anew.

A join that was added to the configuration begins. One that was removed is left out, also of a batch under way.
`--rebuild` names joins that begin anew, and every join over one of them follows.
"""

from collections.abc import Collection
from dataclasses import replace

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage, unknown
from lakejoin.orchestration.lake_state.inventory import JOINS_IN_LAKE
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Plan


def kept_joins(pipeline: Pipeline, journal: Journal) -> tuple[str, ...]:
    """The joins that the last batch keeps, finished or under way; all of them in a lake without any."""
    last = journal.unfinished.joins if journal.unfinished else journal.last.joins if journal.last else None
    return tuple(pipeline.joins if last is None else last)


def new_joins(pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str] = ()) -> list[str]:
    """The joins that start from the existing rows: those that were added, and `rebuilt`.

    Raises `ConfigurationChanged` for a join that has tables from an earlier time, which were not kept up to date.
    """
    kept = set(kept_joins(pipeline, journal)) - set(rebuilt)
    new = [name for name in pipeline.joins if name not in kept]
    left = [name for name in new if name not in rebuilt and join_remains(lake, name)]
    if left:
        anew = {*rebuilt, *left} & pipeline.rebuildable.keys()
        told = [
            pipeline.problem((pipeline.section_of(name), name), _left_behind(pipeline, lake, name, anew))
            for name in left
        ]
        raise ConfigurationChanged(*map(str, told))
    return new


def check_up_to_date(pipeline: Pipeline, journal: Journal, snapshot: Plan, name: str) -> None:
    """Refuse to read a join that was not kept up to date until the snapshot. Raises `WrongUsage`.

    A batch that was given up leaves joins to begin anew behind it, and readers those as they were.
    """
    done = journal.published[snapshot.batch - 2]
    if name not in pipeline.joins or name in done.joins or done.kind == "abandoned":
        return
    if joined_of(name) in snapshot.versions:
        other = (
            f"it begins anew with {rebuild_command(pipeline, [name])}"
            if name in pipeline.rebuildable
            else "give the join another name"
        )
        raise WrongUsage(
            f"{name}: its tables are there from an earlier time, and were not kept up to date to batch {done.batch}; "
            f"{other}"
        )


def _left_behind(pipeline: Pipeline, lake: Lake, name: str, anew: Collection[str]) -> str:
    folder = lake.path(f"joins/{name}")
    other = (
        f"compute it anew: {rebuild_command(pipeline, anew)}"
        if name in pipeline.rebuildable
        else "remove that directory"
    )
    return (
        f"{folder} is there from an earlier join of this name, and was not kept up to date since; give the join "
        f"another name, or {other}"
    )


def still_wanted(pipeline: Pipeline, plan: Plan, rebuilt: Collection[str] = ()) -> Plan:
    """A batch under way without the joins that were removed meanwhile, which so cannot keep it from its end.

    Those that begin anew after it are left out, too: as they are now, they may be what it failed at.
    Raises `ConfigurationChanged` where a table is gone that the batch reads.
    """
    if missing := sorted({file.table for file in plan.files} - set(pipeline.inputs)):
        raise ConfigurationChanged(
            f"{pipeline.path}: {', '.join(missing)} is no longer declared, but batch {plan.batch} of {pipeline.lake} "
            "was planned with it and is not finished. Put it back, run once, then remove it, or point `lake` at a new "
            "directory."
        )
    wanted = set(pipeline.joins) - set(rebuilt)
    joins, bootstrap = ([n for n in names if n in wanted] for names in (plan.joins, plan.bootstrap))
    return replace(plan, joins=tuple(joins), bootstrap=tuple(bootstrap))


def joins_to_rebuild(pipeline: Pipeline, names: Collection[str]) -> tuple[str, ...]:
    """Return these joins and every join over one of them, sides first.

    Raises `WrongUsage` for a name that is no join, or one that cannot be computed anew.
    """
    known = pipeline.rebuildable
    for name in names:
        if name in known:
            continue
        if name in pipeline.joins:
            raise WrongUsage(f"{name} {pipeline.joins[name].not_rebuilt}")
        raise unknown("join", name, known)
    found: set[str] = set()
    for name, join in known.items():  # sides come first
        if name in names or not found.isdisjoint(join.sides):
            found.add(name)
    return tuple(name for name in known if name in found)


def join_remains(lake: Lake, name: str) -> bool:
    """Whether the lake has tables of a join, kept or not, of whatever kind it was."""
    return bool(lake.versions({table(name) for kind in JOINS_IN_LAKE.values() for table in kind.tables}))


def rebuild_command(pipeline: Pipeline, names: Collection[str]) -> str:
    """The command that computes joins anew; of a join and one over it, it names the first."""
    anew = joins_to_rebuild(pipeline, names)
    first = [name for name in anew if not {*pipeline.joins[name].sides} & {*anew}]
    return f"`lakejoin run {pipeline.path}{''.join(f' --rebuild {name}' for name in first)}`"
