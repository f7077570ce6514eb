"""Describes a commit of ours: the transaction identifier by which a rerun finds it, and its text in the history."""

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Transaction:
    """Who commits, and for which batch."""

    app: str
    """Application of the transaction identifier: the lake's identity and the stage."""
    batch: int
    """Its version: the number of the batch."""
    metadata: Mapping[str, object]

    @property
    def user_metadata(self) -> str:
        """What `DESCRIBE HISTORY` shows beside the commit."""
        return json.dumps({"batch": self.batch, "app": self.app, **self.metadata}, sort_keys=True)

    def stating(self, metadata: Mapping[str, object]) -> "Transaction":
        """The same, with more metadata."""
        return Transaction(self.app, self.batch, {**self.metadata, **metadata})


@dataclass(frozen=True)
class Settled:
    """Facts about a commit that are known only when all other commits of its batch are made."""

    rows: int
    """How many new rows it has."""
    metadata: Mapping[str, object]
    """What its user metadata state besides."""
