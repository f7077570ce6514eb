"""What Spark did in a batch: its queries by their time, and the plan of the one that took most of it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contest.jvm import Query, node_metrics, plan, queries

_NOTHING = {"0", "0 ms", "0.0 B"}
_ROOT = f"{Path(__file__).resolve().parents[2]}/"


def explanation(spark: SparkSession, started: datetime, seconds: float) -> str:
    """Describe the queries that began within `seconds` after `started`."""
    begun = started.timestamp()
    within = [query for query in queries(spark) if begun <= query.submitted <= begun + seconds]
    return "\n".join(_lines(spark, within)) + "\n"


def costliest(found: list[Query]) -> Query | None:
    """Return the query that took longest; not a command whose time is that of the queries it ran."""
    parents = {query.parent for query in found}
    return max((q for q in found if q.id not in parents), key=lambda query: query.seconds, default=None)


def _lines(spark: SparkSession, found: list[Query]) -> Iterator[str]:
    yield f"{len(found)} queries, by their time; `in` is the command that ran a query"
    yield ""
    yield "seconds  query  in     what"
    for query in sorted(found, key=lambda query: -query.seconds):
        what = query.what.partition("\n")[0].replace(_ROOT, "")
        yield f"{query.seconds:7.3f}  {query.id:5}  {query.parent or '':5}  {what}"
    longest = costliest(found)
    if longest is None:
        return
    yield f"\nPlan of query {longest.id}\n"
    yield plan(spark, longest.id)
    yield "What was measured at its nodes\n"
    for node, metrics in node_metrics(spark, longest.id):
        yield node
        yield from (
            f"    {name}: {' '.join(value.split())}"
            for name, value in metrics.items()
            if value not in _NOTHING
        )
