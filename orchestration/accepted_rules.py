"""Rules of the gate that a run may violate, by name, whoever starts it: the command line or Dagster."""

from collections.abc import Collection

from expectations.rules import rules_for
from orchestration.config import Pipeline
from orchestration.errors import unknown


def check_accepted(pipeline: Pipeline, names: Collection[str]) -> None:
    """Refuse a mistyped rule at once, and not after the batch that it should have let pass.

    Raises `WrongUsage` for a name that is no rule of any declared join of tables, which are those that have a gate.
    """
    kinds = {join.how for join in pipeline.foreign_key_joins.values()}
    known = sorted({rule.name for kind in kinds for rule in rules_for(kind)})
    for name in names:
        if name not in known:
            raise unknown("rule", name, known)
