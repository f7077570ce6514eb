"""Makes asset checks of the rules of `expectations`: run once after a run's batches, over the rows they touched.

What the gates of these batches have judged is taken as it is; the other rules are run without Great Expectations. They
also look at what earlier runs published and did not check any more. The checks block: a rule that does not hold fails
the run, and shows the offending rows. Executed by themselves they look at all rows, and write Data Docs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    MetadataValue,
    TableColumn,
    TableMetadataValue,
    TableRecord,
    TableSchema,
)

from lakejoin.expectations.keys import Kind
from lakejoin.expectations.results import RuleResult
from lakejoin.expectations.rules import Rule, rules_for
from lakejoin.orchestration.checks.check_lake import Checked, check_lake
from lakejoin.orchestration.checks.join_rules import JOIN_RULES
from lakejoin.orchestration.checks.time_frames import HISTORY
from lakejoin.orchestration.config import Group, Pipeline, Star
from lakejoin.orchestration.defs.check_cursor import THROUGH, first_batch
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.gated_rules import judged_by_gates
from lakejoin.orchestration.defs.op_checks import OpChecks, Session
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.model.printable_text import printable, printable_code

Subjects = Mapping[AssetCheckKey, tuple[str, Rule]]
"""What is checked: the name by which the rule is run, and the rule."""


def rule_checks(embedded: EmbeddedPipeline) -> OpChecks:
    """Every rule of every table and joined table of a pipeline."""
    pipeline, subjects = embedded.pipeline, _subjects(embedded)

    def known(journal: Journal, first: int) -> Mapping[AssetCheckKey, AssetCheckResult]:
        judged = judged_by_gates(pipeline, journal, first)
        through = len(journal.published)
        return {key: _judged(key, first, through) for key, (name, _) in subjects.items() if name in judged}

    def evaluate(
        context: AssetExecutionContext, selected: Sequence[AssetCheckKey], session: Session
    ) -> Iterator[AssetCheckResult]:
        journal = Journal(Lake(pipeline.lake))
        if not journal.published:
            yield from (_nothing_to_check(key, "No batch is finished yet", through=0) for key in selected)
            return
        first = first_batch(context, selected, len(journal.published))
        judged = {} if first is None else known(journal, first)
        yield from (judged[key] for key in selected if key in judged)
        if left := {key: subjects[key] for key in selected if key not in judged}:
            checked = check_lake(
                pipeline,
                session(),
                batches=None if first is None else len(journal.published) - first + 1,
                names={name for name, _ in left.values()},
                run=f"Dagster run {context.run.run_id[:8]}",
                publish=first is None,
            )
            if checked.unpublished is not None:
                context.log.warning(printable(checked.unpublished))
            yield from _looked_at(checked, left, first)

    return OpChecks(
        [
            AssetCheckSpec(key.name, asset=key.asset_key, description=rule.statement, blocking=True)
            for key, (_, rule) in subjects.items()
        ],
        evaluate,
        known,
    )


def _looked_at(checked: Checked, subjects: Subjects, first: int | None) -> Iterator[AssetCheckResult]:
    """What was found in the rows that batches from `first` on touched, or in all rows."""
    through = _seen_through(checked, first)
    for check, (name, rule) in subjects.items():
        if name in checked.results:
            result = next(result for result in checked.results[name] if result.rule == rule.name)
            yield _rule_result(check, result, checked, through, before=first and first - 1)
        else:
            yield _nothing_to_check(check, "No batch has begun the join yet", through=through)


def _subjects(embedded: EmbeddedPipeline) -> Subjects:
    pipeline = embedded.pipeline
    found: list[tuple[AssetKey, str, Kind]] = [
        (embedded.table_key(name), name, "table") for name in pipeline.tables
    ]
    for name, table in pipeline.tables.items():
        if table.versioned:
            found.append((embedded.step_key(name, "versions"), HISTORY.format(name), "history"))
    for name, join in pipeline.joins.items():
        rules, key = JOIN_RULES[type(join)], embedded.step_key(name, "joined")
        found += [
            (key, name + after, kind) for after, kind in rules.kinds(pipeline.spec_of_join(name)).items()
        ]
        if rules.of_buffer and join.waits:
            called, kind = rules.of_buffer
            found.append((embedded.step_key(name, "buffer"), called.format(name), kind))
    return {
        AssetCheckKey(key, f"{_side(pipeline, name)}{rule.name}"): (name, rule)
        for key, name, kind in found
        for rule in rules_for(kind)
    }


def _side(pipeline: Pipeline, checked: str) -> str:
    """What the checks of a star's right side, or of the rows of groups, are called before their rule."""
    join, _, side = checked.partition(".")
    return f"{side}_" if side and isinstance(pipeline.joins.get(join), Star | Group) else ""


def _seen_through(checked: Checked, first: int | None) -> int:
    """Up to which batch nothing is left to look at, where a check should have begun with `first`."""
    if first is not None and checked.since is not None and checked.since >= first:
        return first - 1  # one was published meanwhile, and pushed the first one out of sight
    return checked.through


def _rule_result(
    check: AssetCheckKey, result: RuleResult, checked: Checked, through: int, *, before: int | None
) -> AssetCheckResult:
    """What a check found. `before`: up to which batch it had looked before; None where it looks at all rows."""
    scope = (
        "all rows" if checked.since is None else f"rows of batches {checked.since + 1} to {checked.through}"
    )
    metadata: dict[str, MetadataValue] = {
        "offending_rows": MetadataValue.int(result.unexpected_count),
        "looked_at": MetadataValue.text(scope),
    }
    if checked.docs is not None and checked.unpublished is None:
        metadata["data_docs"] = MetadataValue.path(str(checked.docs.index.absolute()))
    seen = before if result.error else through
    if seen is not None:
        metadata[THROUGH] = MetadataValue.int(seen)
    if result.sample:
        metadata["sample"] = sample_table(result.sample)
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=result.success,
        metadata=metadata,
        description=_verdict(result),
    )


def _judged(check: AssetCheckKey, first: int, through: int) -> AssetCheckResult:
    """What a gate has found: a batch of which a rule did not hold was not published."""
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=True,
        metadata={
            "offending_rows": MetadataValue.int(0),
            "looked_at": MetadataValue.text(f"rows of batches {first} to {through}, before each commit"),
            THROUGH: MetadataValue.int(through),
        },
        description="Holds.",
    )


def _nothing_to_check(check: AssetCheckKey, why: str, *, through: int) -> AssetCheckResult:
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=True,
        metadata={THROUGH: MetadataValue.int(through)},
        description=f"{why}: nothing to check.",
    )


def _verdict(result: RuleResult) -> str:
    if result.error:
        return f"Could not be checked: {printable_code(result.error)}"
    if result.success:
        return "Holds."
    example = f", such as {printable_code(result.sample[0])}" if result.sample else ""
    return f"{result.unexpected_count} rows offend it{example}"


def sample_table(rows: Sequence[str]) -> TableMetadataValue:
    """Rows given as JSON objects of the same fields, as a table of Dagster's, whose cells are shown as they are.

    In Markdown a value could be a link or a picture of another site.
    """
    records = [{printable(name): _cell(value) for name, value in json.loads(row).items()} for row in rows]
    schema = TableSchema([TableColumn(name) for name in records[0]])
    return MetadataValue.table([TableRecord(record) for record in records], schema)


def _cell(value: object) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
