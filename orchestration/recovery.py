"""Before a run: the state must fit the plan, and the configuration the state."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestration.config import Pipeline
from orchestration.config.problems import Problem
from storage.errors import ConfigurationChanged, LakeInconsistent
from storage.lake import Lake, joined_of, response_log_of, subscription_log_of
from storage.plan import Journal, Plan

_CHANGEABLE = {"tombstone_retention", "on_truncate", "changelog", "late"}
"""Settings that are part of what a pipeline means, and of nothing that is in its lake already."""


def check_progress(pipeline: Pipeline, lake: Lake, journal: Journal) -> None:
    """Hold each table's own transaction identifier against what was published.

    A stage has committed the batch that the last publication says, or the one under way; anything else means that
    the table was restored, lost or written by somebody else. What is no longer declared may be gone, and so may what
    a join left behind before it began anew. Raises `LakeInconsistent`.
    """
    published = journal.last
    under_way = {journal.unfinished.batch} if journal.unfinished else set()
    declared = {*pipeline.inputs, *(set(pipeline.joins) & set(kept_joins(pipeline, journal)))}
    begun = {name: plan.batch for plan in journal.plans for name in plan.bootstrap}
    for stage, batch in (published.commits if published else {}).items():
        name = stage.partition("/")[2]
        if name not in declared or batch < begun.get(name, 0):
            continue
        table = journal.table_of(stage)
        snapshot = lake.snapshot(table)
        found = snapshot.transaction(journal.application(stage)) if snapshot else None
        if found not in {batch, *under_way}:
            raise LakeInconsistent(
                f"{lake.path(table)}: its log says that stage {stage} is done up to batch {found}; expected {batch}, "
                "as published. The table was restored, replaced or removed behind the back of the plan. "
                "Restore the table to the version in `_published`, or start the lake anew."
            )


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


def check_shapes(pipeline: Pipeline, journal: Journal) -> None:
    """Refuse a configuration that the state was not built with. Raises `ConfigurationChanged`."""
    if not journal.plans:
        return
    before, kept = journal.plans[-1].shapes, {*pipeline.inputs, *kept_joins(pipeline, journal)}
    changed = [
        name
        for name, shape in shapes_of(pipeline).items()
        if before.get(name, shape) != shape and name.split("/")[1] in kept
    ]
    if changed:
        problems = [str(_problem(pipeline, journal, name)) for name in changed]
        raise ConfigurationChanged("\n".join(problems))


def still_declared(pipeline: Pipeline, plan: Plan) -> Plan:
    """A batch under way without the joins that were removed meanwhile, which so cannot keep it from its end.

    Raises `ConfigurationChanged` where a table is gone that the batch reads.
    """
    if missing := sorted({file.table for file in plan.files} - set(pipeline.inputs)):
        raise ConfigurationChanged(
            f"{pipeline.path}: {', '.join(missing)} is no longer declared, but batch {plan.batch} of {pipeline.lake} "
            "was planned with it and is not finished. Put it back, run once, then remove it, or point `lake` at a new "
            "directory."
        )
    joins, bootstrap = ([n for n in names if n in pipeline.joins] for names in (plan.joins, plan.bootstrap))
    return replace(plan, joins=tuple(joins), bootstrap=tuple(bootstrap))


def kept_joins(pipeline: Pipeline, journal: Journal) -> tuple[str, ...]:
    """The joins that the last batch keeps, finished or under way; all of them in a lake without any."""
    last = journal.unfinished.joins if journal.unfinished else journal.last.joins if journal.last else None
    return tuple(pipeline.joins if last is None else last)


def join_remains(lake: Lake, name: str) -> bool:
    """Whether the lake has tables of a join, kept or not."""
    return bool(lake.versions([joined_of(name), subscription_log_of(name), response_log_of(name)]))


def new_joins(pipeline: Pipeline, lake: Lake, journal: Journal) -> list[str]:
    """The joins that start from the rows there are.

    Raises `ConfigurationChanged` for one whose tables are there from an earlier time: nobody kept them since.
    """
    new = [name for name in pipeline.joins if name not in kept_joins(pipeline, journal)]
    for name in new:
        if join_remains(lake, name):
            raise ConfigurationChanged(
                str(
                    pipeline.problem(
                        ("joins", name),
                        f"{lake.path(f'joins/{name}')} is there from an earlier join of this name, and was not kept up "
                        "to date since; give the join another name, or remove that directory",
                    )
                )
            )
    return new


def _problem(pipeline: Pipeline, journal: Journal, changed: str) -> Problem:
    kind, name, setting = changed.split("/")
    rename = "give the join another name, " if kind == "joins" else ""
    return pipeline.problem(
        (kind, name, *setting.split(".")),
        f"changed since batch {len(journal.plans)}, and the state in {pipeline.lake} was built with what it was "
        f"before; undo the change, {rename}or point `lake` at a new directory",
    )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those of the source as `source.NAME`."""
    source = {f"source.{name}": value for name, value in settings.get("source", {}).items()}
    return {name: value for name, value in settings.items() if name != "source"} | source


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
