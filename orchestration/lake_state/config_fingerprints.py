"""Compares the configuration with what the lake was built with, by fingerprints of each setting that matters."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from types import ModuleType
from typing import Any

from lakejoin.orchestration.config import Group, Pipeline
from lakejoin.orchestration.config.problems import KeyPath, Problem
from lakejoin.orchestration.lake_state import expression_version, hash_version
from lakejoin.orchestration.lake_state.active_joins import kept_joins, rebuild_command
from lakejoin.orchestration.lake_state.inventory import JOINS_IN_LAKE
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.plan import Plan

_CHANGEABLE: Mapping[str, frozenset[str]] = {
    "tables": frozenset({"tombstone_retention", "on_truncate", "where"}),
    "streams": frozenset({"where"}),
    "joins": frozenset().union(*[kind.changeable for kind in JOINS_IN_LAKE.values()]),
    "groups": frozenset(JOINS_IN_LAKE[Group].changeable),
}
"""Settings that count for future batches only, and leave what is in the lake as it is."""
_SINCE = {"select", "where"}
"""Settings of joins that plans of earlier versions do not say: then they were not given."""
_KINDS = (
    ("tables", "key"),
    ("streams", "key"),
    *[("groups" if kind is Group else "joins", kind.told_by) for kind in JOINS_IN_LAKE],
)
"""What can be declared by a name, each with a setting that all of its kind have and nothing else of that name has."""
_PROGRAM: Mapping[str, ModuleType] = {rules.SETTING: rules for rules in (hash_version, expression_version)}
"""What the program decides and no configuration says, by the name that a plan has for it."""


def shapes_of(pipeline: Pipeline) -> dict[str, str]:
    """Fingerprints of what the state is made with, by names such as `tables/T/key` and `joins/J/foreign_key`.

    What says only how a run goes on (retention, limits, the answer to a truncate event) may change and has none.
    """
    return {
        f"{kind}/{name}/{setting}": _fingerprint(value)
        for kind in ("tables", "streams", "joins", "groups")
        for name, settings in pipeline.shape.get(kind, {}).items()
        for setting, value in _flat(settings).items()
        if setting not in _CHANGEABLE[kind]
    } | _merged([_ways_of_groups(pipeline), *[rules.of_joins(pipeline) for rules in _PROGRAM.values()]])


def state_versions(pipeline: Pipeline, plan: Plan | None = None) -> dict[str, str]:
    """Fingerprints of all that the state of each table, stream and join is made with: now, or by a plan.

    That of the plan is the present one just where `check_shapes` has nothing to say of it.
    """
    shapes = shapes_of(pipeline)
    return {name: _state_version(shapes, name, plan) for name in (*pipeline.inputs, *pipeline.joins)}


def _state_version(shapes: Mapping[str, str], name: str, plan: Plan | None) -> str:
    made = {place: value for place, value in shapes.items() if place.split("/")[1] == name}
    if plan is not None:
        changed = {place for place in _different(made, plan) if place in made}
        others = [place for place in _other_kinds(plan, shapes) if place.split("/")[1] == name]
        then = {place: plan.shapes.get(place, _unsaid(place, made[place])) for place in changed}
        made = made | then | dict.fromkeys(others, "")
    # what is not declared says nothing, so a setting that a later version adds changes no fingerprint
    return _fingerprint(
        sorted((place, value) for place, value in made.items() if value != _fingerprint(None))
    )


def _ways_of_groups(pipeline: Pipeline) -> dict[str, str]:
    """Whether groups are adjusted: it follows from types, too, and groups that are have no log to go on with."""
    return {
        f"groups/{name}/adjusts": _fingerprint(pipeline.group_spec(name).adjusts) for name in pipeline.groups
    }


def readings_of(pipeline: Pipeline) -> dict[str, str]:
    """Fingerprints of the settings by which records are read, checked and kept, by names like those of `shapes_of`.

    They may change between batches but not within one, of which a part may be committed already.
    """
    settings: dict[str, Any] = {}
    for name, table in pipeline.tables.items():
        retention = table.versioned and table.versioned.history_retention
        settings[f"tables/{name}/versioned.history_retention"] = str(retention)
        settings[f"tables/{name}/on_truncate"] = table.on_truncate
    for name, read in pipeline.inputs.items():
        kind = pipeline.section_of(name)
        settings[f"{kind}/{name}/where"] = read.where
        settings[f"{kind}/{name}/source.limits"] = [read.source.limits.line, read.source.limits.depth]
        settings[f"{kind}/{name}/columns.as"] = dict(read.parse_options.encodings)
        settings[f"{kind}/{name}/columns.from"] = read.names_in_source
        for setting in ("mode", "tables", "absent", "snapshots", "infinity"):
            settings[f"{kind}/{name}/source.{setting}"] = getattr(read.source, setting)
        settings[f"{kind}/{name}/source.epochs"] = read.parse_options.epochs
        if read.source.csv is not None:
            dialect = asdict(read.source.dialect)
            settings |= {f"{kind}/{name}/source.csv.{setting}": value for setting, value in dialect.items()}
        settings[f"{kind}/{name}/source.op"] = asdict(read.source.row_op)
        settings[f"{kind}/{name}/max_future"] = str(read.max_future)
    for name, join in pipeline.joins.items():
        said = join.model_dump(mode="json", include=set(JOINS_IN_LAKE[type(join)].changeable))
        settings |= {
            f"{pipeline.section_of(name)}/{name}/{setting}": value for setting, value in said.items()
        }
    fingerprints = {name: _fingerprint(value) for name, value in settings.items()}
    return fingerprints | _merged(rules.of_inputs(pipeline) for rules in _PROGRAM.values())


def kept_history(pipeline: Pipeline, journal: Journal, name: str, through: int) -> bool:
    """Whether the last batch up to one, apart from those that were given up, was planned with a history of a result."""
    plans = [
        plan
        for plan, done in zip(journal.plans[:through], journal.published, strict=False)
        if done.kind != "abandoned"
    ]
    said = plans[-1].shapes.get(f"{pipeline.section_of(name)}/{name}/history") if plans else None
    return said not in {None, _fingerprint(None)}


def check_readings(pipeline: Pipeline, plan: Plan, done: Collection[str]) -> None:
    """Refuse to finish a batch with other settings than it began with. `done`: its stages that committed something.

    Raises `ConfigurationChanged`.
    """
    changed = _different(readings_of(pipeline), plan)
    begun = {stage.split("/")[1] for stage in done}
    wrong = [name for name in changed if begun & _reached(pipeline, name.split("/")[1])]
    if wrong:
        told = (
            f"changed since batch {plan.batch} was begun, of which a part is committed and the rest is not; undo the "
            f"change, `lakejoin run {pipeline.path}`, then change it, or give the batch up: "
            f"`lakejoin repair {pipeline.path} --replan`"
        )
        problems = [
            rules.changed_batch(pipeline, plan, name)
            if (rules := _rules_of(name))
            else pipeline.problem(_path(name), told)
            for name in wrong
        ]
        raise ConfigurationChanged(*map(str, problems))


def _reached(pipeline: Pipeline, name: str) -> set[str]:
    """What a declaration has an effect on: itself, and every join that reads it, over another join, too."""
    found = {name}
    for join in pipeline.joins:  # sides come first
        if pipeline.spec_of_join(join).reads & found:
            found.add(join)
    return found


def check_shapes(
    pipeline: Pipeline, journal: Journal, rebuilt: Collection[str] = (), migrated: Collection[str] = ()
) -> None:
    """Refuse a configuration that the state was not built with, except for joins that begin anew.

    `migrated`: settings that may differ. Raises `ConfigurationChanged`.
    """
    changed = [name for name in changed_shapes(pipeline, journal, rebuilt) if name not in migrated]
    if changed:
        raise _refusal(pipeline, journal.plans[-1], changed, rebuilt)


def changed_shapes(pipeline: Pipeline, journal: Journal, rebuilt: Collection[str] = ()) -> list[str]:
    """Return the settings that the state was not built with, by names as `shapes_of` has them."""
    if not journal.plans:
        return []
    kept = {*pipeline.inputs, *kept_joins(pipeline, journal)} - set(rebuilt)
    return _changed(pipeline, journal.plans[-1], kept)


def check_shape(pipeline: Pipeline, snapshot: Plan, name: str) -> None:
    """Refuse to read a table or join that was made with another configuration, whatever the program's own rules were.

    Raises `ConfigurationChanged`.
    """
    names = {name}
    for join in reversed(pipeline.joins):  # right and left sides of a join come before it
        if join in names:
            names |= pipeline.spec_of_join(join).reads
    changed = [place for place in _changed(pipeline, snapshot, names) if not _rules_of(place)]
    if changed:
        raise _refusal(pipeline, replace(snapshot, batch=snapshot.batch - 1), changed)


def _changed(pipeline: Pipeline, plan: Plan, names: Collection[str]) -> list[str]:
    """Settings of tables and joins that are not what a plan says of them."""
    shapes = shapes_of(pipeline)
    changed = [*_other_kinds(plan, shapes), *_different(shapes, plan)]
    return [name for name in changed if name.split("/")[1] in names]


def _different(settings: Mapping[str, str], plan: Plan) -> list[str]:
    """Those settings that are not what a plan says; most of what it does not say is as it was."""
    changed = [name for name, now in settings.items() if plan.shapes.get(name, _unsaid(name, now)) != now]
    return [
        name
        for name in changed
        if _rules_of(name) is not expression_version
        or expression_version.expressions_of(name).isdisjoint(changed)
    ]


def _unsaid(name: str, now: str) -> str:
    """What a setting was that a plan does not say; `now`: what it is."""
    kind, _, setting = name.split("/")
    if kind == "joins" and setting in _SINCE:
        return _fingerprint(None)
    rules = _rules_of(name)
    return str(rules.FIRST) if rules else now


def _rules_of(place: str) -> ModuleType | None:
    """What says by which of the program's own rules something was made; None for a setting of the configuration."""
    return _PROGRAM.get(place.rpartition("/")[2])


def _other_kinds(plan: Plan, shapes: Mapping[str, str]) -> list[str]:
    """What is declared by a name that was something else before, as `tables/NAME/`."""
    then, now = (
        {(name, kind, setting) for kind, setting in _KINDS for name in _names(kind, setting, found)}
        for found in (plan.shapes, shapes)
    )
    known = {name for name, _, _ in then}
    return [f"{kind}/{name}/" for name, kind, _ in sorted(now - then) if name in known]


def _names(kind: str, setting: str, shapes: Mapping[str, str]) -> list[str]:
    places = [place.split("/") for place in shapes]
    return [name for of, name, what in places if (of, what) == (kind, setting)]


def _refusal(
    pipeline: Pipeline, plan: Plan, changed: Collection[str], rebuilt: Collection[str] = ()
) -> ConfigurationChanged:
    """`rebuilt`: joins that begin anew beside; a command that names only others would be refused for these."""
    anew = {*rebuilt, *(name.split("/")[1] for name in changed)} & pipeline.rebuildable.keys()
    return ConfigurationChanged(*[str(_problem(pipeline, plan, name, anew)) for name in changed])


def _problem(pipeline: Pipeline, plan: Plan, changed: str, anew: Collection[str]) -> Problem:
    if rules := _rules_of(changed):
        told: Problem = rules.changed_join(pipeline, plan, changed, anew)
        return told
    kind, name, setting = changed.split("/")
    ways = f"point `lake` at a new directory{_ways_for(pipeline, kind, name, setting, anew)}"
    what = "changed since" if setting else "was declared as something else until"
    return pipeline.problem(
        _path(changed),
        f"{what} batch {plan.batch}, and the state in {pipeline.lake} was built with what it was "
        f"before; undo the change, {ways}",
    )


def _path(setting: str) -> KeyPath:
    kind, name, rest = setting.split("/")
    return (kind, name, *filter(None, rest.split(".")))


def _ways_for(pipeline: Pipeline, kind: str, name: str, setting: str, anew: Collection[str]) -> str:
    if kind not in {"joins", "groups"}:
        migrated = f", or, where columns were added or widened: `lakejoin migrate {pipeline.path}`"
        dated = ", or take a path that has a `{date}` if the former one had it, and only then"
        return {"columns": migrated, "source.path": dated, "": ", or give it another name"}.get(setting, "")
    other = ", give the join another name"
    return (
        f"{other}, or compute it anew: {rebuild_command(pipeline, anew)}"
        if name in pipeline.rebuildable
        else other
    )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those of the source as `source.NAME`."""
    source = {f"source.{name}": value for name, value in settings.get("source", {}).items()}
    return {name: value for name, value in settings.items() if name != "source"} | source


def _merged(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {name: value for part in parts for name, value in part.items()}


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
