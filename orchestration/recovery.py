"""Before a run: the state must fit the plan, and the configuration the state."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from orchestration.config import Pipeline
from orchestration.config.problems import Problem
from orchestration.rebuilding import join_remains
from storage.errors import ConfigurationChanged, LakeInconsistent
from storage.lake import Lake
from storage.plan import Journal, Plan

_CHANGEABLE = {"tombstone_retention", "on_truncate", "changelog", "late"}
"""Settings that are part of what a pipeline means, and of nothing that is in its lake already."""


def check_progress(pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str] = ()) -> None:
    """Hold each table's own transaction identifier against what was published.

    A stage has committed the batch that the last publication says, or the one under way; anything else means that
    the table was restored, lost or written by somebody else. What is no longer declared may be gone, and so may what
    a join left behind before it began anew, or is about to: `rebuilt`. Raises `LakeInconsistent`.
    """
    for stage, found, expected in wrong_stages(pipeline, lake, journal, rebuilt):
        raise LakeInconsistent(
            f"{lake.path(journal.table_of(stage))}: its log says that stage {stage} is done up to batch {found}; "
            f"expected {expected}, as published. The table was restored, replaced or removed behind the back of the "
            f"plan. {_remedy(pipeline, stage)}"
        )


def wrong_stages(
    pipeline: Pipeline,
    lake: Lake,
    journal: Journal,
    rebuilt: Collection[str] = (),
    beside: Collection[str] = (),
) -> Iterator[tuple[str, int | None, int]]:
    """Yield each stage whose table has not committed what it should, with the last batch found and expected.

    Tables `beside` are left out.
    """
    published = journal.last
    under_way = {journal.unfinished.batch} if journal.unfinished else set()
    kept = set(kept_joins(pipeline, journal)) - set(rebuilt)
    declared = {*pipeline.inputs, *(set(pipeline.joins) & kept)}
    for stage, batch in (published.commits if published else {}).items():
        name = stage.partition("/")[2]
        table = journal.table_of(stage)
        if name not in declared or batch < journal.begun.get(name, 0) or table in beside:
            continue
        snapshot = lake.snapshot(table)
        found = snapshot.transaction(journal.application(stage)) if snapshot else None
        if found not in {batch, *under_way}:
            yield stage, found, batch


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


def _remedy(pipeline: Pipeline, stage: str) -> str:
    name = stage.partition("/")[2]
    if name in pipeline.foreign_key_joins:
        return f"Compute the join anew: `lakejoin repair {pipeline.path} {name}`."
    return (
        "Restore the table to the version in `_published` from a copy, or load its sources into a new lake."
    )


def _rebuild(pipeline: Pipeline, name: str) -> str:
    return f"`lakejoin run {pipeline.path} --rebuild {name}`"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those of the source as `source.NAME`."""
    source = {f"source.{name}": value for name, value in settings.get("source", {}).items()}
    return {name: value for name, value in settings.items() if name != "source"} | source


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
