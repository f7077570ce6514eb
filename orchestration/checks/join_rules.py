"""Says which rules the joins of each kind are held to, and which frames these read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from expectations.keys import Kind, stream_kind
from expectations.validation import Asset
from orchestration.checks.group_frames import ROWS, group_assets
from orchestration.checks.join_frames import Scope, join_assets
from orchestration.checks.time_frames import BATCHES, stream_join_assets
from orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin


@dataclass(frozen=True)
class JoinRules:
    """What is checked of the joins of one kind."""

    kinds: Callable[[Any], Mapping[str, Kind]]
    """The kinds that the rules of the result go by, by what stands after the name of the join: each right side of a
    star, the rows of groups, else nothing."""
    of_buffer: tuple[str, Kind] | None
    """What else is checked where rows wait: how it is called after the join, and the kind its rules go by."""
    assets: Callable[[Pipeline, str, Scope], list[Asset]]
    """The frames of a join's rules."""
    touched: tuple[str, ...]
    """Counts of a batch that say how many rows of the join it touched."""


def _of_tables(kinds: Callable[[Any], Mapping[str, Kind]]) -> JoinRules:
    return JoinRules(kinds, of_buffer=None, assets=join_assets, touched=("subscriptions", "answers"))


JOIN_RULES: Mapping[type[AnyJoin], JoinRules] = {
    Join: _of_tables(lambda join: {"": join.how}),
    Star: _of_tables(lambda join: {f".{side}": right.how for side, right in join.rights.items()}),
    StreamJoin: JoinRules(
        kinds=lambda join: {"": stream_kind(join.how, condition=join.where is not None)},
        of_buffer=(BATCHES, "batches"),
        assets=stream_join_assets,
        touched=("received", "released"),
    ),
    Group: JoinRules(
        kinds=lambda _: {"": "groups", ROWS: "members"},
        of_buffer=None,
        assets=group_assets,
        touched=("subscriptions", "emissions"),
    ),
}
