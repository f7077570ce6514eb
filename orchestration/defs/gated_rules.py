"""Says which rules the gates of batches have judged, so that nothing need be read to know that they hold."""

from lakejoin.orchestration.batch.join_stages import JOIN_STAGES, gated_kinds
from lakejoin.orchestration.checks.join_rules import JOIN_RULES
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal


def judged_by_gates(pipeline: Pipeline, journal: Journal, first: int) -> set[str]:
    """The names, as `check_lake` has them, whose rules the gates of all batches from `first` on have found to hold.

    None where somebody let a batch pass in spite of a rule: then it is not known which rows offend it.
    """
    if any(batch.accepted for batch in journal.published[first - 1 :]):
        return set()
    return {
        name + after
        for name, join in pipeline.joins.items()
        if JOIN_STAGES[type(join)].gated and name in journal.kept
        for after, kind in JOIN_RULES[type(join)].kinds(pipeline.spec_of_join(name)).items()
        if kind in gated_kinds(pipeline.spec_of_join(name))
    }
