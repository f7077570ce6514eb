"""Before a run: the state must fit the plan, and the configuration the state."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from orchestration.batch_context import state_tables
from orchestration.config import Pipeline
from orchestration.config.problems import Problem
from orchestration.log_recovery import check_begun, check_own_commits
from storage.errors import ConfigurationChanged, LakeInconsistent
from storage.lake import PLAN, Lake, Snapshot, joined_of, response_log_of, rows_of, subscription_log_of
from storage.maintenance import Folds
from storage.plan import Journal, Plan
from storage.remedies import remedy

_CHANGEABLE = {"tombstone_retention", "on_truncate", "changelog", "late"}
"""Settings that are part of what a pipeline means, and of nothing that is in its lake already."""


def check_progress(pipeline: Pipeline, lake: Lake, journal: Journal) -> None:
    """Hold each table's own log against what was published.

    A stage has committed the batch that the last publication says, or the one under way, by its transaction
    identifier; and whatever changed rows since then is a commit of this lake. Anything else means that the table was
    restored, lost or written by somebody else. What is no longer declared may be gone, and so may what a join left
    behind before it began anew. Raises `LakeInconsistent`.
    """
    commits = journal.last.commits if journal.last else {}
    under_way = {journal.unfinished.batch} if journal.unfinished else set()
    declared = {*pipeline.inputs, *(set(pipeline.joins) & set(kept_joins(pipeline, journal)))}
    begun = {name: plan.batch for plan in journal.plans for name in plan.bootstrap}
    tables = [table for table in state_tables(pipeline) if _name(table) in {*declared, ""}]
    snapshots = {table: snapshot for table in tables if (snapshot := lake.snapshot(table)) is not None}
    if not journal.plans and snapshots:
        raise LakeInconsistent(
            f"{lake.root}: holds {', '.join(snapshots)} and no plan of any batch; expected `{PLAN}`, or none of them. "
            f"`{PLAN}` was removed, or what is there is of another lake. Put `{PLAN}` back from a copy, or point "
            "`lake` at an empty directory."
        )
    for stage in dict.fromkeys([*commits, *stages_of(pipeline)]):
        name, batch = stage.partition("/")[2], commits.get(stage)
        if name not in declared or (batch is not None and batch < begun.get(name, 0)):
            continue
        snapshot = snapshots.get(journal.table_of(stage))
        found = snapshot.transaction(journal.application(stage)) if snapshot else None
        if found not in {batch, *under_way}:
            table = journal.table_of(stage)
            raise LakeInconsistent(
                f"{lake.path(table)}: its log says that stage {stage} is done up to batch {found}; expected {batch}, "
                "as published. The table was restored, replaced or removed behind the back of the plan, or the plan "
                f"was. {remedy(table)}"
            )
    beginning = journal.unfinished.bootstrap if journal.unfinished else ()
    versions = {
        table: snapshot.version for table, snapshot in snapshots.items() if _name(table) not in beginning
    }
    check_own_commits(lake, journal, versions)
    _check_folds(pipeline, lake, journal, snapshots)


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


def stages_of(pipeline: Pipeline) -> list[str]:
    """Every stage of a batch that may commit something, as in `Published.commits`."""
    kinds: dict[tuple[str, ...], Iterable[str]] = {
        ("changes", "quarantine"): pipeline.tables,
        ("records", "quarantine"): pipeline.streams,
        ("subscription_log", "response_log", "changelog", "joined"): pipeline.foreign_key_joins,
        ("late", "joined"): pipeline.stream_joins,
    }
    return [f"{kind}/{name}" for of, names in kinds.items() for name in names for kind in of]


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
