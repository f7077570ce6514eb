"""Checks how long input has waited, where the file bounds it: a check that warns and fails nothing.

It looks at listings alone. A run looks once after its batches; that nothing runs any more, a sensor has to see.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    DagsterInstance,
    MetadataValue,
)

from lakejoin.orchestration.checks.figures import Figure, lags
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.op_checks import OpChecks, Session, evaluation
from lakejoin.transforms.model.printable_text import printable

NAME = "lag"


def lag_checks(embedded: EmbeddedPipeline) -> OpChecks:
    """The check of every table and stream whose lag the file bounds."""
    subjects = _subjects(embedded)

    def evaluate(
        _context: AssetExecutionContext, selected: Sequence[AssetCheckKey], _session: Session
    ) -> Iterator[AssetCheckResult]:
        found = _results(embedded) if selected else {}
        yield from (found[key] for key in selected)

    return OpChecks(
        [
            AssetCheckSpec(
                key.name,
                asset=key.asset_key,
                description=f"No input waits longer than {text}.",
                blocking=False,
            )
            for key, (_, text) in subjects.items()
        ],
        evaluate,
    )


def changed_lags(embedded: EmbeddedPipeline, instance: DagsterInstance) -> list[AssetCheckEvaluation]:
    """Return the checks whose verdict is not the one that was told last. No source is listed whose lag has no bound."""
    found = _results(embedded)
    records = instance.event_log_storage.get_asset_check_summary_records([*found])
    last = [(key, record.last_completed_check_execution_record) for key, record in records.items()]
    told = {
        key: done.evaluation.passed for key, done in last if done is not None and done.evaluation is not None
    }
    return [
        evaluation(key, result, blocking=False)
        for key, result in found.items()
        if told.get(key) is not result.passed
    ]


def _subjects(embedded: EmbeddedPipeline) -> Mapping[AssetCheckKey, tuple[str, str]]:
    """The names of tables and streams whose lag has a bound, with its text."""
    bounds = {name: embedded.pipeline.expected_of(name).lag for name in embedded.pipeline.inputs}
    return {
        AssetCheckKey(embedded.table_key(name), NAME): (name, bound.text)
        for name, bound in bounds.items()
        if bound is not None
    }


def _results(embedded: EmbeddedPipeline) -> Mapping[AssetCheckKey, AssetCheckResult]:
    found = {figure.subject: figure for figure in lags(embedded.pipeline, datetime.now(UTC))}
    return {key: _result(key, found[name]) for key, (name, _) in _subjects(embedded).items()}


def _result(check: AssetCheckKey, figure: Figure) -> AssetCheckResult:
    seconds = {} if figure.found is None else {"lag_seconds": MetadataValue.float(figure.found)}
    return AssetCheckResult(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=figure.holds,
        severity=AssetCheckSeverity.WARN,
        metadata={**seconds, "expected": MetadataValue.text(figure.bound.text)},
        description=printable(f"{figure.told[:1].upper()}{figure.told[1:]}; expected {figure.bound.text}."),
    )
