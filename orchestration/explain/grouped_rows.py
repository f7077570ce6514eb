"""Says why a row of groups is as it is or is not there: which rows are in its group."""

from collections.abc import Sequence

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.standard_sql import translated
from lakejoin.orchestration.explain.explanation import Explanation, Finding, shown
from lakejoin.orchestration.explain.joined_rows import history_findings, joined_row, row_findings
from lakejoin.orchestration.explain.log_rows import MOST, Key, Logs, Row
from lakejoin.orchestration.explain.messages import subscribers
from lakejoin.orchestration.explain.sentences import counted, first_of, shown_values
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.storage.delta_log.arrow_query import identifier
from lakejoin.storage.lake.layout import subscription_log_of
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.schemas import BATCH


def explain_group(pipeline: Pipeline, logs: Logs, group: GroupSpec, key: Key) -> Explanation:
    """Explain the row of a group, or why there is none. Raises what reading the logs raises."""
    row = joined_row(logs, group, key)
    members = _members(pipeline, logs, group, key)
    if row is not None:
        answer = f"{group.name} {key} is there, as batch {row[BATCH]} wrote it"
    elif group.having is not None and not any(finding.values.get("rows") == 0 for finding in members):
        answer = f"{group.name} {key} is not there: it does not meet its condition: {group.having}"
    else:
        answer = f"{group.name} {key} is not there: no row of {group.left} is in the group"
    return Explanation(
        group.name,
        key.texts,
        logs.batch,
        row is not None,
        answer,
        (*row_findings(group, row), *history_findings(logs, group, key), *members),
        (f"a row of {group.left} that comes into the group, leaves it, or changes within it",),
        {} if row is None else _columns(group, row, members),
    )


def _columns(group: GroupSpec, row: Row, members: Sequence[Finding]) -> dict[str, Finding]:
    """What each column of a group is made of."""
    made = {entry.name: entry.column or entry.sql for entry in group.by}
    for one in group.aggregates:
        made[one.name] = f"{one.function}({', '.join(one.arguments) or '*'})"
    values = shown_values(row, group.columns)
    return {
        name: Finding(
            f"{name} of {group.name} is {shown(text)}, {made[name]} of the rows in the group",
            {"value": text},
            tuple(members),
        )
        for name, text in values.items()
    }


def _members(pipeline: Pipeline, logs: Logs, group: GroupSpec, key: Key) -> list[Finding]:
    """The rows that are in a group: how many, and those that changed last."""
    if logs.has(subscription_log_of(group.name)):
        held = key.among(group.joined_key, "foreign_key")
        number, first = subscribers(logs, group.parts[0], held)
        says = f"in the group: {counted(number, 'row')} of {group.left}{first_of(number, first)}"
        return [Finding(says, {"rows": number, "first": first})]
    conditions = _conditions(group, key)
    if conditions is None:
        by = ", ".join(entry.sql for entry in group.by)
        return [
            Finding(
                f"its rows are those of {group.left} with these values of {by}: `lakejoin show --where` lists them"
            )
        ]
    rows = arrow_tables(pipeline)[group.left]
    if not any(map(logs.has, rows.tables)):
        return []
    table = rows.table(logs.lake, logs.plan, [*group.left_key, BATCH], conditions)
    newest = table.sort_by([(BATCH, "descending"), *[(name, "ascending") for name in group.left_key]])
    last = Finding(
        "those that changed last",
        because=tuple(
            Finding(
                f"batch {member[BATCH]}: {group.left} {', '.join(str(member[name]) for name in group.left_key)}"
            )
            for member in newest.slice(0, MOST).to_pylist()
        ),
    )
    count = Finding(
        f"in the group: {counted(table.num_rows, 'row')} of {group.left}", {"rows": table.num_rows}
    )
    return [Finding(count.says, count.values, (last,))] if table.num_rows else [count]


def _conditions(group: GroupSpec, key: Key) -> str | None:
    """The condition that a row is in a group; None where only Spark can tell."""
    found: list[str] = []
    for entry, value, column in zip(group.by, key.values, key.columns, strict=True):
        text = identifier(entry.column) if entry.column else translated(entry.sql, group.left_columns)
        if text is None:
            return None
        one = Key(type(key.columns)([column]), (value,)).among(["it"])
        found.append(one.replace(identifier("it"), f"({text})", 1))
    return " AND ".join(found)
