"""Says what Dagster shows of the joins of each kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.orchestration.defs import foreign_key_assets, group_assets, stream_join_assets
from lakejoin.orchestration.defs.time_asset_specs import Columns


@dataclass(frozen=True)
class JoinAssets:
    """What Dagster shows of the joins of one kind; of a step by the name of what has it, and its own."""

    steps: Callable[[Pipeline, str], list[tuple[str, str, str]]]
    """The steps of a join: the name of what has it (the join, or its join with one right side), the step, and the table
    below the lake that stands for it."""
    upstream: Callable[[Pipeline, str, str], list[tuple[str, str]]]
    """What a step reads, as names and steps."""
    description: Callable[[Pipeline, str, str], str]
    columns: Callable[[Pipeline, str, str], Columns]


JOIN_ASSETS: Mapping[type[AnyJoin], JoinAssets] = {
    kind: JoinAssets(module.steps, module.upstream, module.description, module.columns)
    for kind, module in (
        (Join, foreign_key_assets),
        (Star, foreign_key_assets),
        (StreamJoin, stream_join_assets),
        (Group, group_assets),
    )
}
