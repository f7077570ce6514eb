"""Models how the Delta table of a result, or of its history, is kept: name in a catalog, layout, properties."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.values import SettingText
from lakejoin.transforms.model.declaration import UNDECLARED, Declaration

CLUSTERED_BY = 4
"""By so many columns Delta Lake clusters at most."""
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TABLE = re.compile(rf"{_NAME}(\.{_NAME}){{1,2}}")
_DELTA = frozenset({"delta.checkpointInterval"})
"""Properties of Delta Lake that change nothing of how we write a table."""
_TAKEN = ("delta.", "parquet.", "spark.", "option.")
_SAID_ELSEWHERE = frozenset({"comment", "location", "owner", "provider", "external"})


def check_table(name: str) -> str:
    """A name of a table in a catalog."""
    if not _TABLE.fullmatch(name):
        raise ValueError(
            "expected 'schema.table' or 'catalog.schema.table', each a letter or '_', then letters, digits and '_'"
        )
    return name


def check_property(name: str) -> str:
    """A name of a property of a table that may be stated."""
    if name in _DELTA:
        return name
    if name.startswith(_TAKEN):
        known = ", ".join(sorted(_DELTA))
        raise ValueError(
            f"is a property that the way tables are written depends on; remove it (of Delta's: {known})"
        )
    if not name or name.lower() in _SAID_ELSEWHERE:
        raise ValueError("is no property of a table: Spark's SQL takes it for something else; rename it")
    return name


_Table = Annotated[
    str, AfterValidator(check_table), WithJsonSchema({"type": "string", "pattern": f"^{_TABLE.pattern}$"})
]
_Property = Annotated[str, AfterValidator(check_property)]
_Columns = Annotated[tuple[str, ...], Field(min_length=1)]


def _at_most_four(columns: tuple[str, ...]) -> tuple[str, ...]:
    if len(columns) > CLUSTERED_BY:
        raise ValueError(
            f"expected at most {CLUSTERED_BY} columns, found {len(columns)}: Delta Lake clusters by no more"
        )
    return columns


class Materialized(Frozen):
    """How a table is kept that others read."""

    table: _Table | None = None
    """Name under which the catalog of the Spark session has the table: `schema.table` or `catalog.schema.table`. The
    table stays in the lake; the catalog says where it lies."""
    partition_by: _Columns | None = None
    """Columns by which the table has a folder each: dates, integers or booleans. Needs few values with many rows
    each. Changing it needs `--rebuild`."""
    cluster_by: Annotated[_Columns, AfterValidator(_at_most_four)] | None = None
    """At most four columns by which rows lie together (Delta's liquid clustering), among the first 32: numbers, dates,
    times or texts. May change at any time; `lakejoin maintain` and compactions cluster what was written since."""
    properties: dict[_Property, SettingText] = Field(default={})
    """Properties of the table: names of your own, and some of Delta's; see below."""
    comment: str | None = None
    """What the table is, for readers."""
    comments: dict[str, str] = Field(default={})
    """What its columns are, by their names."""
    row_tracking: bool = False
    """Whether rows have identifiers that stay when their files are written anew (Delta's row tracking). A row that
    changes gets another one."""
    deletion_vectors: bool = True
    """Whether a batch marks rows that end, instead of writing their files anew. `false` is for readers that lack
    deletion vectors: a batch then writes every file anew of which a row ends (Delta's MERGE)."""

    @property
    def declaration(self) -> Declaration:
        """The same as the tables are made with it."""
        return Declaration(
            self.table,
            self.partition_by or (),
            self.cluster_by or (),
            self.properties,
            self.comment,
            self.comments,
            self.row_tracking,
            self.deletion_vectors,
        )


def declaration_of(materialized: Materialized | None) -> Declaration:
    """What is declared of a table; nothing where the file does not say."""
    return UNDECLARED if materialized is None else materialized.declaration
