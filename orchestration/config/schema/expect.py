"""Models the bounds that figures of a pipeline are held against: whoever looks is told, and nothing is stopped."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.sizes import SHARE_PATTERN, parse_share
from lakejoin.orchestration.config.schema.values import DURATION_PATTERN, parse_duration


@dataclass(frozen=True)
class Bound:
    """What a figure may be at most."""

    limit: float
    """A share, or a number of seconds."""
    is_inclusive: bool
    """Whether the limit itself may be reached."""
    text: str
    """As a person writes it."""

    @classmethod
    def at_most(cls, share: float) -> "Bound":
        """A share that may be reached."""
        return cls(share, is_inclusive=True, text=f"<= {share * 100:.15g} %")

    def allows(self, found: float) -> bool:
        """Whether a figure is within it."""
        return found <= self.limit if self.is_inclusive else found < self.limit


def _bound(parse: Callable[[Any], float], example: str) -> Callable[[Any], Bound]:
    def bound(value: Any) -> Bound:
        if isinstance(value, Bound):
            return value
        matched = re.fullmatch(r"(<=?) *([^ <=].*)", value) if isinstance(value, str) else None
        if matched is None:
            raise ValueError(f"expected '<' or '<=' and what the figure may be at most, as {example!r}")
        try:
            limit = parse(matched[2])
        except ValueError as error:
            raise ValueError(f"behind {matched[1]!r}: {error}") from error
        if limit == 0 and matched[1] == "<":
            raise ValueError(f"can never be met; write '<= {matched[2]}' for none at all")
        return Bound(limit, is_inclusive=matched[1] == "<=", text=f"{matched[1]} {matched[2]}")

    return bound


def _seconds(text: Any) -> float:
    return parse_duration(text).total_seconds()


def _schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern.replace("^", "^<=? *", 1)})


_Share = Annotated[Bound, BeforeValidator(_bound(parse_share, "< 1 %")), _schema(SHARE_PATTERN)]
_Lag = Annotated[Bound, BeforeValidator(_bound(_seconds, "< 15 minutes")), _schema(DURATION_PATTERN)]


class InputExpect(Frozen):
    """What is expected of one table or stream."""

    quarantined: _Share | None = None
    """The share of its records that go to quarantine, as `"< 1 %"`; of all records, where all of the lake is looked
    at."""
    lag: _Lag | None = None
    """How long the oldest of what no batch has read has waited, as `"< 15 minutes"`: by the time at which a file was
    written, a version committed, a record appended to its topic, or a dump was due."""


class Verified(Frozen):
    """What of each result is computed a second time after a run of Dagster, by DuckDB, and has to be equal."""

    rows: Annotated[int, Field(ge=1)] | None = None
    """About so many rows of each result, the next time other ones, until all were seen. By default all."""
    blocking: bool = False
    """Whether a difference fails the run and holds up what is downstream; otherwise the check warns."""


class Expect(InputExpect):
    """What is expected of every table, stream and join that does not say it itself."""

    dangling: _Share | None = None
    """The share of the foreign keys of a join that point at no right row, as `"< 0.1 %"`, where the join has no
    `max_dangling`."""
    verified: Verified | None = None
    """That results are what DuckDB computes from the current rows: `{}`, or a mapping; see below. Needs the extra
    `verify`. By default only `lakejoin verify` computes them a second time."""
