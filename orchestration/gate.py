"""The gate before a joined table: counts and rules over the rows at hand, in one Spark job for each join."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.gate import gate
from orchestration.join_batch import JoinBatch, rule_frames, seen_by_rules
from storage.errors import LakeInconsistent, LakejoinError
from storage.frames import Frames
from transforms.resolution import RESOLUTIONS, TOMBSTONE

JOIN_COUNTS = ("subscriptions", "answers", "applied", "superseded", "stale", "emissions", "tombstones")


class GateFailed(LakejoinError):
    """A batch would leave a joined table in a state that its rules forbid; nothing was published."""


def judge(batch: JoinBatch, accept: Sequence[str], frames: Frames) -> dict[str, int]:
    """Count what a batch does to a join, and hold it against the join's rules.

    Returns the counts. Raises `GateFailed` where a rule is violated that `accept` does not name, and
    `LakeInconsistent` where the hash of an answer and its position disagree.
    """
    emissions = frames.keep_if_large(seen_by_rules(batch))
    held, how = rule_frames(batch, emissions), batch.spec.how
    verdicts = gate(held, how, small=frames.small, digests=not frames.small)
    # one row a count and a broken rule
    rows = frames.gather(_counts(batch, emissions).unionByName(verdicts)).collect()
    found = {row["rule"]: row for row in rows}
    counts = {name: int(found.pop(name)["offending"]) for name in (*JOIN_COUNTS, "contradictory")}
    if found and not frames.small:
        found = {row["rule"]: row for row in gate(held, how).collect()}
    if contradictory := counts.pop("contradictory"):
        raise LakeInconsistent(
            f"{batch.spec.name}: {contradictory:,} answers are to the change that their left row is from, by its "
            "place, and to another value, by its hash; the joined table was not touched. The rows or the subscriptions "
            "of the lake were altered, or another version of Lakejoin hashes otherwise. Build the join anew: "
            f"`lakejoin run FILE --rebuild {batch.spec.name}`."
        )
    violated = [row for row in found.values() if row["rule"] not in accept]
    if violated:
        raise GateFailed(_message(batch.spec.name, violated))
    return counts


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


def _message(join: str, violated: Sequence[object]) -> str:
    lines = [f"{join}: the batch would break {len(violated)} rule(s); its joined table was not touched."]
    for row in violated:
        lines.append(f"  {row['rule']}: {row['offending']} rows")  # type: ignore[index]
        lines += [f"    {sample}" for sample in row["sample"] or ()]  # type: ignore[index]
    names = " ".join(f"--accept {row['rule']}" for row in violated)  # type: ignore[index]
    lines.append(
        f"The plan stands. Run `lakejoin run FILE {names}` to publish the batch all the same (it is recorded)."
    )
    return "\n".join(lines)
