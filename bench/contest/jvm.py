"""What Spark tells about itself through its JVM alone: how many jobs it ran, what they read, queries and their plans.

Private parts of Spark, all in this file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

UNNAMED = "(no name)"
"""Jobs that nobody has named."""


@dataclass(frozen=True)
class Query:
    """An execution of a query or command that has ended."""

    id: int
    parent: int | None
    """The command that ran it, if one did."""
    what: str
    submitted: float
    """Seconds since 1970."""
    seconds: float


@dataclass
class Traffic:
    """Bytes that jobs read of files and kept frames, wrote into files, and left from one step to the next."""

    read_bytes: int = 0
    written_bytes: int = 0
    shuffled_bytes: int = 0


def jobs(spark: SparkSession) -> int:
    """Return how many jobs the session's context has run."""
    return int(_context(spark).dagScheduler().numTotalJobs())


def collect_garbage(spark: SparkSession) -> None:
    """Free what earlier work left in the heap, so that the next need not."""
    _jvm(spark).java.lang.System.gc()


def java_version(spark: SparkSession) -> str:
    """Return which Java runs Spark."""
    return str(_jvm(spark).java.lang.System.getProperty("java.version"))


def queries(spark: SparkSession) -> list[Query]:
    """Return the queries that Spark remembers, in their order."""
    _context(spark).listenerBus().waitUntilEmpty()
    ended = [
        found for found in _list(spark, _store(spark).executionsList()) if found.completionTime().isDefined()
    ]
    return [
        Query(
            id=int(found.executionId()),
            parent=_parent(found),
            what=str(found.description()),
            submitted=found.submissionTime() / 1000,
            seconds=(found.completionTime().get().getTime() - found.submissionTime()) / 1000,
        )
        for found in ended
    ]


def traffic(spark: SparkSession, first: int) -> dict[str, Traffic]:
    """Return what jobs from this number on read and wrote, by their names; a step that several share counts once."""
    _context(spark).listenerBus().waitUntilEmpty()
    store = _context(spark).statusStore()
    found: dict[str, Traffic] = {}
    counted: set[int] = set()
    for job in _list(spark, store.jobsList(None).toSeq()):
        if int(job.jobId()) < first:
            continue
        name = str(job.description().get()) if job.description().isDefined() else UNNAMED
        of_job = found.setdefault(name, Traffic())
        for number in map(int, _list(spark, job.stageIds().toSeq())):
            if number in counted:
                continue
            counted.add(number)
            try:
                step = store.lastStageAttempt(number)
            except Py4JJavaError:  # it was skipped, for an earlier job had run it, and Spark has forgotten it
                continue
            of_job.read_bytes += int(step.inputBytes())
            of_job.written_bytes += int(step.outputBytes())
            of_job.shuffled_bytes += int(step.shuffleWriteBytes())
    return found


def plan(spark: SparkSession, query: int) -> str:
    """Return the physical plan of a query as it was executed at last."""
    return str(_store(spark).execution(query).get().physicalPlanDescription())


def node_metrics(spark: SparkSession, query: int) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield the nodes of a query's plan by name, with what was measured at each."""
    store = _store(spark)
    values = store.executionMetrics(query)
    for node in _list(spark, store.planGraph(query).allNodes()):
        found = [
            (metric.name(), values.get(metric.accumulatorId())) for metric in _list(spark, node.metrics())
        ]
        yield str(node.name()), {str(name): str(value.get()) for name, value in found if value.isDefined()}


def _parent(execution: Any) -> int | None:
    root = int(execution.rootExecutionId())
    return root if root != int(execution.executionId()) else None


def _store(spark: SparkSession) -> Any:
    return spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001 - see above


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()  # noqa: SLF001 - see above


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm  # noqa: SLF001 - see above


def _list(spark: SparkSession, values: Any) -> list[Any]:
    return list(_jvm(spark).scala.jdk.javaapi.CollectionConverters.asJava(values))
