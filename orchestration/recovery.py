"""Before a run: the state must fit the plan, and the configuration the state."""

import hashlib
import json

from orchestration.config import Pipeline
from storage.errors import ConfigurationChanged, LakeInconsistent
from storage.lake import Lake
from storage.plan import Journal


def check_progress(lake: Lake, journal: Journal) -> None:
    """Hold each table's own transaction identifier against what was published.

    A stage has committed the batch that the last publication says, or the one under way; anything else means that
    the table was restored, lost or written by somebody else. Raises `LakeInconsistent`.
    """
    published = journal.last
    under_way = {journal.unfinished.batch} if journal.unfinished else set()
    for stage, batch in (published.commits if published else {}).items():
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
    """For each table and join, a fingerprint of what its state was made with."""
    tables = {
        f"tables/{name}": _fingerprint(
            [t.spec.columns.simpleString(), t.spec.key, t.spec.sequence.simpleString()]
        )
        for name, t in pipeline.tables.items()
    }
    joins = {}
    for name in pipeline.joins:
        spec = pipeline.join_spec(name)
        joins[f"joins/{name}"] = _fingerprint(
            [spec.left, spec.right, spec.columns.simpleString(), spec.foreign_key, spec.how]
        )
    return tables | joins


def check_shapes(pipeline: Pipeline, journal: Journal) -> None:
    """Refuse a configuration that the state was not built with. Raises `ConfigurationChanged`."""
    before = journal.plans[-1].shapes if journal.plans else {}
    changed = [name for name, shape in shapes_of(pipeline).items() if before.get(name, shape) != shape]
    if changed:
        raise ConfigurationChanged(
            f"{pipeline.path}: {', '.join(sorted(changed))} changed (keys, columns, sequence, foreign key, sides or "
            f"kind of join) since batch {journal.plans[-1].batch}, and the state in {pipeline.lake} was built with "
            "the former. Undo the change, give the changed join another name, or point `lake` at a new directory."
        )


def _fingerprint(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
