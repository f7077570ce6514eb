"""Checks by which specification the hashes of a lake were made: the program changes it, no configuration says it.

A join compares hashes of its tables' rows only with these rows' own hashes, and makes the hashes of its result anew. So
with another specification a join begins anew, and the rows of its tables keep the hashes that they have until they
change.
"""

from collections.abc import Collection

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.problems import Problem
from lakejoin.orchestration.lake_state.active_joins import rebuild_command
from lakejoin.storage.lake.plan import Plan
from lakejoin.transforms.model import hashing

SETTING = "hash_specification"
FIRST = "1"
"""The specification of the plans that do not say it."""


def of_joins(pipeline: Pipeline) -> dict[str, str]:
    """The specification that joins which can begin anew are kept with, by names as `shapes_of` has them."""
    return {f"joins/{name}/{SETTING}": _now() for name in pipeline.rebuildable}


def of_inputs(pipeline: Pipeline) -> dict[str, str]:
    """The specification that records are read with, by names as `readings_of` has them."""
    kinds = (("tables", list(pipeline.tables)), ("streams", list(pipeline.streams)))
    return {f"{kind}/{name}/{SETTING}": _now() for kind, names in kinds for name in names}


def changed_join(pipeline: Pipeline, plan: Plan, place: str, anew: Collection[str]) -> Problem:
    """The message for a join that was kept with another specification; `anew`: all joins that begin anew."""
    _, name, _ = place.split("/")
    return pipeline.problem(
        (pipeline.section_of(name), name),
        f"this version of Lakejoin makes hashes by specification {_now()}, and the join in {pipeline.lake} has, as of "
        f"batch {plan.batch}, those of specification {plan.shapes.get(place, FIRST)}; compute it anew: "
        f"{rebuild_command(pipeline, anew)}, or go on with version {plan.code} of Lakejoin, which planned that batch",
    )


def changed_batch(pipeline: Pipeline, plan: Plan, place: str) -> Problem:
    """The message for a table or stream in a batch that was begun with another specification."""
    kind, name, _ = place.split("/")
    return pipeline.problem(
        (kind, name),
        f"this version of Lakejoin makes hashes by specification {_now()}, and batch {plan.batch}, of which a part is "
        f"committed, was begun with specification {plan.shapes.get(place, FIRST)}; finish it with version {plan.code} "
        f"of Lakejoin, which planned it: `lakejoin run {pipeline.path}`",
    )


def _now() -> str:
    return str(hashing.HASH_SPECIFICATION)
