"""Says why a joined row is as it is or is not there: of a foreign-key join or a star."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from lakejoin.orchestration.explain.columns import column_of, pair_columns
from lakejoin.orchestration.explain.explanation import Explanation, Finding
from lakejoin.orchestration.explain.log_rows import Key, Logs, Row
from lakejoin.orchestration.explain.messages import Exchange, exchange
from lakejoin.orchestration.explain.sentences import listed, shown_values, valid
from lakejoin.storage.lake.layout import history_of, joined_of
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, VALID_FROM, VALIDITY, quoted
from lakejoin.transforms.model.specs import JoinSpec, StarSpec

Explain = Callable[[str, Key], Explanation]
"""Explains a row of a side, by its name and key."""


@dataclass(frozen=True)
class _Side:
    """A right side of a left row."""

    exchange: Exchange
    row: Explanation | None
    """The right row that the left row refers to; None where it refers to none."""

    @property
    def part(self) -> JoinSpec:
        return self.exchange.part

    @property
    def there(self) -> bool:
        return self.row is not None and self.row.found

    @property
    def expression(self) -> str:
        return ", ".join(map(_plain, self.part.foreign_key))

    @property
    def finding(self) -> Finding:
        """What it brings to the row, and how that came about."""
        if self.row is None:
            says = f"refers to no row of {self.part.right}: its foreign key ({self.expression}) is null"
            return Finding(says, because=tuple(self.exchange.findings))
        says = f"refers to {self.part.right} {self.exchange.refers_to} by its foreign key ({self.expression})"
        return Finding(
            says,
            because=(
                Finding(self.row.answer, because=self.row.findings),
                Finding("what the two sides said", because=tuple(self.exchange.findings)),
            ),
        )


def explain_joined(logs: Logs, join: JoinSpec | StarSpec, key: Key, explain: Explain) -> Explanation:
    """Explain a joined row, or why there is none. Raises what reading the logs raises."""
    left_key = _left_part(join, key)
    left = explain(join.left, left_key)
    sides = [_side(logs, part, left_key, explain) for part in join.parts]
    row = joined_row(logs, join, key)
    if row is None:
        answer = f"{join.name} {key} is not there: {_why_absent(join, key, left, sides)}"
    else:
        answer = f"{join.name} {key} is there, as batch {row[BATCH]} wrote it: {_why_there(left, sides)}"
    return Explanation(
        join.name,
        key.texts,
        logs.batch,
        row is not None,
        answer,
        (
            *row_findings(join, row),
            *history_findings(logs, join, key),
            Finding(left.answer, because=left.findings),
            *[side.finding for side in sides],
        ),
        tuple(_next(join, left_key, sides)),
        {} if row is None else dict(_columns(join, row, left, sides)),
    )


def joined_row(logs: Logs, result: ResultSpec, key: Key) -> Row | None:
    """Return a row of a result by its key, None where there is none."""
    names = [BATCH, *result.columns.names]
    found = logs.rows(joined_of(result.name), names, key.among(result.joined_key), most=1)
    return found[0] if found else None


def row_findings(result: ResultSpec, row: Row | None) -> list[Finding]:
    """Return what the row is, and since which batch."""
    if row is None:
        return []
    values = shown_values(row, result.columns)
    return [Finding(f"the row: {listed(values)}", {"batch": row[BATCH], "row": values})]


def history_findings(logs: Logs, result: ResultSpec, key: Key) -> list[Finding]:
    """Return which versions a row had, where the history of its result is kept; of many the last ones."""
    if result.history is None:
        return []
    names = [*result.columns.names, *VALIDITY, BATCH]
    where = key.among(result.joined_key)
    versions = logs.rows(history_of(result.name), names, where, last_by=(VALID_FROM, BATCH))
    shown = [Finding(f"{valid(row)}, batch {row[BATCH]}: {_listed(row, result)}") for row in versions]
    return [Finding("its history", because=tuple(shown))] if shown else []


def _listed(row: Row, result: ResultSpec) -> str:
    return listed(shown_values(row, result.columns))


def _left_part(join: JoinSpec | StarSpec, key: Key) -> Key:
    """The left key within the key of a joined row, which ends with it."""
    number = len(join.left_key)
    return Key(StructType([join.left_columns[name] for name in join.left_key]), key.values[-number:])


def _side(logs: Logs, part: JoinSpec, left: Key, explain: Explain) -> _Side:
    said = exchange(logs, part, left)
    key = said.refers_to
    return _Side(said, None if key is None else explain(part.right, key))


def _columns(
    join: JoinSpec | StarSpec, row: Row, left: Explanation, sides: Sequence[_Side]
) -> Iterator[tuple[str, Finding]]:
    """Yield each column of a joined row with the columns of its sides that it is made of."""
    made = pair_columns(left.columns, {side.part: side.row for side in sides})
    for name, text in shown_values(row, join.columns).items():
        yield name, column_of(join, name, text, made)


def _why_there(left: Explanation, sides: Sequence[_Side]) -> str:
    met = [f"{side.part.right} {side.exchange.refers_to}" for side in sides if side.there]
    lacking = [side.part.right for side in sides if not side.there]
    says = f"{left.called} is there"
    says += f", and so is {' and '.join(met)}" if met else ""
    return says + (f"; without a row of {' and '.join(lacking)}, whose columns are null" if lacking else "")


def _why_absent(join: JoinSpec | StarSpec, key: Key, left: Explanation, sides: Sequence[_Side]) -> str:
    if not left.found:
        return left.answer
    for side in sides:
        if side.part.how == "inner" and not side.there:
            why = side.row.answer if side.row else f"its foreign key ({side.expression}) is null"
            return f"the join with {side.part.right} is an inner one, and {why}"
    if isinstance(join, JoinSpec) and join.result_key == "combined":
        now = sides[0].exchange.refers_to
        if now is not None and now.values != key.values[: len(now.values)]:
            return f"{left.called} refers to {join.right} {now} now"
    if join.where is not None:
        return f"both sides are there, and the row does not meet the condition of the join: {join.where}"
    return (
        "although its sides are there; that must not be: `lakejoin check` looks at the whole result, and "
        f"`lakejoin run --rebuild {join.name}` computes it anew"
    )


def _plain(text: str) -> str:
    """An expression, or a column without backticks."""
    column = text[1:-1]
    return column if text == quoted(column) else text


def _next(join: JoinSpec | StarSpec, left: Key, sides: Sequence[_Side]) -> list[str]:
    found = [f"a later change of {join.left} {left}"]
    for side in sides:
        key = side.exchange.refers_to
        if key is not None:
            found.append(
                f"a later change of {side.part.right} {key}"
                + ("" if side.there else ", which would bring it")
            )
    return found
