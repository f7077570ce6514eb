"""Parses which rows of a store `show` is asked for: one key, a prefix, a range of keys or of time, either direction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType, TimestampType

from lakejoin.orchestration.errors import WrongUsage
from lakejoin.storage.stores.scan.order import Between, Bound, Column, Span, ahead, beginning_with


@dataclass(frozen=True)
class Range:
    """Options of `show`, as they were typed; None where one was not given."""

    key: str | None = None
    prefix: str | None = None
    key_from: str | None = None
    key_to: str | None = None
    time_from: str | None = None
    time_to: str | None = None
    reverse: bool = False

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        return [
            f"--{f.name.replace('_', '-')}"
            for f in fields(self)
            if getattr(self, f.name) not in (None, False)
        ]

    @property
    def beyond_key(self) -> list[str]:
        """Those that only a store understands."""
        return [name for name in self.given if name != "--key"]


@dataclass(frozen=True)
class Ordered:
    """What a store is ordered by, as its user sees it."""

    name: str
    """The name it is shown by."""
    key: StructType
    """Names and types of the key's columns."""
    columns: tuple[Column, ...]
    """Where these are in a row."""
    key_is_place: bool = True
    """False where `--key` means something else than the store's own key."""
    time: Column | None = None
    """The column that `--time-from` and `--time-to` limit."""
    validity: bool = False
    """Whether rows are valid from that time on, until the next row of their key, instead of having it."""

    def span(self, asked: Range) -> Span:
        """Return the part of the store that is asked for. Raises `WrongUsage` with the option that cannot be."""
        if not self.key and (given := {"--prefix", "--key-from", "--key-to"} & set(asked.given)):
            raise WrongUsage(f"{min(given)}: the rows of {self.name} are ordered by time, not by key")
        if asked.key is not None and not self.key_is_place:
            raise WrongUsage(
                f"--key of {self.name} is a primary key, and the store is ordered by {', '.join(self.key.names)}; give "
                "--key alone, or use --prefix"
            )
        ways: list[str] = [o for o in ("--key", "--prefix") if o in asked.given]
        if {"--key-from", "--key-to"} & set(asked.given):
            ways.append("--key-from/--key-to")
        if len(ways) > 1:
            raise WrongUsage(f"{' and '.join(ways)}: give one of them")
        low, high = self._keys(asked)
        start, end = self.times(asked)
        timed = self.time is not None and not self.validity and (start, end) != (None, None)
        span = Span(low, high, {self.time: Between(start, end)} if timed and self.time else {})
        if low is not None and high is not None and ahead(high.place, low.place):
            raise WrongUsage(f"--key-from {asked.key_from!r} comes after --key-to {asked.key_to!r}")
        return span

    def _keys(self, asked: Range) -> tuple[Bound | None, Bound | None]:
        if asked.key is not None:
            values = self._parts("--key", asked.key)
            if len(values) != len(self.key):
                names = ", ".join(self.key.names)
                raise WrongUsage(f"--key {asked.key!r}: the key of {self.name} is a JSON array of {names}")
            bound = Bound(self._typed("--key", asked.key, values))
            return bound, bound
        if asked.prefix is not None:
            return self._with_prefix(asked.prefix)
        return self._end("--key-from", asked.key_from), self._end("--key-to", asked.key_to)

    def _with_prefix(self, prefix: str) -> tuple[Bound | None, Bound | None]:
        if len(self.key) > 1:
            bound = self._end("--prefix", prefix)
            return bound, bound
        kind = self.key[0].dataType
        if not isinstance(kind, (StringType, BinaryType)):
            raise WrongUsage(
                f"--prefix {prefix!r}: only text and keys of several columns have prefixes; {self.key[0].name} is "
                f"{kind.simpleString()}: use --key-from and --key-to"
            )
        return beginning_with((), prefix if isinstance(kind, StringType) else prefix.encode())

    def _end(self, option: str, text: str | None) -> Bound | None:
        return None if text is None else Bound(self._typed(option, text, self._parts(option, text)))

    def _parts(self, option: str, text: str) -> Sequence[str]:
        """The columns that a text names: one, or the elements of a JSON array."""
        if len(self.key) == 1:
            return [text]
        values = json_array(text)
        if values is None:
            return [text]
        if not 0 < len(values) <= len(self.key):
            names = ", ".join(self.key.names)
            raise WrongUsage(f"{option} {text!r}: the key of {self.name} is a JSON array of {names}")
        return [part_text(option, text, value) for value in values]

    def _typed(self, option: str, text: str, values: Sequence[str]) -> tuple[Any, ...]:
        return tuple(
            typed_part(option, text, value, column) for value, column in zip(values, self.key, strict=False)
        )

    def times(self, asked: Range) -> tuple[datetime | None, datetime | None]:
        """Return the times between which rows are asked for. Raises `WrongUsage`."""
        found = []
        for option, text in (("--time-from", asked.time_from), ("--time-to", asked.time_to)):
            if text is not None and self.time is None:
                raise WrongUsage(f"{option}: the rows of {self.name} have no time to choose by")
            time = None if text is None else parsed(text, TimestampType())
            if text is not None and time is None:
                raise WrongUsage(f"{option} {text!r}: expected a time such as 2013-01-01T10:15:00Z")
            found.append(time)
        return found[0], found[1]


def json_array(text: str) -> list[Any] | None:
    """Return the elements of a JSON array, numbers as they are written; None for any other text."""
    try:
        values = json.loads(text, parse_float=str, parse_int=str)
    except json.JSONDecodeError:
        return None
    return values if isinstance(values, list) else None


def part_text(option: str, text: str, value: Any) -> str:
    """Return an element of the JSON array that an option has, as one would type it alone. Raises `WrongUsage`."""
    if value is None:
        raise WrongUsage(
            f'{option} {text!r}: found null, which no column of a key is; expected values, such as [1, "a"]'
        )
    return value if isinstance(value, str) else json.dumps(value)


def typed_part(option: str, text: str, value: str, column: StructField) -> Any:
    """Return the value of a column of a key that a part of an option's text stands for. Raises `WrongUsage`."""
    typed = parsed(value, column.dataType)
    if typed is None:
        expected = column.dataType.simpleString()
        raise WrongUsage(f"{option} {text!r}: {column.name} is {expected}, found {value!r}")
    return typed


def parsed(text: str, kind: DataType) -> Any:
    """Return the value of a type that a text stands for, None where it stands for none."""
    match kind:
        case StringType():
            return text
        case BinaryType():
            return text.encode()
        case TimestampType():
            return _instant(text)
    try:
        scalar = pa.scalar(text.strip()).cast(to_arrow_type(kind, timezone="UTC"))
    except (pa.ArrowException, ValueError):
        return None
    return scalar.as_py()


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
