"""Makes the reference of the configuration file from the model: a JSON Schema and a page of documentation.

`python -m lakejoin.orchestration.config.docs.reference` writes both; a test compares the files with the model.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakejoin.orchestration.config.docs.text import EXAMPLE, MISTAKES, PAGE
from lakejoin.orchestration.config.loading import load_text
from lakejoin.orchestration.config.pipeline import Pipeline
from lakejoin.orchestration.config.problems import ConfigurationError
from lakejoin.orchestration.config.schema.column import Column
from lakejoin.orchestration.config.schema.column_types import NAMES
from lakejoin.orchestration.config.schema.csv_options import CsvOptions
from lakejoin.orchestration.config.schema.expect import Expect, InputExpect, Verified
from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.functions import FUNCTIONS
from lakejoin.orchestration.config.schema.joins import Group, Join, KeptHistory, RightSide, Star, StreamJoin
from lakejoin.orchestration.config.schema.materialized import Materialized
from lakejoin.orchestration.config.schema.model import Engine, Maintenance, Spark, Table, Versioned
from lakejoin.orchestration.config.schema.operation import Operation
from lakejoin.orchestration.config.schema.sizes import SIZE_PATTERN
from lakejoin.orchestration.config.schema.source import Limits, Security, Source
from lakejoin.orchestration.config.schema.stream import Stream
from lakejoin.orchestration.config.schema.values import DURATION_PATTERN

SCHEMA_FILE = Path(__file__).parents[2] / "lakejoin.schema.json"
PAGE_FILE = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"

_PATTERNS = {DURATION_PATTERN: "duration", SIZE_PATTERN: "size"}
_WORDS = {
    "string": "text",
    "boolean": "`true`, `false`",
    "number": "number",
    "integer": "whole number",
    "array": "list",
    "object": "mapping",
}


def json_schema() -> dict[str, Any]:
    """A JSON Schema for editors; values that must fit together are checked by `load` only."""
    schema = _tidy(Pipeline.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "lakejoin.yaml", **schema}


def schema_text() -> str:
    """The contents of `lakejoin.schema.json`."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def page_text() -> str:
    """The contents of `docs/configuration.md`."""
    models: dict[str, type[Frozen]] = {
        "pipeline": Pipeline,
        "spark": Spark,
        "engine": Engine,
        "maintenance": Maintenance,
        "expect": Expect,
        "verified": Verified,
        "expect_of_input": InputExpect,
        "table": Table,
        "versioned": Versioned,
        "column": Column,
        "source": Source,
        "op": Operation,
        "security": Security,
        "csv": CsvOptions,
        "limits": Limits,
        "stream": Stream,
        "join": Join,
        "star": Star,
        "right_side": RightSide,
        "stream_join": StreamJoin,
        "group": Group,
        "history": KeptHistory,
        "materialized": Materialized,
    }
    tables = {name: "\n".join(_rows(model)) for name, model in models.items()}
    types = ", ".join(f"`{name}`" for name in NAMES)
    functions = ", ".join(f"`{name}`" for name in sorted(FUNCTIONS))
    texts = {"example": EXAMPLE, "mistakes": MISTAKES, "messages": _messages(MISTAKES)}
    return PAGE.substitute(tables, **texts, types=types, functions=functions)


def main() -> None:
    """Write both files."""
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    PAGE_FILE.parent.mkdir(parents=True, exist_ok=True)
    PAGE_FILE.write_text(page_text(), encoding="utf-8")
    sys.stdout.write(f"{SCHEMA_FILE}\n{PAGE_FILE}\n")


def _messages(text: str) -> str:
    """What `load` says of a file with mistakes."""
    try:
        load_text(text, "lakejoin.yaml")
    except ConfigurationError as error:
        return str(error)
    raise AssertionError("the example of mistakes has none")


def _tidy(node: Any) -> Any:
    """The schema without generated titles, its texts on one line, and no names but those that fit."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidied = {key: _tidy(value) for key, value in node.items() if key != "title"}
    if isinstance(tidied.get("description"), str):
        tidied["description"] = " ".join(tidied["description"].split())
    if "patternProperties" in tidied:
        tidied["additionalProperties"] = False
    return tidied


def _rows(model: type[Frozen]) -> Iterator[str]:
    """The keys of a mapping as rows of a Markdown table."""
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    schema = _tidy(model.model_json_schema())
    schema = schema.get("anyOf", [schema])[-1]  # of a column, whose type may stand alone
    for name, field in model.fields_by_key().items():
        part = schema["properties"][name]
        default = "required" if field.is_required() else _default(part.get("default"))
        meaning = " ".join((field.description or "").split()).replace("|", "\\|")
        yield f"| `{name}` | {_value(part)} | {default} | {meaning} |"


def _default(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return "empty" if value in ({}, [], "") else "see below" if isinstance(value, dict) else f"`{text}`"


def _value(part: dict[str, Any]) -> str:
    """What a key takes, in a word or two."""
    ways = [way for way in part.get("anyOf", [part]) if way.get("type") != "null"]
    return ", ".join(map(_way, ways))


def _way(part: dict[str, Any]) -> str:
    choices = part.get("enum") or ([part["const"]] if "const" in part else [])
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if part.get("pattern") in _PATTERNS:
        return _PATTERNS[part["pattern"]]
    if part.get("format") == "date":
        return "date"
    return _WORDS[part.get("type", "object")]


if __name__ == "__main__":
    main()
