"""Says which kinds of joins a batch works off, in their order, and what it asks of each."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from lakejoin.expectations.keys import Kind
from lakejoin.orchestration.batch.context import Batch, JoinResults
from lakejoin.orchestration.batch.joins.gate import JOIN_COUNTS
from lakejoin.orchestration.batch.joins.groups import GROUP_COUNTS
from lakejoin.orchestration.batch.joins.stage import ForeignKeyJoins
from lakejoin.orchestration.batch.streams.stage import StreamJoins
from lakejoin.orchestration.batch.streams.stream_join_batch import STREAM_JOIN_COUNTS
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.config import AnyJoin, Group, Join, Star, StreamJoin
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec


def gated_kinds(spec: ResultSpec) -> set[Kind]:
    """The kinds that the rules of a gate go by."""
    if isinstance(spec, GroupSpec):
        return {"totals" if spec.adjusts else "members"}
    return {part.how for part in spec.parts}


class JoinStage(Protocol):
    """The joins of one kind in a batch."""

    def begin(self) -> None:
        """Begin what needs no table of the batch: to read other sources, to open what is committed to."""

    def join(self, tables: Mapping[str, TableBatch]) -> list[Future[None]]:
        """Run the joins upon the tables, and begin to commit their logs; return these commits."""

    def commit_joined(self, ready: Callable[[], None]) -> None:
        """Change each joined table in one commit, once `ready` returns: then all logs of the batch are committed."""

    def results(self) -> JoinResults:
        """What the joins did."""


@dataclass(frozen=True)
class JoinKind:
    """How a batch works off the joins of one kind."""

    stage: Callable[[Batch, ThreadPoolExecutor], JoinStage]
    counts: tuple[str, ...]
    """What a batch counts of each join."""
    gated: bool
    """Whether the rules of a joined table (`expectations.rules`) are held before each commit to it."""


JOIN_STAGES: Mapping[type[AnyJoin], JoinKind] = {
    Join: JoinKind(ForeignKeyJoins, JOIN_COUNTS, gated=True),
    Star: JoinKind(ForeignKeyJoins, JOIN_COUNTS, gated=True),
    StreamJoin: JoinKind(StreamJoins, STREAM_JOIN_COUNTS, gated=False),
    Group: JoinKind(ForeignKeyJoins, GROUP_COUNTS, gated=True),
}
