"""Says what is declared of a table beside its rows: name, comments, partitions, clustering, properties, features."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

COMMENT = "comment"
"""Under what a column of a Delta table has its comment, and Spark's SQL the one of a table."""
DELETION_VECTORS, ROW_TRACKING = "delta.enableDeletionVectors", "delta.enableRowTracking"
NONE: Mapping[str, str] = MappingProxyType({})
"""No properties of a table beyond those that the session states for all."""


@dataclass(frozen=True)
class Declaration:
    """What is declared of a table."""

    table: str | None = None
    """Its name in the catalog, behind that of its schema, which may have that of a catalog before it."""
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=lambda: NONE)
    comment: str | None = None
    comments: Mapping[str, str] = field(default_factory=lambda: NONE)
    """Of columns, by name."""
    row_tracking: bool = False
    deletion_vectors: bool = True

    @property
    def stated(self) -> dict[str, str]:
        """The properties that the table has for it."""
        features = {DELETION_VECTORS: "false"} if not self.deletion_vectors else {}
        tracks = {ROW_TRACKING: "true"} if self.row_tracking else {}
        return {**self.properties, **features, **tracks}

    def commented(self, schema: str) -> str:
        """A schema as Delta writes it, in JSON, with the comments of its columns."""
        told = json.loads(schema)
        for column in told["fields"]:
            if column["name"] in self.comments:
                column["metadata"][COMMENT] = self.comments[column["name"]]
        return json.dumps(told)


UNDECLARED = Declaration()
"""Nothing: a table as it is made by default."""
