"""Sends what a left change tells the right side, and derives the live subscriptions from it (KIP-213).

The instructions are Kafka's, by their effect on the receiver; which are sent follows Kafka Streams 4.3.1. Like Kafka's
subscription topic and its store, the log and the store hold the same messages: a subscription is live when the last
instruction for its CombinedKey, (foreign key, primary key), did not delete it.
"""

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakejoin.transforms.model.schemas import BATCH, HASH_TYPE, POSITION, POSITION_TYPE, no_batch
from lakejoin.transforms.model.specs import How, JoinSpec

Instruction = Literal[
    "DELETE_KEY_NO_PROPAGATE",  # remove the subscription, answer nothing
    "DELETE_KEY_AND_PROPAGATE",  # remove the subscription, answer null
    "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE",  # subscribe and always answer, with null if there is no right value
    "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE",  # subscribe, answer only if there is a right value
]
DELETE_NO: Instruction = "DELETE_KEY_NO_PROPAGATE"
DELETE_AND: Instruction = "DELETE_KEY_AND_PROPAGATE"
NULL_IF_NO: Instruction = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
ONLY_IF: Instruction = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"

STEP = "_lj_step"
"""Place of a message among those of one change: the delete of the old subscription goes first."""


def subscription_schema(join: JoinSpec) -> StructType:
    """Schema of `subscription_log` and of `subscription_store`: an instruction for a CombinedKey."""
    return StructType(
        [
            StructField("foreign_key", join.foreign_key_type),
            StructField("primary_key", join.primary_key_type),
            StructField("hash", HASH_TYPE),
            StructField("instruction", StringType()),
            StructField(BATCH, LongType()),
            StructField(POSITION, POSITION_TYPE),
            StructField(STEP, LongType()),
        ]
    )


def send_subscriptions(changes: DataFrame, how: How) -> DataFrame:
    """Turn the left changes of a batch into messages to the right side.

    `changes`: one row per accepted left change with primary_key, position, foreign_key and hash of the new value
    (foreign_key null without one, hash null for a delete), previous_exists, previous_foreign_key (of the key's row
    before this change), changes_of_key (how many changes the key has in the batch) and last_of_key.
    Returns rows of `subscription_schema`, all with the hash of the *new* value; they have no batch yet.
    """
    messages = F.filter(F.array(_to_previous(how), _to_new(how)), lambda message: message.isNotNull())
    return _messages(changes, F.explode(messages))


def send_first_subscriptions(changes: DataFrame, how: How) -> DataFrame:
    """The same for changes of which each brings a new row: they leave no foreign key, and send one message at most."""
    return _messages(changes, _to_new(how)).where(F.col("instruction").isNotNull())


def _messages(changes: DataFrame, message: Column) -> DataFrame:
    return changes.select("primary_key", "hash", POSITION, message.alias("message")).select(
        F.col("message")["foreign_key"].alias("foreign_key"),
        "primary_key",
        "hash",
        F.col("message")["instruction"].alias("instruction"),
        no_batch(),
        POSITION,
        F.col("message")["step"].alias(STEP),
    )


def _message(foreign_key: str, instruction: Instruction, step: int) -> Column:
    return F.struct(
        F.col(foreign_key).alias("foreign_key"),
        F.lit(instruction).alias("instruction"),
        F.lit(step).cast("bigint").alias("step"),
    )


def _always_answered(how: How) -> Column:
    """A left join always answers. So does the last of several changes of a key in one batch.

    The answers to its earlier changes are stale by their hash, also the one that would have retracted the result
    from before the batch; only an answer to the last change can put the result right.
    """
    several = F.col("last_of_key") & (F.col("changes_of_key") > 1)
    return F.lit(True) if how == "left" else several


def _same_foreign_key() -> Column:
    return F.col("foreign_key").eqNullSafe(F.col("previous_foreign_key"))


def _to_previous(how: How) -> Column:
    """The message to the foreign key that the row leaves, if it leaves one."""
    leaves = F.col("previous_foreign_key").isNotNull() & ~_same_foreign_key()
    moves = F.col("foreign_key").isNotNull()
    quiet = moves | _always_answered(how)  # someone else answers: the new foreign key, or the null one
    return F.when(leaves & quiet, _message("previous_foreign_key", DELETE_NO, 0)).when(
        leaves, _message("previous_foreign_key", DELETE_AND, 0)
    )


def _to_new(how: How) -> Column:
    """The message to the foreign key that the row has now; the null one where the answer must come without it."""
    has_key = F.col("foreign_key").isNotNull()
    moved = F.col("previous_foreign_key").isNotNull() & ~_same_foreign_key()
    several = F.col("last_of_key") & (F.col("changes_of_key") > 1)
    known = F.col("previous_exists") | F.col("hash").isNotNull() | several
    return (
        F.when(has_key & (moved | _always_answered(how)), _message("foreign_key", NULL_IF_NO, 1))
        .when(has_key, _message("foreign_key", ONLY_IF, 1))
        .when(known & _always_answered(how), _message("foreign_key", NULL_IF_NO, 1))
    )


def subscriptions(log: DataFrame) -> DataFrame:
    """Last instruction per CombinedKey, deleting ones included: what a fold keeps and a lookup reads.

    `log`: rows of `subscription_schema`, from the folded store and from the log behind it. A message to the null
    foreign key is answered but never stored.
    """
    columns = [c for c in log.columns if c not in ("foreign_key", "primary_key")]
    under_way = F.col(BATCH).isNull()
    latest = F.max_by(F.struct(*columns), F.struct(under_way, BATCH, POSITION, STEP))
    stored = log.where(F.col("foreign_key").isNotNull())
    return (
        # most keys have one message: grouped before they are shuffled, they would be sorted twice for nothing
        stored.repartition("foreign_key", "primary_key")
        .groupBy("foreign_key", "primary_key")
        .agg(latest.alias("latest"))
        .select("foreign_key", "primary_key", "latest.*")
    )


def live_subscriptions(log: DataFrame) -> DataFrame:
    """The subscription store: CombinedKeys whose last instruction did not delete them, with the hash to answer."""
    deleting = F.col("instruction").isin(DELETE_NO, DELETE_AND)
    return subscriptions(log).where(~deleting)


def with_previous(
    changes: DataFrame, before: DataFrame, foreign_keys: Sequence[str] = ("foreign_key",)
) -> DataFrame:
    """Give each left change of a batch the foreign keys that its row had before it.

    `changes`: primary_key, position (unique within a key), hash and the `foreign_keys`: one to each right side.
    `before`: primary_key and `foreign_keys` of the live rows before the batch.
    Returns `changes` with the columns that `send_subscriptions` needs.
    """
    by_key = Window.partitionBy("primary_key").orderBy(POSITION)
    whole = Window.partitionBy("primary_key")
    stored = before.select(
        F.col("primary_key").alias("stored_key"),
        *[F.col(name).alias(f"stored_{name}") for name in foreign_keys],
        F.lit(True).alias("stored_exists"),
    )
    first = F.row_number().over(by_key) == 1
    joined = changes.join(stored, F.col("primary_key") == F.col("stored_key"), "left")
    return joined.withColumns(
        {
            "previous_exists": F.when(first, F.coalesce("stored_exists", F.lit(False))).otherwise(
                F.lag(F.col("hash").isNotNull()).over(by_key)
            ),
            **{
                f"previous_{name}": F.when(first, F.col(f"stored_{name}")).otherwise(F.lag(name).over(by_key))
                for name in foreign_keys
            },
            "changes_of_key": F.count(F.lit(1)).over(whole),
            "last_of_key": F.lead("primary_key").over(by_key).isNull(),
        }
    ).drop("stored_key", "stored_exists", *[f"stored_{name}" for name in foreign_keys])
