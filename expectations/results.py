"""Reads the result of each rule for an asset from the results of Great Expectations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakejoin.expectations.rules import RULES

if TYPE_CHECKING:  # importing Great Expectations takes seconds
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult

_ORDER = {rule.name: place for place, rule in reversed([*enumerate(RULES)])}
"""The first place of each name; two kinds may share one."""


@dataclass(frozen=True)
class RuleResult:
    """What came of one rule for one asset."""

    rule: str
    statement: str
    success: bool
    unexpected_count: int
    """How many rows offend the rule; 0 where `error` says that they could not be counted."""
    sample: tuple[str, ...]
    """A few of them as JSON texts."""
    error: str | None = None
    """Why the rule could not be checked, which counts as a failure."""


def rule_results(validated: "ExpectationSuiteValidationResult") -> list[RuleResult]:
    """Return the results of an asset in the order of the rules, which Great Expectations does not keep."""
    results = [_result(result) for result in validated.results]
    return sorted(results, key=lambda result: _ORDER.get(result.rule, len(_ORDER)))


def _result(result: "ExpectationValidationResult") -> RuleResult:
    assert result.expectation_config is not None  # every expectation of a suite has one
    meta, found = result.expectation_config.meta or {}, result.result
    return RuleResult(
        rule=meta["rule"],
        statement=meta["statement"],
        success=bool(result.success),
        unexpected_count=int(found.get("observed_value") or 0),
        sample=tuple((found.get("details") or {}).get("unexpected_rows") or ()),
        error="; ".join(_messages(result.exception_info)) or None,
    )


def _messages(exception_info: Mapping[str, object]) -> Iterator[str]:
    """Yield the messages of what was raised: one exception, or one for each metric that failed."""
    parts = [exception_info] if "raised_exception" in exception_info else exception_info.values()
    for part in parts:
        if isinstance(part, Mapping) and part.get("raised_exception"):
            yield str(part.get("exception_message"))
