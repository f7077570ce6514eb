"""Brings a table that is there in line with what is declared of it, by commits after which it has the same rows.

Each is made only where the table's log says otherwise. So a run that is killed between two of them makes the others in
its next batch. What is not declared any more stays as it is.
"""

import json
from collections.abc import Mapping

from delta.tables import DeltaTable as SparkTable
from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import overwrite
from lakejoin.transforms.model.declaration import COMMENT, NONE, Declaration
from lakejoin.transforms.model.schemas import as_literal, quoted

_VECTORS = "deletionVectors"


def align(
    spark: SparkSession, path: str, declared: Declaration, properties: Mapping[str, str] = NONE
) -> None:
    """Give a table the comments, properties, clustering and features that are declared of it, but for partitions.

    `properties`: those that it has for it. Where deletion vectors are declared off and the table has them, its files
    are written without, once. Clustering holds for what is written from then on, and for all files with the next
    compaction.
    """
    with reading_table(path):
        table = opened(path)
        metadata, protocol = table.metadata(), table.protocol()
        columns = json.loads(table.schema().to_json())["fields"]
    known = {**metadata.configuration, COMMENT: metadata.description}
    wanted = {**properties, **({COMMENT: declared.comment} if declared.comment is not None else {})}
    if changed := {name: value for name, value in wanted.items() if known.get(name) != value}:
        _alter(spark, path, f"SET TBLPROPERTIES ({_listed(changed)})")
    told = {column["name"]: column["metadata"].get(COMMENT) for column in columns}
    texts = {name: text for name, text in declared.comments.items() if name in told and told[name] != text}
    if texts:
        each = ", ".join(f"{quoted(name)} COMMENT {as_literal(text)}" for name, text in texts.items())
        _alter(spark, path, f"ALTER COLUMN {each}")
    if declared.cluster_by and _clustered_by(spark, path) != declared.cluster_by:
        _alter(spark, path, f"CLUSTER BY ({', '.join(map(quoted, declared.cluster_by))})")
    if not declared.deletion_vectors and _VECTORS in (protocol.reader_features or ()):
        _alter(spark, path, f"DROP FEATURE {_VECTORS}")


def lay_out(spark: SparkSession, path: str, declared: Declaration, transaction: Transaction) -> None:
    """Write a table anew, with the rows that it has, where other partitions are declared than it has."""
    with reading_table(path):
        found = tuple(opened(path).metadata().partition_columns)
    if found != declared.partition_by:
        overwrite(spark.read.format("delta").load(path), path, transaction, declared=declared)


def _alter(spark: SparkSession, path: str, how: str) -> None:
    spark.sql(f"ALTER TABLE delta.{quoted(path)} {how}")


def _clustered_by(spark: SparkSession, path: str) -> tuple[str, ...]:
    row = SparkTable.forPath(spark, path).detail().select("clusteringColumns").first()
    return tuple(row[0] or ()) if row else ()


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{as_literal(name)} = {as_literal(value)}" for name, value in properties.items())
