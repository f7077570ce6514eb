"""Makes Great Expectations suites of the rules: one suite for an asset, one expectation for each rule.

A rule reads several frames, but an expectation reads one batch. So the batch of an asset is the results of its rules
(`expectations.gate`), found by one query; each expectation reads the result of its own rule. This module imports Great
Expectations, which takes seconds.
"""

from typing import Any, ClassVar

from great_expectations.core import ExpectationSuite, ExpectationValidationResult
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.render.components import (
    CollapseContent,
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
    RenderedTableContent,
)
from great_expectations.render.renderer.renderer import renderer

from lakejoin.expectations.keys import Kind
from lakejoin.expectations.rules import Rule, rules_for
from lakejoin.transforms.model.printable_text import printable

_Style = tuple[str, dict[str, Any]]
"""The name of a value in a text, and how that value looks."""


class RuleHolds(UnexpectedRowsExpectation):
    """Expects that no row offends the rule in `meta`; the batch holds the results of an asset's rules."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.table",)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002 # the base class's signature
        execution_engine: ExecutionEngine[Any] | None = None,  # noqa: ARG002 # the base class's signature
    ) -> dict[str, Any]:
        """Read the rule's result. A missing one is an exception, which counts as a failure."""
        (result,) = metrics["unexpected_rows_query.table"]
        return {
            "success": result["offending"] == 0,
            "result": {
                "observed_value": result["offending"],
                "details": {"unexpected_rows": result["sample"]},
            },
        }

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    def _prescriptive_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,  # noqa: ARG003 # the base class's signature
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG003 # the base class's signature
        **_: object,
    ) -> list[RenderedStringTemplateContent]:
        """Render the rule's name and statement."""
        meta = _meta(configuration)
        style = ("rule", {"classes": ["badge", "badge-secondary", "mr-2"]})
        return [_text("$rule $statement", style=style, rule=meta["rule"], statement=meta["statement"])]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_TABLE)
    def _diagnostic_unexpected_table_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,  # noqa: ARG003 # the base class's signature
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG003 # the base class's signature
    ) -> list[RenderedTableContent | CollapseContent] | None:
        """Render the offending rows, and the SQL that found them to unfold."""
        if result is None:
            return None
        code = {"tag": "code"}
        blocks: list[RenderedTableContent | CollapseContent] = []
        if rows := (result.result.get("details") or {}).get("unexpected_rows"):
            blocks.append(
                RenderedTableContent(
                    content_block_type="table",
                    header_row=["Some of the offending rows"],
                    table=[[_text("$row", row=printable(row), style=("row", code))] for row in rows],
                    styling={"body": {"classes": ["table-bordered", "table-sm", "mt-3"]}},
                )
            )
        sql = _text("$sql", sql=_meta(result.expectation_config)["sql"], style=("sql", {"tag": "pre"}))
        return [*blocks, CollapseContent(collapse_toggle_link="SQL of the offending rows", collapse=[sql])]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)
    def _diagnostic_observed_value_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,  # noqa: ARG003 # the base class's signature
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG003 # the base class's signature
    ) -> str:
        """Render in words what the page's icons say, which come from another site."""
        if result is None or "observed_value" not in result.result:
            return "not checked"
        return "passed" if result.success else f"failed: {result.result['observed_value']} offending"


def suite_for(name: str, kind: Kind) -> ExpectationSuite:
    """Return the suite of an asset; its results are told apart by `meta["rule"]`, not by their order."""
    return ExpectationSuite(name=name, expectations=[_expectation(rule, kind) for rule in rules_for(kind)])


def _expectation(rule: Rule, kind: Kind) -> RuleHolds:
    return RuleHolds(
        unexpected_rows_query=f"SELECT offending, sample FROM {{batch}} WHERE rule = '{rule.name}'",
        meta={"rule": rule.name, "statement": rule.statement, "sql": _readable(rule.query(kind))},
    )


def _readable(sql: str) -> str:
    """Return SQL with the names of frames as they are."""
    return sql.replace("{", "").replace("}", "")


def _meta(configuration: ExpectationConfiguration | None) -> dict[str, str]:
    assert configuration is not None  # every page renders expectations of a suite
    return configuration.meta or {}


def _text(template: str, *, style: _Style, **values: str) -> RenderedStringTemplateContent:
    name, look = style
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={"template": template, "params": values, "styling": {"params": {name: look}}},
    )
