"""What shaped a lake: the configuration must still say it, for what is there was built with it."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from orchestration.config import Pipeline
from orchestration.config.problems import Problem
from orchestration.kept_joins import kept_joins
from orchestration.rebuilding import rebuild_command
from storage.errors import ConfigurationChanged
from storage.journal import Journal
from storage.plan import Plan

_CHANGEABLE = {"tombstone_retention", "on_truncate", "changelog", "late"}
"""Settings that are part of what a pipeline means, and of nothing that is in its lake already."""


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
            f", or, where columns were added or widened: `lakejoin migrate {pipeline.path}`"
            if setting == "columns"
            else ""
        )
    other = ", give the join another name"
    return (
        f"{other}, or compute it anew: {rebuild_command(pipeline, name)}"
        if name in pipeline.foreign_key_joins
        else other
    )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those of the source as `source.NAME`."""
    source = {f"source.{name}": value for name, value in settings.get("source", {}).items()}
    return {name: value for name, value in settings.items() if name != "source"} | source


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
