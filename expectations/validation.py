"""Validates assets: checks their frames against the rules, through Great Expectations with Data Docs, or without.

Great Expectations is the slow, visible way: for `lakejoin check` and people who look at Data Docs. What the gates of
batches have not seen is checked without, after them. Before a commit the rules are run by `expectations.gate` alone, of
a first load also by `expectations.totals`.
"""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakejoin.expectations.data_docs import DataDocs, open_context, publish
from lakejoin.expectations.gate import broken_rules, gate
from lakejoin.expectations.keys import Kind
from lakejoin.expectations.results import RuleResult, rule_results
from lakejoin.expectations.rules import rules_for

if TYPE_CHECKING:  # importing Great Expectations takes seconds
    from great_expectations.checkpoint.checkpoint import CheckpointResult
    from great_expectations.core import RunIdentifier
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext

_RESULT = pa.schema([("rule", pa.string()), ("offending", pa.int64()), ("sample", pa.list_(pa.string()))])
_ONE_AT_A_TIME = threading.Lock()
"""Great Expectations has one current context in a process and one temporary view in a session."""


@dataclass(frozen=True)
class Asset:
    """A joined table with its state, or a declared table: what is validated as one suite."""

    name: str
    kind: Kind
    frames: Mapping[str, DataFrame]
    """Those of `keys.frames_for(kind)`, full or restricted to touched keys."""
    small: bool = False
    """The frames fit in one task: fewer Spark jobs."""


@dataclass(frozen=True)
class Validated:
    """What became of a validation."""

    results: Mapping[str, list[RuleResult]]
    """Of each asset, in the order of its rules, which is not that of Great Expectations."""
    unpublished: str | None = None
    """Why Data Docs do not show them, and what to do; None where they do, or no site was given."""


def validate_assets(
    assets: Sequence[Asset], *, docs: DataDocs | None = None, run: str = "check"
) -> Validated:
    """Check each asset's frames against its rules: one Spark query and one checkpoint for each asset.

    `docs`: the site to write, none where not given. `run`: how the index calls this validation. Threads wait
    for one another. Raises what Spark raises where frames cannot be read.
    """
    from great_expectations.core import RunIdentifier

    from lakejoin.expectations.suites import suite_for

    with _ONE_AT_A_TIME:
        context = open_context()
        identifier = RunIdentifier(run_name=re.sub(r"[^\w .:+=-]", "_", run))  # it names a folder
        checked = {asset.name: _check(context, asset, identifier) for asset in assets}
        found = {key: result for of in checked.values() for key, result in of.run_results.items()}
        suites = [suite_for(asset.name, asset.kind) for asset in assets]
        unpublished = None if docs is None else publish(docs, suites, found)
    results = {
        name: rule_results(validated)
        for name, result in checked.items()
        for validated in result.run_results.values()  # one: a checkpoint validates one asset
    }
    return Validated(results, unpublished)


def judge_assets(assets: Sequence[Asset]) -> Mapping[str, list[RuleResult]]:
    """Check each asset's frames against its rules without Great Expectations: all small assets by one Spark query.

    Returns the results of each asset, in the order of its rules. Raises what Spark raises where frames cannot be read.
    """
    broken = {
        asset.name: broken_rules(asset.frames, asset.kind, small=False) for asset in assets if not asset.small
    }
    small = [
        gate(asset.frames, asset.kind, small=True).withColumn("asset", F.lit(asset.name))
        for asset in assets
        if asset.small
    ]
    for row in reduce(DataFrame.unionAll, small).collect() if small else ():
        broken.setdefault(row["asset"], []).append(row)
    return {asset.name: _judged(asset, broken.get(asset.name, [])) for asset in assets}


def _judged(asset: Asset, broken: Iterable[Row]) -> list[RuleResult]:
    statements = {rule.name: rule.statement for rule in rules_for(asset.kind)}
    return [
        RuleResult(
            found["rule"],
            statements[found["rule"]],
            success=not found["offending"],
            unexpected_count=found["offending"],
            sample=tuple(found["sample"]),
        )
        for found in _of_each_rule(asset, broken)
    ]


def _of_each_rule(asset: Asset, broken: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows of a gate in the order of the rules, with one for each rule that holds."""
    found = {row["rule"]: row.asDict() for row in broken}
    return [
        found.get(rule.name, {"rule": rule.name, "offending": 0, "sample": []})
        for rule in rules_for(asset.kind)
    ]


def _check(context: "AbstractDataContext", asset: Asset, run: "RunIdentifier") -> "CheckpointResult":
    from great_expectations import Checkpoint, ValidationDefinition
    from great_expectations.core.result_format import ResultFormat

    from lakejoin.expectations.suites import suite_for

    source = context.data_sources.add_spark(asset.name, persist=False)
    batch = source.add_dataframe_asset(asset.name).add_batch_definition_whole_dataframe(asset.kind)
    suite = context.suites.add_or_update(suite_for(asset.name, asset.kind))
    definition = ValidationDefinition(name=asset.name, data=batch, suite=suite)
    checkpoint = Checkpoint(
        name=asset.name,
        validation_definitions=[context.validation_definitions.add(definition)],
        result_format=ResultFormat.COMPLETE,  # keeps the offending rows
    )
    results = _results(asset)
    return context.checkpoints.add(checkpoint).run({"dataframe": results}, run_id=run)


def _results(asset: Asset) -> DataFrame:
    """Return the result of every rule, those that hold included; a query of them starts no Spark job."""
    results = _of_each_rule(asset, broken_rules(asset.frames, asset.kind, small=asset.small))
    # In the session that Great Expectations will find, which may be another than that of the frames. From Arrow it is a
    # relation of the plan; from rows it would go through Python workers at each use.
    return SparkSession.builder.getOrCreate().createDataFrame(pa.Table.from_pylist(results, _RESULT))
