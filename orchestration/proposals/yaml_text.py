"""Writes a proposal as the text of a configuration file, with a comment beside all that was guessed."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from lakejoin.orchestration.proposals.joins import Join
from lakejoin.orchestration.proposals.proposal import Proposal
from lakejoin.orchestration.proposals.tables import Column, Table
from lakejoin.transforms.model.printable_text import printable

_WIDE = 1 << 30

TEMPLATE = """\
{editor}
# A pipeline that joins orders with their customers. Put your own tables in the place of these two, then:
#   lakejoin validate {file}   says every mistake in the file
#   lakejoin run {file}        works off what there is
name: {name}
lake: ./lake # every table is written below this directory

tables:
  orders:
    # `format`: debezium, jsonl, csv, parquet, avro, orc, delta, kafka or jdbc. {{date}} in a path (YYYY-MM-DD) makes
    # daily partitions, and * stands for any letters. Rows say by a column `op` what happened: c, r or u; d deletes.
    source: {{format: jsonl, path: "data/orders/{{date}}.jsonl"}}
    columns: # those that you want, with their Spark SQL types
      order_id: bigint
      customer_id: bigint
      amount: decimal(12,2)
      updated_at: timestamp
    key: [order_id] # what identifies a row
    sequence: [updated_at] # what orders the changes of a row; of format debezium `source`, the position in the log

  customers:
    source: {{format: jsonl, path: "data/customers/{{date}}.jsonl"}}
    columns: {{customer_id: bigint, name: string, city: string}}
    key: [customer_id]

joins:
  orders_with_customers:
    left: orders
    right: customers
    foreign_key: [customer_id] # columns of orders that refer to the key of customers
    how: left # or inner
    prefix: customer_ # stands before the names of the columns of customers
"""


def template(editor: str, file: str, name: str) -> str:
    """Return a small file to begin with. `editor`: the line by which editors know the schema."""
    return TEMPLATE.format(editor=editor, file=_commented(file), name=name)


def text_of(proposal: Proposal, editor: str, name: str) -> str:
    """Return the text of a file that declares all that is proposed. `editor`: as `template` has it."""
    lines = [
        editor,
        "# Proposed by `lakejoin init` from the first records of some files: read it, and correct what is wrong.",
        *(f"# Left out: {_commented(line)}" for line in proposal.left_out),
        f"name: {name}",
        "lake: ./lake",
        "",
        "tables:",
    ]
    for table in proposal.tables:
        lines += [*_table_lines(table), ""]
    if proposal.joins:
        lines.append("joins:")
        for join in proposal.joins:
            lines += _join_lines(join)
    return "\n".join(lines).rstrip("\n") + "\n"


def _table_lines(table: Table) -> Iterator[str]:
    yield f"  {table.name}:"
    if said := table.notes.get("source", ""):
        yield f"    # {_commented(said)}"
    yield f"    source: {flow(table.source)}"
    yield "    columns:"
    for name, column in table.columns.items():
        yield f"      {flow(name)}: {_column(column)}{_note(column.note)}"
    yield f"    key: {flow(list(table.key))}{_note(table.notes.get('key', ''))}"
    if table.sequence:
        written = table.sequence if isinstance(table.sequence, str) else flow(list(table.sequence))
        yield f"    sequence: {written}{_note(table.notes.get('sequence', ''))}"
    else:
        yield "    # no `sequence`: the changes of a row are in the order of the files' names and lines"


def _column(column: Column) -> str:
    said = {"type": column.type, "as": column.encoding, "from": column.source_name}
    given = {name: value for name, value in said.items() if value is not None}
    return flow(given if len(given) > 1 else column.type)


def _join_lines(join: Join) -> Iterator[str]:
    said = {
        "left": join.left, "right": join.right, "foreign_key": list(join.foreign_key), "how": "left",
        "prefix": join.prefix,
    }  # fmt: skip
    yield f"  # {_commented(join.note)}"
    yield f"  {join.name}: {flow(said)}"


def flow(value: Any) -> str:
    """Return a value as YAML on one line; what acts on a terminal or cannot be seen is escaped."""
    shown = all(text.isprintable() for text in _texts(value))
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=shown, width=_WIDE)
    return str(text).removesuffix("\n").removesuffix("\n...")


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for name, member in value.items():
                yield from (*_texts(name), *_texts(member))
        case list() | tuple():
            for member in value:
                yield from _texts(member)


def _note(text: str) -> str:
    return f" # {_commented(text)}" if text else ""


def _commented(text: str) -> str:
    return str(printable(text, 300))
