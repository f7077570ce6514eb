"""Checks what a batch does to a joined table against its rules, and counts it, in one Spark job for each join."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from expectations.gate import SAMPLES, gate
from expectations.totals import differing_totals
from orchestration.batch.uncomputed import Uncomputed, as_counts
from storage.errors import LakeInconsistent, LakejoinError
from storage.spark.kept_frames import Frames
from transforms.foreign_key_join.batch import JoinBatch
from transforms.foreign_key_join.emissions import TOMBSTONE
from transforms.foreign_key_join.resolution import RESOLUTIONS
from transforms.model.join_sides import joined_right_key, joined_under_rules, left_under_rules
from transforms.model.schemas import BATCH, DELETED, HASH, LEFT_HASH, PRIMARY_KEY, RIGHT_HASH, named
from transforms.model.selection import FILTERED, marks_of

JOIN_COUNTS = ("subscriptions", "answers", "applied", "superseded", "stale", "emissions", "tombstones")


class GateFailed(LakejoinError):
    """A batch would leave a joined table in a state that its rules forbid; nothing was published."""


class WaysOut(Protocol):
    """Says what helps where a batch may not pass."""

    def __call__(self, *, samples: Sequence[str], rules: Sequence[str]) -> Iterable[str]:
        """Lines of a message. `samples`: some of the rows; `rules`: what is broken, as far as it can be accepted."""


def judge(
    batch: JoinBatch,
    accept: Sequence[str],
    frames: Frames,
    ways_out: WaysOut,
    uncomputed: tuple[Uncomputed, Uncomputed],
) -> dict[str, int]:
    """Count what a batch does to a join, and check it against the join's rules.

    Returns the counts. `ways_out`: what messages end with. `uncomputed`: what is asked of the left rows, and of the
    emissions. Raises `GateFailed` where a rule is violated that `accept` does not name, and `LakeInconsistent` where
    the hash of an answer and its position disagree.
    """
    emissions = _seen_by_rules(batch)
    emissions = emissions if batch.first else frames.keep_if_large(emissions)
    held, how, small = _rule_frames(batch, emissions), batch.spec.how, frames.small
    if batch.first:  # of many rows: whether any rule may be broken
        results = differing_totals(held, how, batch.first.keys)
    else:
        results = gate(held, how, small=small, digests=not small)
    # one row a count and a broken rule
    parts = _counts(batch, emissions).unionByName(results)
    of_keys, of_results = uncomputed
    made = emissions if batch.made is None else batch.made
    asked = {
        "uncomputed keys": (of_keys, _left_values(batch)),
        "uncomputed results": (of_results, (made, named(PRIMARY_KEY))),
    }
    for rule, (asks, of_rows) in asked.items():
        if asks.fails is not None:
            parts = parts.unionByName(asks.in_gate(*of_rows, rule))
    found = {row["rule"]: row for row in frames.gather(parts).collect()}
    failing = {rule: row for rule in asked if (row := found.pop(rule, None))}
    counts = {name: int(found.pop(name)["offending"]) for name in (*JOIN_COUNTS, "contradictory")}
    if found and not small:
        found = {row["rule"]: row for row in gate(held, how).collect()}
    if contradictory := counts.pop("contradictory"):
        samples = _contradictory(batch)
        raise LakeInconsistent(
            f"{batch.spec.name}: {contradictory:,} answers are to the change that their left row is from, by its "
            "place, and to another value, by its hash; the joined table was not touched. The rows or the subscriptions "
            "of the lake were altered, or another version of Lakejoin hashes otherwise.",
            *_rows(contradictory, samples),
            *ways_out(samples=samples, rules=()),
        )
    violated = [row for row in found.values() if row["rule"] not in accept]
    if violated:
        samples = [sample for row in violated for sample in row["sample"] or ()]
        rules = [row["rule"] for row in violated]
        raise GateFailed(*_message(batch.spec.name, violated), *ways_out(samples=samples, rules=rules))
    told = [asked[rule][0].told(row["offending"], row["sample"] or ()) for rule, row in failing.items()]
    return counts | as_counts(*told)


def _left_values(batch: JoinBatch) -> tuple[DataFrame, Column]:
    """The left rows that live, with their own columns; and their key, under a name apart from these."""
    live = batch.left.where(F.col("hash").isNotNull())
    return live.select(F.col("primary_key").alias(PRIMARY_KEY), "value.*"), named(PRIMARY_KEY)


def _seen_by_rules(batch: JoinBatch) -> DataFrame:
    """The emissions as far as rules and counts look at them: keys, hashes, and which are tombstones."""
    keys = joined_right_key(batch.spec)
    return batch.emissions.select(
        PRIMARY_KEY, TOMBSTONE, *marks_of(batch.spec), LEFT_HASH, RIGHT_HASH, *keys, BATCH
    )


def _rule_frames(batch: JoinBatch, emissions: DataFrame) -> dict[str, DataFrame]:
    """The rows at hand as the five frames that the rules of `expectations` read, restricted to touched keys."""
    # apart from the row's own columns, which its foreign key is made of
    identity = (F.col("primary_key").alias(PRIMARY_KEY), F.col("hash").alias(HASH))
    left = batch.left.select(*identity, F.col("hash").isNull().alias(DELETED), "value.*")
    filtered = None if batch.spec.where is None else named(FILTERED)
    shown = emissions.where(~named(TOMBSTONE) if filtered is None else ~named(TOMBSTONE) | filtered)
    return {
        "left_rows": left_under_rules(left, replace(batch.spec, left_whole=True), F.col(PRIMARY_KEY)),
        "subscriptions": batch.store.select("foreign_key", "primary_key", "hash"),
        "right_rows": batch.right.select("primary_key", "hash", F.col("hash").isNull().alias("deleted")),
        "answers": batch.responses.where(F.col("resolution") == "applied").select(
            "primary_key", "foreign_key", "hash", "cause"
        ),
        "joined": joined_under_rules(shown, batch.spec, F.col(PRIMARY_KEY), filtered),
    }


def _counts(batch: JoinBatch, emissions: DataFrame) -> DataFrame:
    resolution = F.col("resolution")
    parts = [
        _named(batch.log, {"subscriptions": F.count(F.lit(1))}),
        _named(
            batch.responses,
            {
                "answers": F.count(F.lit(1)),
                **{name: F.count_if(resolution == name) for name in RESOLUTIONS},
            },
        ),
        _named(emissions, {"emissions": F.count(F.lit(1)), "tombstones": F.count_if(F.col(TOMBSTONE))}),
    ]
    return parts[0].unionByName(parts[1]).unionByName(parts[2])


def _named(rows: DataFrame, counts: dict[str, Column]) -> DataFrame:
    counted = rows.agg(*[value.alias(name) for name, value in counts.items()])
    pairs = F.array(*[F.struct(F.lit(name).alias("rule"), F.col(name).alias("offending")) for name in counts])
    return counted.select(F.inline(pairs)).withColumn("sample", F.lit(None).cast("array<string>"))


def _contradictory(batch: JoinBatch) -> list[str]:
    """The first left keys whose answers contradict them, as samples of a rule."""
    rows = batch.responses.where(F.col("resolution") == "contradictory")
    line = F.to_json(F.struct("primary_key", "foreign_key"), {"ignoreNullFields": "false"})
    return [row[0] for row in rows.select(line.alias("line")).orderBy("line").limit(SAMPLES).collect()]


def _message(join: str, violated: Sequence[Row]) -> list[str]:
    lines = [f"{join}: the batch would break {len(violated)} rule(s); its joined table was not touched."]
    for row in violated:
        lines += [f"  {row['rule']}: {row['offending']} rows", *_rows(row["offending"], row["sample"] or ())]
    return lines


def _rows(count: int, samples: Sequence[str]) -> list[str]:
    more = count - len(samples)
    return [f"    {sample}" for sample in samples] + [f"    and {more:,} more"] * (more > 0)
