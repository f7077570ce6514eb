"""Checks what a batch does to a joined table against its rules, and counts it, in one Spark job for each join."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lakejoin.expectations.gate import SAMPLES, gate
from lakejoin.expectations.keys import Kind
from lakejoin.expectations.totals import differing_totals
from lakejoin.orchestration.batch.uncomputed import Uncomputed, as_counts
from lakejoin.storage.errors import LakeInconsistent, LakejoinError
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.transforms.foreign_key_join.batch import JoinBatch, Messages
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.foreign_key_join.resolution import RESOLUTIONS
from lakejoin.transforms.model.join_sides import joined_right_key, joined_under_rules, with_foreign_keys
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, PRIMARY_KEY, named
from lakejoin.transforms.model.selection import WITHHELD, left_out, marks_of

SIDE_COUNTS = ("subscriptions", "answers", "applied", "superseded", "stale")
"""What is counted of the messages with each right side; of a star `JoinSpec.of_side` calls each count."""
JOIN_COUNTS = (*SIDE_COUNTS, "emissions", "tombstones")


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
    small = frames.small
    held = [
        Held(messages.spec.side, messages.spec.how, _rule_frames(batch, messages, emissions))
        for messages in batch.messages
    ]
    # one row a count and a broken rule
    parts = _counts(batch, emissions)
    for spec, part in zip(batch.spec.parts, held, strict=True):
        if batch.first:  # of many rows: whether any rule may be broken
            results = differing_totals(part.frames, spec.how, batch.first.keys)
            parts = parts.unionByName(results.withColumn("side", F.lit(part.side)))
        else:
            parts = parts.unionByName(broken(part, small=small))
    of_keys, of_results = uncomputed
    made = emissions if batch.made is None else batch.made
    asked = {
        "uncomputed keys": (of_keys, left_values(batch.left)),
        "uncomputed results": (of_results, (made, named(PRIMARY_KEY))),
    }
    found, told = collected(parts, asked, frames)
    counts = _collected(batch.spec, found)
    if contradictory := counts.pop("contradictory"):
        samples = _contradictory(batch)
        raise LakeInconsistent(
            f"{batch.spec.name}: {contradictory:,} answers are to the change that their left row is from, by its "
            "place, and to another value, by its hash; the joined table was not touched. The rows or the subscriptions "
            "of the lake were altered, or another version of Lakejoin hashes otherwise.",
            *_rows(contradictory, samples),
            *ways_out(samples=samples, rules=()),
        )
    refuse_broken(batch.spec.name, held, found, accept, ways_out, small=small)
    return counts | as_counts(*told)


@dataclass(frozen=True)
class Held:
    """What is held against rules."""

    side: str
    """What a star calls the right side; else empty."""
    kind: Kind
    frames: Mapping[str, DataFrame]


Found = dict[tuple[str, str], Row]
"""Counts and broken rules of a gate, by side and name."""


def broken(held: Held, *, small: bool) -> DataFrame:
    """A row for each broken rule; of many rows without samples that say something."""
    results = gate(held.frames, held.kind, small=small, digests=not small)
    return results.withColumn("side", F.lit(held.side))


def collected(
    parts: DataFrame, asked: Mapping[str, tuple[Uncomputed, tuple[DataFrame, Column]]], frames: Frames
) -> tuple[Found, list[int]]:
    """Run the one job of a gate: the counts and broken rules, and of how many rows something cannot be computed.

    `parts`: a row of each. `asked`: what is asked of which rows, with their key.
    """
    for rule, (asks, of_rows) in asked.items():
        if asks.fails is not None:
            parts = parts.unionByName(asks.in_gate(*of_rows, rule).withColumn("side", F.lit("")))
    found = {(row["side"], row["rule"]): row for row in frames.gather(parts).collect()}
    failing = {rule: row for rule in asked if (row := found.pop(("", rule), None))}
    return found, [
        asked[rule][0].told(row["offending"], row["sample"] or ()) for rule, row in failing.items()
    ]


def refuse_broken(
    name: str, held: Sequence[Held], found: Found, accept: Sequence[str], ways_out: WaysOut, *, small: bool
) -> None:
    """Raise `GateFailed` where a rule is broken that `accept` does not name. `found`: what is left after the counts."""
    if found and not small:
        found = {
            (part.side, row["rule"]): row for part in held for row in gate(part.frames, part.kind).collect()
        }
    violated = {place: row for place, row in found.items() if row["rule"] not in accept}
    if violated:
        samples = [sample for row in violated.values() for sample in row["sample"] or ()]
        rules = list(dict.fromkeys(row["rule"] for row in violated.values()))
        raise GateFailed(*_message(name, violated), *ways_out(samples=samples, rules=rules))


def left_values(rows: DataFrame) -> tuple[DataFrame, Column]:
    """The left rows that live, with their own columns; and their key, under a name apart from these."""
    live = rows.where(F.col("hash").isNotNull())
    return live.select(F.col("primary_key").alias(PRIMARY_KEY), "value.*"), named(PRIMARY_KEY)


def _seen_by_rules(batch: JoinBatch) -> DataFrame:
    """The emissions, and rows that are withheld, as far as rules and counts look at them: keys, hashes, marks."""
    join = batch.spec
    keys = dict.fromkeys(name for part in join.parts for name in joined_right_key(part))
    columns = [
        named(name)
        for name in (TOMBSTONE, *marks_of(join), *[field.name for field in join.hashes], *keys, BATCH)
    ]
    rows = batch.emissions.select(PRIMARY_KEY, *columns)
    return rows if batch.withheld is None else rows.unionByName(batch.withheld.select(PRIMARY_KEY, *columns))


def _rule_frames(batch: JoinBatch, messages: Messages, emissions: DataFrame) -> dict[str, DataFrame]:
    """The rows at hand as the five frames that the rules of `expectations` read, restricted to touched keys."""
    part = messages.spec
    left_rows = with_foreign_keys(batch.left, part).select(
        "primary_key",
        F.col(part.of_side("foreign_key")).alias("foreign_key"),
        F.col("left_hash").alias("hash"),
        F.col("left_hash").isNull().alias("deleted"),
    )
    filtered = left_out(batch.spec, part)
    shown = emissions.where(~named(TOMBSTONE) if filtered is None else ~named(TOMBSTONE) | filtered)
    return {
        "left_rows": left_rows,
        "subscriptions": _subscriptions(batch, messages, left_rows),
        "right_rows": messages.right.select("primary_key", "hash", F.col("hash").isNull().alias("deleted")),
        "answers": messages.responses.where(F.col("resolution") == "applied").select(
            "primary_key", "foreign_key", "hash", "cause"
        ),
        "joined": joined_under_rules(shown, part, F.col(PRIMARY_KEY), filtered),
    }


def _subscriptions(batch: JoinBatch, messages: Messages, left_rows: DataFrame) -> DataFrame:
    """The live subscriptions to a right side, as far as the rules look at them.

    Left rows of a star that the change of another right side has found have subscriptions here that nobody has read:
    these are taken to be as they should. A check of the lake looks at them.
    """
    at_hand = messages.store.select("foreign_key", "primary_key", "hash")
    if batch.found is None:
        return at_hand
    found = batch.found.select("primary_key").distinct()
    unread = found.join(messages.store.select("primary_key"), "primary_key", "left_anti")
    named_by = left_rows.where(F.col("foreign_key").isNotNull()).join(unread, "primary_key", "left_semi")
    return at_hand.unionByName(named_by.select("foreign_key", "primary_key", "hash"))


def counts_of_nothing(join: ResultSpec) -> dict[str, int]:
    """The counts of a join that nothing happened to."""
    return dict.fromkeys((*[p.of_side(name) for p in join.parts for name in SIDE_COUNTS], *JOIN_COUNTS), 0)


def counts_of_sides(join: ResultSpec, counts: Mapping[str, int]) -> dict[str, Mapping[str, int]]:
    """What a batch counted of a join, and of the messages with each right side of a star, by their names."""
    sides = [part for part in join.parts if part.side]
    own = {part.of_side(name) for part in sides for name in SIDE_COUNTS}
    return {
        join.name: {name: count for name, count in counts.items() if name not in own},
        **{part.name: {name: counts[part.of_side(name)] for name in SIDE_COUNTS} for part in sides},
    }


def _collected(join: ResultSpec, found: dict[tuple[str, str], Row]) -> dict[str, int]:
    """Take the counts out of what a gate has found: of each right side, and of all together."""

    def taken(side: str, name: str) -> int:
        return int(found.pop((side, name))["offending"])

    of_sides = {
        part: {name: taken(part.side, name) for name in (*SIDE_COUNTS, "contradictory")}
        for part in join.parts
    }
    counts = {name: taken("", name) for name in ("emissions", "tombstones")}
    sums = {name: sum(count[name] for count in of_sides.values()) for name in (*SIDE_COUNTS, "contradictory")}
    own = {part.of_side(name): count[name] for part, count in of_sides.items() for name in SIDE_COUNTS}
    return own | sums | counts


def _counts(batch: JoinBatch, emissions: DataFrame) -> DataFrame:
    resolution = F.col("resolution")
    emitted = ~named(WITHHELD) if batch.spec.needed else F.lit(True)
    parts = [
        counted(
            emissions,
            {"emissions": F.count_if(emitted), "tombstones": F.count_if(emitted & F.col(TOMBSTONE))},
        )
    ]
    for messages in batch.messages:
        side = messages.spec.side
        parts += [
            counted(messages.log, {"subscriptions": F.count(F.lit(1))}, side),
            counted(
                messages.responses,
                {
                    "answers": F.count(F.lit(1)),
                    **{name: F.count_if(resolution == name) for name in RESOLUTIONS},
                },
                side,
            ),
        ]
    return reduce(DataFrame.unionByName, parts)


def counted(rows: DataFrame, counts: dict[str, Column], side: str = "") -> DataFrame:
    """Counts of rows as rows of what a gate gathers."""
    totals = rows.agg(*[value.alias(name) for name, value in counts.items()])
    pairs = F.array(*[F.struct(F.lit(name).alias("rule"), F.col(name).alias("offending")) for name in counts])
    none = F.lit(None).cast("array<string>")
    return totals.select(F.inline(pairs)).withColumns({"sample": none, "side": F.lit(side)})


def _contradictory(batch: JoinBatch) -> list[str]:
    """The first left keys whose answers contradict them, as samples of a rule."""
    line = F.to_json(F.struct("primary_key", "foreign_key"), {"ignoreNullFields": "false"})
    lines = [
        messages.responses.where(F.col("resolution") == "contradictory").select(line.alias("line"))
        for messages in batch.messages
    ]
    return [row[0] for row in reduce(DataFrame.unionByName, lines).orderBy("line").limit(SAMPLES).collect()]


def _message(join: str, violated: Mapping[tuple[str, str], Row]) -> list[str]:
    lines = [f"{join}: the batch would break {len(violated)} rule(s); its joined table was not touched."]
    for (side, rule), row in violated.items():
        of_side = f" ({side})" if side else ""
        lines += [
            f"  {rule}{of_side}: {row['offending']} rows", *_rows(row["offending"], row["sample"] or ())
        ]  # fmt: skip
    return lines


def _rows(count: int, samples: Sequence[str]) -> list[str]:
    more = count - len(samples)
    return [f"    {sample}" for sample in samples] + [f"    and {more:,} more"] * (more > 0)
