"""Which tables of a lake are due for a fold or a compaction, and both: after a batch, never within one."""

from pyspark.sql import SparkSession

from orchestration.config import Pipeline
from storage.compaction import compact, needs_compaction
from storage.lake import Lake, joined_of, rows_of, subscription_store_of
from storage.maintenance import fold_rows, fold_subscriptions, is_due
from storage.plan import Journal, Plan


def fold_due(pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, now: Plan) -> list[str]:
    """Fold every base that is due, and compact joined tables; returns their names below the lake.

    `now`: a plan of the next batch, never committed, that pins the state after the last finished one.
    """
    rows = journal.last.rows if journal.last else {}
    folded = []
    for name, table in pipeline.tables.items():
        base = rows_of(name)
        behind = [
            p.tables.get(name, {}).get("changed", 0) for p in journal.published[now.folded.get(base, 0) :]
        ]
        if is_due([count for count in behind if count], rows.get(name, 0)):
            fold_rows(spark, lake, journal, now, table.spec, table.tombstone_retention)
            folded.append(base)
    for name in pipeline.joins:
        join = pipeline.join_spec(name)
        base = subscription_store_of(name)
        sent = [
            p.joins.get(name, {}).get("subscriptions", 0)
            for p in journal.published[now.folded.get(base, 0) :]
        ]
        if is_due([count for count in sent if count], rows.get(join.left, 0)):
            fold_subscriptions(spark, lake, journal, now, join)
            folded.append(base)
        joined = joined_of(name)
        if joined in now.versions and needs_compaction(lake.path(joined)):
            compact(spark, lake.path(joined))
            folded.append(joined)
    return folded
