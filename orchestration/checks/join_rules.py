"""Says which rules the joins of each kind are held to, and which frames these read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakejoin.expectations.keys import Kind, stream_kind
from lakejoin.expectations.validation import Asset
from lakejoin.orchestration.checks.group_frames import ROWS, group_assets
from lakejoin.orchestration.checks.join_frames import Scope, join_assets
from lakejoin.orchestration.checks.time_frames import BATCHES, stream_join_assets
from lakejoin.orchestration.checks.version_frames import HISTORY
from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.transforms.foreign_key_join.history import by_event_time
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec


@dataclass(frozen=True)
class JoinRules:
    """What is checked of the joins of one kind."""

    kinds: Callable[[ResultSpec], Mapping[str, Kind]]
    """The kinds that the rules of the result go by, by what stands after the name of the join: each right side of a
    star, the rows of groups, the history, else nothing."""
    of_buffer: tuple[str, Kind] | None
    """What else is checked where rows wait: how it is called after the join, and the kind its rules go by."""
    assets: Callable[[Pipeline, str, Scope], list[Asset]]
    """The frames of a join's rules, but for those of its history."""
    touched: tuple[str, ...]
    """Counts of a batch that say how many rows of the join it touched."""


def _of_sides(spec: ResultSpec) -> Mapping[str, Kind]:
    sides: dict[str, Kind] = {f".{part.side}" if part.side else "": part.how for part in spec.parts}
    return sides | _of_history(spec)


def _of_history(spec: ResultSpec) -> dict[str, Kind]:
    if spec.history is None:
        return {}
    return {HISTORY: "event_versions" if by_event_time(spec) else "versions"}


def _of_stream(spec: ResultSpec) -> Mapping[str, Kind]:
    (part,) = spec.parts
    return {"": stream_kind(part.how, condition=spec.where is not None)}


def _of_groups(spec: ResultSpec) -> Mapping[str, Kind]:
    found: dict[str, Kind] = {"": "groups"}
    if not (isinstance(spec, GroupSpec) and spec.adjusts):
        found[ROWS] = "members"
    return found | _of_history(spec)


_OF_TABLES = JoinRules(_of_sides, of_buffer=None, assets=join_assets, touched=("subscriptions", "answers"))


JOIN_RULES: Mapping[type[AnyJoin], JoinRules] = {
    Join: _OF_TABLES,
    Star: _OF_TABLES,
    StreamJoin: JoinRules(
        kinds=_of_stream,
        of_buffer=(BATCHES, "batches"),
        assets=stream_join_assets,
        touched=("received", "released"),
    ),
    Group: JoinRules(
        kinds=_of_groups,
        of_buffer=None,
        assets=group_assets,
        touched=("subscriptions", "emissions"),
    ),
}
