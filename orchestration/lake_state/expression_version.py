"""Checks by which specification the expressions of a lake were read: the program changes it, no configuration says it.

The specification is what `transforms.model.sql_settings` pins. By the first one Spark put the values of its settings,
of Java's properties and of environment variables in the place of `${…}`; by the second one that is text. All other
expressions mean the same by both, so a lake without such a text is read on by any version.
"""

from collections.abc import Collection

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.problems import Problem
from lakejoin.orchestration.lake_state.active_joins import rebuild_command
from lakejoin.storage.lake.plan import Plan

SETTING = "expression_specification"
FIRST = "1"
"""The specification of the plans that do not say it."""
SPECIFICATION = 2
"""Number of the rules; whoever changes what is pinned says here which expressions mean something else by it."""
_VARIABLE = "${"
_NOW = f"this version of Lakejoin reads `{_VARIABLE}…}}` as text"


def of_joins(pipeline: Pipeline) -> dict[str, str]:
    """The specification of the joins on whose foreign keys it has a bearing, by names as `shapes_of` has them."""
    return {
        f"joins/{name}/{SETTING}": str(SPECIFICATION)
        for name in pipeline.declared_joins
        if any(_VARIABLE in text for _, _, texts in pipeline.foreign_keys(name) for text in texts)
    }


def of_inputs(pipeline: Pipeline) -> dict[str, str]:
    """The specification of the streams on whose conditions it has a bearing, by names as `readings_of` has them."""
    return {
        f"streams/{name}/{SETTING}": str(SPECIFICATION)
        for name, stream in pipeline.streams.items()
        if stream.where is not None and _VARIABLE in stream.where
    }


def expressions_of(place: str) -> set[str]:
    """The settings that may hold the expressions of a specification; where one changed, too, saying that is enough."""
    kind, name, _ = place.split("/")
    return {
        f"{kind}/{name}/{setting}"
        for setting in (("foreign_key", "rights") if kind == "joins" else ("where",))
    }


def changed_join(pipeline: Pipeline, plan: Plan, place: str, anew: Collection[str]) -> Problem:
    """The message for a join that was built by another specification; `anew`: all joins that begin anew."""
    _, name, _ = place.split("/")
    other = (
        f"compute it anew: {rebuild_command(pipeline, anew)}"
        if name in pipeline.rebuildable
        else "give the join another name"
    )
    return pipeline.problem(
        ("joins", name, "foreign_key"),
        f"{_NOW}, and the join in {pipeline.lake} was, until batch {plan.batch}, built with what Spark put in its "
        f"place; {other}, or go on with version {plan.code} of Lakejoin, which planned that batch",
    )


def changed_batch(pipeline: Pipeline, plan: Plan, place: str) -> Problem:
    """The message for a stream in a batch that was begun by another specification."""
    kind, name, _ = place.split("/")
    return pipeline.problem(
        (kind, name, "where"),
        f"{_NOW}, and batch {plan.batch}, of which a part is committed, was begun with what Spark put in its place; "
        f"finish it with version {plan.code} of Lakejoin, which planned it: `lakejoin run {pipeline.path}`",
    )
