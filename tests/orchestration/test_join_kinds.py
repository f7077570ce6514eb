"""Every table of the kinds of joins has a line for each kind that the configuration knows."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from lakejoin.orchestration.config.docs.reference import page_text
from lakejoin.orchestration.config.schema.joins import JOIN_KINDS

PACKAGE = Path(__file__).parents[2] / "orchestration"
ROOMS = {"batch", "checks", "config", "defs", "lake_state", "maintenance", "show"}
_TABLE = re.compile(r"^(\w+): Mapping\[type\[AnyJoin\]", re.MULTILINE)
TABLES = {
    f"{'.'.join(file.relative_to(PACKAGE.parent).with_suffix('').parts)}:{name}": file
    for file in sorted(PACKAGE.rglob("*.py"))
    for name in _TABLE.findall(file.read_text())
}


@pytest.mark.parametrize("table", TABLES)
def test_table_has_a_line_for_each_kind(table: str) -> None:
    """A kind that is declared and unknown to a room is told of here, and not by a batch."""
    module, _, name = table.partition(":")
    found: Mapping[type, object] = getattr(importlib.import_module(module), name)

    assert list(found) == list(JOIN_KINDS.values())


def test_rooms_that_know_kinds_say_so_in_a_table() -> None:
    """The tables are found by how they are declared: one that is declared otherwise would not be looked at."""
    assert {file.relative_to(PACKAGE).parts[0] for file in TABLES.values()} == ROOMS


def test_names_that_only_one_kind_has_are_told_apart() -> None:
    """What names the left side tells the kinds of a lake's joins apart, and whatever is declared has a reference."""
    told = [kind.told_by for kind in JOIN_KINDS.values()]

    assert len({*told}) == len(told)
    for kind in JOIN_KINDS.values():
        assert kind.told_by in kind.model_fields
        assert all(f"| `{key}` |" in page_text() for key in kind.model_fields)
