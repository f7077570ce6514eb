"""Runs the foreign-key joins and groups of a batch, and commits them: logs first, joined tables last."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from lakejoin.orchestration.batch.context import Batch, GateResult, JoinResults
from lakejoin.orchestration.batch.first_load import write_join
from lakejoin.orchestration.batch.joins.event_history import commit_event_history, settled_after
from lakejoin.orchestration.batch.joins.gate import WaysOut, counts_of_nothing, counts_of_sides, judge
from lakejoin.orchestration.batch.joins.groups import GROUP_COUNTS, judge_groups
from lakejoin.orchestration.batch.joins.history import commit_history
from lakejoin.orchestration.batch.joins.sides import (
    left_bootstrap,
    left_join,
    left_table,
    right_groups,
    right_table,
)
from lakejoin.orchestration.batch.joins.ways_out import ways_out
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.batch.uncomputed import Uncomputed
from lakejoin.storage.delta_table.commits import begin
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.lake.layout import changelog_of, joined_of, response_log_of, subscription_log_of
from lakejoin.storage.spark.kept_frames import fits_one_task
from lakejoin.storage.state.joined_table import apply_emissions, create_joined
from lakejoin.transforms.foreign_key_join.batch import JoinBatch, Left, Right
from lakejoin.transforms.foreign_key_join.emissions import changelog_rows, with_joined_hash
from lakejoin.transforms.foreign_key_join.history import by_event_time
from lakejoin.transforms.foreign_key_join.join import join_batch
from lakejoin.transforms.groups.batch import GroupBatch, group_batch
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.join_sides import of_result
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.specs import JoinSpec


class ForeignKeyJoins:
    """The foreign-key joins and groups of a batch, in their order: each runs after what it reads."""

    def __init__(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        self._batch, self._pool = batch, pool
        declared = batch.pipeline.kept_by_key
        self._names = [name for name in batch.plan.joins if name in declared]
        self._begun: dict[str, Future[DeltaTransaction]] = {}
        self._joins: dict[str, JoinBatch | GroupBatch] = {}
        self._gate_results: dict[str, GateResult] = {}
        self._tables: Mapping[str, TableBatch] = {}

    def begin(self) -> None:
        """Begin the commits to the joined tables that are there, while the sources are read."""
        for name in self._names:
            if joined_of(name) in self._batch.plan.versions:
                path = self._batch.lake.path(joined_of(name))
                self._begun[name] = self._pool.submit(begin, self._batch.spark, path)

    def join(self, tables: Mapping[str, TableBatch]) -> list[Future[None]]:
        """Run each join, and let its messages and answers follow its gate."""
        self._tables = tables
        logs: list[Future[None]] = []
        for name in self._names:
            spec = self._batch.pipeline.keyed_spec(name)
            with self._batch.jobs_of(f"join/{name}"):
                join, gate_result = self._run(spec, tables)
            self._joins[name], self._gate_results[name] = join, gate_result
            logs += commit_logs(self._batch, self._pool, join, gate_result)
        return logs

    def commit_joined(self, ready: Callable[[], None]) -> None:
        """Change each joined table in one commit, once `ready` returns."""
        histories = [
            self._history(join, self._gate_results[name], ready)
            for name, join in self._joins.items()
            if join.spec.history is not None
        ]
        for name, join in self._joins.items():
            commit_joined(self._batch, join, self._gate_results[name], ready, self._begun.get(name))
        for history in histories:
            history.result()

    def _history(
        self, join: JoinBatch | GroupBatch, gate_result: GateResult, ready: Callable[[], None]
    ) -> Future[None]:
        """Let the history of a result follow its logs."""
        if isinstance(join, JoinBatch) and by_event_time(join.spec):
            batch, tables = self._batch, self._tables
            return self._pool.submit(commit_event_history, batch, join.spec, tables, gate_result, ready)
        return self._pool.submit(commit_history, self._batch, join, gate_result, ready)

    def results(self) -> JoinResults:
        """What the gates counted, and until when histories by event time are settled."""
        counts = dict[str, Mapping[str, int]]()
        for name, join in self._joins.items():
            found = self._gate_results[name].result()
            of_group = isinstance(join, GroupBatch)
            counts |= {name: found} if of_group else counts_of_sides(join.spec, found)
        settled = {
            name: settled_after(self._batch, join.spec, self._tables)
            for name, join in self._joins.items()
            if by_event_time(join.spec)
        }
        return JoinResults(counts, settled=settled)

    def _group(self, group: GroupSpec, tables: Mapping[str, TableBatch]) -> tuple[GroupBatch, GateResult]:
        """Bring groups up to date and start their gate."""
        batch = self._batch
        left = self._left(group, tables, ())
        batch.frames.expect(left.changed)
        result = group_batch(group, left, batch.state, batch.frames)
        if not left.changed:
            return result, _of_nothing(dict.fromkeys(GROUP_COUNTS, 0))
        joins = {**self._joins, group.name: result}
        return result, self._gated(judge_groups, result, partial(ways_out, batch, joins, tables, group.name))

    def _gated(self, judged: Callable[..., dict[str, int]], result: Any, ways: WaysOut) -> GateResult:
        """Begin what judges a result. Where many rows are judged, what follows would only take its processors."""
        gate_result = self._pool.submit(_judged, judged, self._batch, result, ways)
        if not self._batch.frames.small:
            gate_result.result()
        return gate_result

    def _run(
        self, join: ResultSpec, tables: Mapping[str, TableBatch]
    ) -> tuple[JoinBatch | GroupBatch, GateResult]:
        """Run a join on its sides and start its gate; return both, the gate result perhaps still to come."""
        if isinstance(join, GroupSpec):
            return self._group(join, tables)
        batch = self._batch
        rights = [self._right(part, tables) for part in join.parts]
        left = self._left(join, tables, rights)
        most = max(left.changed, *[right.changed for right in rights])
        batch.frames.expect(most)
        result = join_batch(join, left, rights, batch.state, batch.frames)
        if not most:
            return result, _of_nothing(counts_of_nothing(join))
        result = write_join(batch, self._pool, result, left.changed)
        joins = {**self._joins, join.name: result}
        return result, self._gated(judge, result, partial(ways_out, batch, joins, tables, join.name))

    def _right(self, part: JoinSpec, tables: Mapping[str, TableBatch]) -> Right:
        batch, groups = self._batch, self._joins.get(part.right)
        if not isinstance(groups, GroupBatch):
            return right_table(part, tables[part.right], batch.state, batch.frames)
        return right_groups(part, groups, self._gate_results[part.right].result(), batch.state, batch.frames)

    def _left(self, join: ResultSpec, tables: Mapping[str, TableBatch], rights: Sequence[Right]) -> Left:
        batch = self._batch
        if join.left in self._joins:
            bootstrapped = join.name in batch.plan.bootstrap and join.left not in batch.plan.bootstrap
            if not bootstrapped:
                counts = self._gate_results[join.left].result()
                return left_join(join, self._joins[join.left], counts, batch.state, batch.frames)
            source = batch.pipeline.keyed_spec(join.left)
            rows = of_result(with_joined_hash(batch.state.joined(source), join.left_columns))
            return _bootstrap(batch, join, rows)
        if join.name in batch.plan.bootstrap:
            rows = batch.state.all_rows(batch.pipeline.tables[join.left].spec)
            return _bootstrap(batch, join, rows)
        return left_table(join, tables[join.left], rights, batch.state, batch.frames)


def _of_nothing(counts: dict[str, int]) -> GateResult:
    """The gate of what nothing happened to."""
    unchanged: GateResult = Future()
    unchanged.set_result(counts)
    return unchanged


def _judged(
    judged: Callable[..., dict[str, int]], batch: Batch, result: JoinBatch | GroupBatch, ways: WaysOut
) -> dict[str, int]:
    with batch.stage(f"join/{result.spec.name}"):
        asked = (Uncomputed.keys(batch, result.spec.name), Uncomputed.results(batch, result.spec))
        return judged(result, batch.accept, batch.frames, ways, asked)


def _bootstrap(batch: Batch, join: ResultSpec, rows: DataFrame) -> Left:
    count = rows.count()
    batch.frames.expect(count)
    return left_bootstrap(join, rows, count, batch.frames)


def _messages(join: JoinBatch | GroupBatch) -> list[tuple[str, str, DataFrame, str]]:
    """The logs of what the sides told each other: stage, table, rows, and which count says how many."""
    if isinstance(join, GroupBatch):
        name = join.spec.name
        log = [] if join.log is None else [join.log]
        return [
            (f"subscription_log/{name}", subscription_log_of(name), rows, "subscriptions") for rows in log
        ]
    logs = []
    for messages in join.messages:
        spec = messages.spec
        logs += [
            (f"subscription_log/{spec.name}", subscription_log_of(spec.name), messages.log,
             spec.of_side("subscriptions")),
            (f"response_log/{spec.name}", response_log_of(spec.name), messages.responses,
             spec.of_side("answers")),
        ]  # fmt: skip
    return logs


def commit_logs(
    batch: Batch, pool: ThreadPoolExecutor, join: JoinBatch | GroupBatch, gate_result: GateResult
) -> list[Future[None]]:
    """Commit a join's messages and answers, and its changelog if it keeps one, once its gate lets them pass."""
    name, logs = join.spec.name, _messages(join)
    if join.spec.changelog:
        # many emissions are not kept: to choose rows by them would compute them all once more
        before = batch.state.joined_hashes(join.spec, join.emissions if batch.frames.small else None)
        rows = changelog_rows(join.emissions, before, join.spec)
        logs.append((f"changelog/{name}", changelog_of(name), rows, "emissions"))
    return [
        pool.submit(
            batch.append_judged, stage, table, rows, gate_result, count, makes=_begins(batch, name, stage)
        )
        for stage, table, rows, count in logs
    ]


def _begins(batch: Batch, name: str, stage: str) -> bool:
    """Whether a log of a join begins with the batch: its join does, or did while it was not kept."""
    last = batch.journal.last.commits.get(stage, 0) if batch.journal.last else 0
    return name in batch.plan.bootstrap or last < batch.plan.begun.get(name, 0)


def commit_joined(
    batch: Batch, join: JoinBatch | GroupBatch, gate_result: GateResult, ready: Callable[[], None],
    begun: Future[DeltaTransaction] | None,
) -> None:  # fmt: skip
    """Change the joined table in one commit, once `ready` returns: then all logs of the batch are committed.

    `begun`: the commit to the table, where there is one.
    """
    name = join.spec.name
    if begun and gate_result.done() and not gate_result.result()["emissions"]:
        return

    def judged() -> dict[str, int]:
        ready()
        return gate_result.result()

    stage = f"joined/{name}"
    with batch.stage(stage):
        transaction = batch.journal.transaction(stage, batch.plan.batch, accepted=list(batch.accept))
        path = batch.lake.path(joined_of(name))
        emissions, declared = batch.numbered(join.emissions), batch.pipeline.joins[name].declared
        if begun:
            few = batch.frames.small or fits_one_task(gate_result.result()["emissions"])
            apply_emissions(
                emissions, path, join.spec, transaction, judged,
                few=few, begun=begun.result(), count=partial(batch.files.add, joined_of(name)),
                marks=declared.deletion_vectors,
            )  # fmt: skip
        else:
            stated = transaction.stating({"counts": judged()})
            create_joined(emissions, path, join.spec, stated, batch.written.pop(stage, None), declared)
    if not begun or gate_result.result()["emissions"]:
        batch.committed.append(stage)
