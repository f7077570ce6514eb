"""Before a run: the state must fit the plan, and the configuration the state."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from orchestration.batch_context import stages_of, state_tables
from orchestration.config import Pipeline
from orchestration.config.problems import Problem
from orchestration.log_recovery import check_begun, check_own_commits
from orchestration.rebuilding import join_remains
from storage.errors import ConfigurationChanged, LakeInconsistent
from storage.journal import Journal
from storage.lake import PLAN, Lake, Snapshot, rows_of
from storage.maintenance import Folds
from storage.plan import Plan
from storage.remedies import remedy

_CHANGEABLE = {"tombstone_retention", "on_truncate", "changelog", "late"}
"""Settings that are part of what a pipeline means, and of nothing that is in its lake already."""


def check_progress(pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str] = ()) -> None:
    """Hold each table's own log against what was published.

    A stage has committed the batch that the last publication says, or the one under way, by its transaction
    identifier; and whatever changed rows since then is a commit of this lake. Anything else means that the table was
    restored, lost or written by somebody else. What is no longer declared may be gone, and so may what a join left
    behind before it began anew, or is about to: `rebuilt`. Raises `LakeInconsistent`.
    """
    snapshots = snapshots_of(pipeline, lake, journal, rebuilt)
    if not journal.plans and snapshots:
        raise LakeInconsistent(
            f"{lake.root}: holds {', '.join(snapshots)} and no plan of any batch; expected `{PLAN}`, or none of them. "
            f"`{PLAN}` was removed, or what is there is of another lake. Put `{PLAN}` back from a copy, or point "
            "`lake` at an empty directory."
        )
    for stage, found, expected in wrong_stages(pipeline, journal, snapshots, rebuilt):
        table = journal.table_of(stage)
        raise LakeInconsistent(
            f"{lake.path(table)}: its log says that stage {stage} is done up to batch {found}; expected {expected}, "
            "as published. The table was restored, replaced or removed behind the back of the plan, or the plan was. "
            f"{remedy(table)}"
        )
    beginning = journal.unfinished.bootstrap if journal.unfinished else ()
    versions = {
        table: snapshot.version for table, snapshot in snapshots.items() if _name(table) not in beginning
    }
    check_own_commits(lake, journal, versions)
    _check_folds(pipeline, lake, journal, snapshots)


def snapshots_of(
    pipeline: Pipeline,
    lake: Lake,
    journal: Journal,
    rebuilt: Collection[str] = (),
    beside: Collection[str] = (),
) -> dict[str, Snapshot]:
    """Return the tables that the lake keeps and has, without those `beside`. Raises `LakeInconsistent`."""
    declared = {*_declared(pipeline, journal, rebuilt), ""}
    tables = [table for table in state_tables(pipeline) if _name(table) in declared and table not in beside]
    return {table: snapshot for table in tables if (snapshot := lake.snapshot(table)) is not None}


def wrong_stages(
    pipeline: Pipeline, journal: Journal, snapshots: Mapping[str, Snapshot], rebuilt: Collection[str] = ()
) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield each stage whose table has not committed what it should, with the last batch found and expected."""
    commits = journal.last.commits if journal.last else {}
    under_way = {journal.unfinished.batch} if journal.unfinished else set()
    declared = _declared(pipeline, journal, rebuilt)
    for stage in dict.fromkeys([*commits, *stages_of(pipeline)]):
        name, batch = stage.partition("/")[2], commits.get(stage)
        if name not in declared or (batch is not None and batch < journal.begun.get(name, 0)):
            continue
        snapshot = snapshots.get(journal.table_of(stage))
        found = snapshot.transaction(journal.application(stage)) if snapshot else None
        if found not in {batch, *under_way}:
            yield stage, found, batch


def _declared(pipeline: Pipeline, journal: Journal, rebuilt: Collection[str]) -> set[str]:
    """Tables and streams, and the joins that the lake keeps up to date."""
    kept = set(kept_joins(pipeline, journal)) - set(rebuilt)
    return {*pipeline.inputs, *(set(pipeline.joins) & kept)}


def _name(table: str) -> str:
    """The declared name that a table of the lake is kept for; none for the quarantine."""
    return "".join(table.split("/")[1:2])


def _check_folds(pipeline: Pipeline, lake: Lake, journal: Journal, snapshots: Mapping[str, Snapshot]) -> None:
    folded = {
        rows_of(name): snapshots[rows_of(name)].transaction(journal.application(f"fold/{rows_of(name)}"))
        for name in pipeline.tables
        if rows_of(name) in snapshots
    }
    done = {base: through for base, through in folded.items() if through is not None}
    if done:
        check_begun(lake, journal, done, {(fold.base, fold.through) for fold in Folds(lake).begun})


def shapes_of(pipeline: Pipeline) -> dict[str, str]:
    """Fingerprints of what the state is made with, by names such as `tables/T/key` and `joins/J/foreign_key`.

    What says only how a run goes on (retention, limits, the answer to a truncate event) may change and has none.
    """
    return {
        f"{kind}/{name}/{setting}": _fingerprint(value)
        for kind in ("tables", "streams", "joins")
        for name, settings in pipeline.shape[kind].items()
        for setting, value in _flat(settings).items()
        if setting not in _CHANGEABLE
    }


def check_shapes(
    pipeline: Pipeline, journal: Journal, rebuilt: Collection[str] = (), migrated: Collection[str] = ()
) -> None:
    """Refuse a configuration that the state was not built with, except for joins that begin anew.

    `migrated`: settings that may differ. Raises `ConfigurationChanged`.
    """
    changed = [name for name in changed_shapes(pipeline, journal, rebuilt) if name not in migrated]
    if changed:
        raise _refusal(pipeline, journal.plans[-1], changed)


def changed_shapes(pipeline: Pipeline, journal: Journal, rebuilt: Collection[str] = ()) -> list[str]:
    """Return the settings that the state was not built with, by names as `shapes_of` has them."""
    if not journal.plans:
        return []
    kept = {*pipeline.inputs, *kept_joins(pipeline, journal)} - set(rebuilt)
    return _changed(pipeline, journal.plans[-1], kept)


def check_shape(pipeline: Pipeline, cut: Plan, name: str) -> None:
    """Refuse to read a table or join that was made with another configuration. Raises `ConfigurationChanged`."""
    names = {name}
    for join in reversed(pipeline.joins):  # right and left sides of a join come before it
        if join in names:
            spec = pipeline.spec_of_join(join)
            names |= {spec.left, spec.right}
    if changed := _changed(pipeline, cut, names):
        raise _refusal(pipeline, replace(cut, batch=cut.batch - 1), changed)


def _changed(pipeline: Pipeline, plan: Plan, names: Collection[str]) -> list[str]:
    """Settings of tables and joins that are not what a plan says of them."""
    return [
        name
        for name, shape in shapes_of(pipeline).items()
        if plan.shapes.get(name, shape) != shape and name.split("/")[1] in names
    ]


def _refusal(pipeline: Pipeline, plan: Plan, changed: Collection[str]) -> ConfigurationChanged:
    return ConfigurationChanged("\n".join(str(_problem(pipeline, plan, name)) for name in changed))


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


def kept_joins(pipeline: Pipeline, journal: Journal) -> tuple[str, ...]:
    """The joins that the last batch keeps, finished or under way; all of them in a lake without any."""
    last = journal.unfinished.joins if journal.unfinished else journal.last.joins if journal.last else None
    return tuple(pipeline.joins if last is None else last)


def new_joins(pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str] = ()) -> list[str]:
    """The joins that start from the rows there are: those that were added, and `rebuilt`.

    Raises `ConfigurationChanged` for one whose tables are there from an earlier time: nobody kept them since.
    """
    kept = set(kept_joins(pipeline, journal)) - set(rebuilt)
    new = [name for name in pipeline.joins if name not in kept]
    for name in new:
        if name not in rebuilt and join_remains(lake, name):
            raise ConfigurationChanged(
                str(
                    pipeline.problem(
                        ("joins", name),
                        f"{lake.path(f'joins/{name}')} is there from an earlier join of this name, and was not kept up "
                        f"to date since; give the join another name, or compute it anew: {_rebuild(pipeline, name)}",
                    )
                )
            )
    return new


def _problem(pipeline: Pipeline, plan: Plan, changed: str) -> Problem:
    kind, name, setting = changed.split("/")
    ways = f"point `lake` at a new directory{_ways_for(pipeline, kind, name, setting)}"
    return pipeline.problem(
        (kind, name, *setting.split(".")),
        f"changed since batch {plan.batch}, and the state in {pipeline.lake} was built with what it was "
        f"before; undo the change, {ways}",
    )


def _ways_for(pipeline: Pipeline, kind: str, name: str, setting: str) -> str:
    if kind != "joins":
        return (
            f", or, where columns were added: `lakejoin migrate {pipeline.path}`"
            if setting == "columns"
            else ""
        )
    other = ", give the join another name"
    return (
        f"{other}, or compute it anew: {_rebuild(pipeline, name)}"
        if name in pipeline.foreign_key_joins
        else other
    )


def _rebuild(pipeline: Pipeline, name: str) -> str:
    return f"`lakejoin run {pipeline.path} --rebuild {name}`"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those of the source as `source.NAME`."""
    source = {f"source.{name}": value for name, value in settings.get("source", {}).items()}
    return {name: value for name, value in settings.items() if name != "source"} | source


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
