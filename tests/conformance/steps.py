"""The steps of a foreign-key join as the transforms take them, over a few rows held in Python."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.emissions import emit_results
from lakejoin.transforms.foreign_key_join.resolution import resolve_responses
from lakejoin.transforms.foreign_key_join.responses import (
    answer_right_changes,
    answer_subscriptions,
    response_schema,
)
from lakejoin.transforms.foreign_key_join.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    with_previous,
)
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.join_sides import left_changes, live_keys, valued
from lakejoin.transforms.model.schemas import BATCH, DELETED, HASH, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import How, JoinSpec

Key = tuple[str, str]
"""Case and key."""

_KEY = ("case_id", "key")
_INTERNAL = [StructField(POSITION, POSITION_TYPE), StructField(DELETED, BooleanType())]


@dataclass(frozen=True)
class Version:
    """A row as an event left it: its values without the key, None for a deleted one."""

    values: tuple[str | None, ...] | None
    event: int


Rows = Mapping[Key, Version]


def _columns(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in (*_KEY, *names)])


_LEFT = _columns("fk", "v")
_RIGHT = _columns("value")


class Steps:
    """Send, answer and resolve for one kind of join, each from rows to rows."""

    def __init__(self, spark: SparkSession, how: How) -> None:
        self._spark = spark
        self._join = JoinSpec(
            name=f"{how}_join", left="left_rows", right="right_rows", left_columns=_LEFT, left_key=_KEY,
            right_columns=_RIGHT, right_key=_KEY, foreign_key=("case_id", "fk"), how=how,
        )  # fmt: skip

    def send(self, before: Rows, changed: Rows, batch: int) -> list[Row]:
        """Return the subscription messages of changed left rows, given those rows as they were before."""
        changes = with_previous(
            left_changes(self._rows(_LEFT, changed), self._join),
            live_keys(self._rows(_LEFT, before), self._join),
        )
        sent = send_subscriptions(changes, self._join.how).withColumn(BATCH, F.lit(batch).cast("bigint"))
        return sent.select(*subscription_schema(self._join).names).collect()

    def answer(self, messages: Sequence[Row], log: Sequence[Row], right: Rows, changed: Rows) -> list[Row]:
        """Return the answers to messages that are in the log by now, and to the changed right rows."""
        schema = subscription_schema(self._join)
        store = live_subscriptions(self._spark.createDataFrame(log, schema))
        answers = answer_subscriptions(
            self._spark.createDataFrame(messages, schema), valued(self._rows(_RIGHT, right), _KEY, _RIGHT)
        )
        changes = valued(self._rows(_RIGHT, changed), _KEY, _RIGHT)
        return answers.unionByName(answer_right_changes(changes, store)).collect()

    def resolve(self, responses: Sequence[Row], left: Rows, right: Rows) -> list[Row]:
        """Return what is emitted for the responses, the right rows being those that the responses carry."""
        fields = [f for f in response_schema(self._join) if f.name not in ("resolution", BATCH)]
        answers = [[response[f.name] for f in fields] for response in responses]
        left_rows = valued(self._rows(_LEFT, left), _KEY, _LEFT)
        resolved = resolve_responses(self._spark.createDataFrame(answers, StructType(fields)), left_rows)
        right_rows = valued(self._rows(_RIGHT, right), _KEY, _RIGHT)
        return emit_results(resolved, left_rows, right_rows, self._join).collect()

    def _rows(self, columns: StructType, versions: Rows) -> DataFrame:
        """A side's rows with their internal columns, hash included."""
        missing = (None,) * (len(columns) - len(_KEY))
        rows: list[tuple[Any, ...]] = [
            (*key, *(row.values or missing), (None, key[0], row.event), row.values is None)
            for key, row in versions.items()
        ]
        frame = self._spark.createDataFrame(rows, StructType([*columns, *_INTERNAL]))
        return frame.withColumn(HASH, F.when(~F.col(DELETED), value_hash(columns)))
