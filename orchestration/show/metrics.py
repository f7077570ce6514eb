"""Says the figures of a pipeline as metrics of Prometheus, from logs and listings, without a JVM."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.planning.backlog import Backlog
from lakejoin.orchestration.show.status import Status

_ROWS = "rows"
_LEVELS = frozenset({_ROWS, "waiting"})
"""Counts that go down as well as up."""
Values = Iterable[tuple[tuple[str, ...], float]]
"""The values of a metric, each behind those of its labels."""


class PipelineMetrics(Collector):
    """The metrics of one pipeline; every one has the label `pipeline`.

    Counters begin with the lake: they are sums over its batches, and are the same whoever reads them.
    """

    def __init__(self, pipeline: Pipeline, status: Status, now: datetime) -> None:
        self._pipeline, self._status, self._now = pipeline, status, now

    def collect(self) -> Iterator[Metric]:
        """Yield every metric that has a value."""
        return (family for family in self._families() if family.samples)

    def _families(self) -> Iterator[Metric]:
        status = self._status
        kinds = defaultdict[tuple[str, ...], float](float)
        for batch in status.published:
            kinds[(batch.kind,)] += 1
        yield self._counter("batches", "Finished batches.", ["kind"], kinds.items())
        yield self._gauge(
            "unfinished_batches",
            "Batches that are planned and not finished.",
            [],
            [((), status.unfinished is not None)],
        )
        if status.last is not None:
            planned = status.last.planned_at.timestamp()
            yield self._gauge(
                "last_batch_planned_timestamp_seconds",
                "When the last finished batch was planned.",
                [],
                [((), planned)],
            )
        yield from self._counts()
        yield from self._times()
        yield self._gauge(
            "quarantine_open_records",
            "Records that are in quarantine still.",
            ["table", "reason"],
            _flat(status.quarantine),
        )
        if status.backlog is not None:
            yield from self._waiting(status.backlog)
        yield self._gauge(
            "expectation_met",
            "Whether a figure is what the configuration expects: 1 if so, 0 if not.",
            ["table", "figure"],
            [((one.subject, one.name), one.holds) for one in status.figures],
        )

    def _counts(self) -> Iterator[Metric]:
        """Rows, and what became of records, messages and answers."""
        told = {
            "table": ("Source records by what became of them, in finished batches.", self._status.tables),
            "join": (
                "Messages, answers and rows by what became of them, in finished batches.",
                self._status.joins,
            ),
        }
        for what, (statement, counts) in told.items():
            total = [(labels, value) for labels, value in _flat(counts) if labels[-1] not in _LEVELS]
            yield self._counter(f"{what}_records", statement, [what, "count"], total)
        rows = {name: of for name, of in self._status.tables.items() if name in self._pipeline.tables}
        rows |= self._status.joins
        yield self._gauge(
            "rows", "Rows that there are.", ["table"], [((name,), of[_ROWS]) for name, of in rows.items()]
        )
        waits = [((name,), of["waiting"]) for name, of in self._status.joins.items() if "waiting" in of]
        yield self._gauge(
            "waiting_records", "Records of streams that wait for their grace period.", ["join"], waits
        )

    def _times(self) -> Iterator[Metric]:
        """How long stages took, what they read, and how far event time has come."""
        seconds, read = (defaultdict[tuple[str, ...], float](float) for _ in range(2))
        for batch in self._status.published:
            for stage, spent in batch.seconds.items():
                seconds[_stage(stage)] += spent
            for table, files in batch.files.items():
                read[(table,)] += files["read"]
        labels = ["stage", "of"]
        yield self._counter("stage_seconds", "Seconds that stages of batches took.", labels, seconds.items())
        yield self._counter(
            "files_read", "Files of the lake's tables that batches read.", ["table"], read.items()
        )
        last = self._status.last
        if last is None:
            return
        own = [(_stage(stage), value) for stage, value in last.seconds.items()]
        yield self._gauge(
            "last_batch_stage_seconds", "Seconds that stages of the last batch took.", labels, own
        )
        held = [((table,), files["held"]) for table, files in last.files.items()]
        yield self._gauge("files_held", "Files of the tables that the last batch looked at.", ["table"], held)
        clocks = [(_stage(name), time.timestamp()) for name, time in last.clocks.items()]
        yield self._gauge(
            "clock_timestamp_seconds",
            "Event time that a table or join has reached, or until which a history is settled.",
            ["kind", "of"],
            clocks,
        )

    def _waiting(self, listed: Backlog) -> Iterator[Metric]:
        """What no batch has read."""
        names = self._pipeline.inputs
        waiting = [((name,), sum(waits.table == name for waits in listed.files)) for name in names]
        yield self._gauge("pending", "Files, versions or partitions with unread records.", ["table"], waiting)
        lags = {name: listed.lag(name, self._now) for name in names}
        known = [((name,), lag.total_seconds()) for name, lag in lags.items() if lag is not None]
        yield self._gauge("lag_seconds", "How long the oldest unread input has waited.", ["table"], known)
        offsets = [((name, at.part), at.lag) for name, parts in listed.reached.items() for at in parts]
        yield self._gauge("lag_offsets", "Offsets that no batch has read.", ["table", "partition"], offsets)

    def _gauge(self, name: str, told: str, labels: list[str], values: Values) -> Metric:
        return self._filled(GaugeMetricFamily(f"lakejoin_{name}", told, labels=["pipeline", *labels]), values)

    def _counter(self, name: str, told: str, labels: list[str], values: Values) -> Metric:
        return self._filled(
            CounterMetricFamily(f"lakejoin_{name}", told, labels=["pipeline", *labels]), values
        )

    def _filled(self, family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
        for labels, value in values:
            family.add_metric([self._pipeline.name, *labels], value)
        return family


def registry(pipeline: Pipeline, status: Status, now: datetime) -> CollectorRegistry:
    """Return what gives the metrics of a pipeline, and nothing of this process."""
    found = CollectorRegistry()
    found.register(PipelineMetrics(pipeline, status, now))
    return found


def _flat(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[tuple[str, ...], float]]:
    return [((name, reason), count) for name, of in counts.items() for reason, count in of.items()]


def _stage(name: str) -> tuple[str, str]:
    """A stage, and what it works on."""
    stage, _, of = name.partition("/")
    return stage, of
