"""Models the kinds of joins in the file, and lists them."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, GetJsonSchemaHandler, Tag
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.materialized import Materialized, declaration_of
from lakejoin.orchestration.config.schema.model import Named
from lakejoin.orchestration.config.schema.sizes import Share
from lakejoin.orchestration.config.schema.values import ColumnName, Duration, Name, ResultColumn
from lakejoin.transforms.model.declaration import Declaration
from lakejoin.transforms.model.result_spec import History, ResultKey
from lakejoin.transforms.model.specs import How, ResolvedBy


class DeclaredJoin(Named):
    """What the kinds of joins have in common."""

    told_by: ClassVar[str]
    """A key that all joins of the kind have, and none of another kind."""
    left_named_by: ClassVar[str] = "left"
    """The key that names the left side."""
    not_rebuilt: ClassVar[str] = ""
    """Why a join of this kind cannot be computed anew; empty where it can."""

    @property
    def left_side(self) -> str:
        """The name of what holds the foreign key."""
        return str(getattr(self, self.left_named_by))

    @property
    def sides(self) -> tuple[str, ...]:
        """The names of all that it reads."""
        return (self.left_side,)

    @property
    def part_names(self) -> tuple[str, ...]:
        """What its joins with each right side are called, below which their tables lie."""
        return (self.name,)

    @property
    def history_spec(self) -> History | None:
        """How the history of its result is kept; None where it is not."""
        kept: KeptHistory | None = getattr(self, "history", None)
        if kept is None:
            return None
        return History(marks_current=kept.is_current, by_event_time=kept.as_of == "event_time")

    @property
    def declared(self) -> Declaration:
        """What is declared of the table of its result."""
        return declaration_of(getattr(self, "materialized", None))

    @property
    def declared_history(self) -> Declaration:
        """What is declared of the table of its history."""
        kept: KeptHistory | None = getattr(self, "history", None)
        return declaration_of(None if kept is None else kept.materialized)

    @property
    def waits(self) -> bool:
        """Whether what is to be joined waits for what the right side learns late."""
        return False

    def max_dangling_of(self, side: str) -> float | None:  # noqa: ARG002 - a star has a share for each side
        """What share of the foreign keys to a right side may point nowhere; None where nothing is said of it."""
        return None


_Materialized = Annotated[Materialized | None, Field(exclude=True)]
"""No part of the shape of a lake: its tables say how they are kept."""


class KeptHistory(Frozen):
    """How the versions of a result's rows are kept."""

    as_of: Literal["batch", "event_time"] = "batch"
    """By which time: `batch`, what the result was after each batch; or `event_time`, what was true when by the event
    times of both sides, which are `versioned` tables. See below."""
    retention: Duration | None = None
    """How long versions are kept that have ended, by the batches' clock; by event time before `settled_until`. By
    default for ever."""
    is_current: bool = False
    """Also keep a column `is_current`: whether the result has the version now; by event time, whether it goes on."""
    materialized: _Materialized = None
    """How the table of the history is kept: its name in a catalog, its layout, its properties; see below."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """A boolean, or a mapping."""
        return {"anyOf": [{"type": "boolean"}, handler.resolve_ref_schema(handler(schema))]}


def _history(value: Any) -> Any:
    """What `true` and `false` are short for."""
    if isinstance(value, bool):
        return {} if value else None
    if not isinstance(value, dict | KeptHistory):
        raise ValueError("expected true, false or a mapping")
    return value


TAKEN = {
    "joined",
    "subscription_log",
    "subscription_store",
    "left_rows",
    "response_log",
    "changelog",
    "history",
}
"""What the tables of every join are called, so that no right side of a star may be: its tables lie beside them."""
_Select = Annotated[tuple[ResultColumn, ...], Field(min_length=1)] | None
_History = Annotated[KeptHistory | None, BeforeValidator(_history)]
_ForeignKey = Annotated[tuple[str, ...], Field(min_length=1)]
_MaxDangling = Annotated[Share | None, Field(exclude=True)]
"""No part of the shape of a lake: it may change at any time, and within a batch."""


class Join(DeclaredJoin):
    """A foreign-key join of a table, or of another join, with a table, or with groups."""

    told_by = "right"
    left: Name
    """Table or join whose rows hold the foreign key."""
    right: Name
    """Table, or groups, that the foreign key refers to: by its key."""
    foreign_key: _ForeignKey
    """Columns of the left row, or deterministic SQL expressions over it: one for each column of the right
    key, of the same type. A row with a null in any of them refers to nothing."""
    how: How
    """`inner`: rows with a match; `left`: all left rows, the right columns null where nothing matches."""
    prefix: str = "right_"
    """Put before the names of the right columns in the joined table."""
    select: _Select = None
    """Columns of the result: a list of columns, `*` or `* except (a, b)`, and `{name: SQL expression}` over
    left columns and
    prefixed right ones; see below. By default all."""
    where: str | None = None
    """SQL condition over left columns and prefixed right ones: rows that do not meet it are not in the result."""
    changelog: bool = False
    """Also keep every emission, in order, in `joins/NAME/changelog`."""
    history: _History = None
    """Also keep every version of each row, with the time and the batch from which and until which it was one, in
    `joins/NAME/history`: `true`, or how; see below."""
    materialized: _Materialized = None
    """How the table of the result is kept: its name in a catalog, its layout, its properties; see below."""
    resolution: ResolvedBy = "hash"
    """How an answer that comes too late is told: by the `hash` of the left row it was given to, or by
    `highwater`, the place of that row's change among the changes of its key."""
    result_key: ResultKey = "left"
    """What identifies a joined row: the `left` key, or `combined`: right key and left key, so that a new
    foreign key ends one row and begins another. Only with `how: inner`."""
    max_dangling: _MaxDangling = None
    """Share of the foreign keys, such as `1 %` or `0.01`, that may point at no right row: of live left rows, without
    those whose foreign key is null. Where more do, `lakejoin check` fails and the check `dangling` in Dagster warns; no
    batch is held up. By default nothing is counted."""

    def max_dangling_of(self, side: str) -> float | None:  # noqa: ARG002 - it has one
        """As declared."""
        return self.max_dangling

    @property
    def sides(self) -> tuple[str, ...]:
        """Both."""
        return (self.left, self.right)


class RightSide(Frozen):
    """A right side of a star."""

    table: Name
    """Table, or groups, that the foreign key refers to: by its key."""
    foreign_key: _ForeignKey
    """Columns of the left row, or deterministic SQL expressions over it: one for each column of the table's key, of
    the same type. A row with a null in any of them refers to nothing."""
    how: How
    """`inner`: only rows with a match here are in the result; `left`: the columns are null where nothing matches."""
    prefix: str | None = None
    """Put before the names of the table's columns in the joined table; by default the name of the side and `_`."""
    max_dangling: _MaxDangling = None
    """Share of the foreign keys to this side, such as `1 %` or `0.01`, that may point at no row of the table: of live
    left rows, without those whose foreign key is null. Where more do, `lakejoin check` fails and the check
    `SIDE_dangling` in Dagster warns; no batch is held up. By default nothing is counted."""

    def prefix_of(self, side: str) -> str:
        """What stands before the names of its columns. `side`: what the star calls it."""
        return f"{side}_" if self.prefix is None else self.prefix


class Star(DeclaredJoin):
    """A join of a table, or of another join, with several tables, each by a foreign key of its own."""

    told_by = "rights"
    left: Name
    """Table or join whose rows hold the foreign keys."""
    rights: Annotated[dict[Name, RightSide], Field(min_length=1)]
    """Right sides by name; see below. A table may be several of them."""
    select: _Select = None
    """Columns of the result: a list of columns, `*` or `* except (a, b)`, and `{name: SQL expression}` over
    left columns and
    prefixed right ones; see below. By default all."""
    where: str | None = None
    """SQL condition over left columns and prefixed right ones: rows that do not meet it are not in the result."""
    changelog: bool = False
    """Also keep every emission, in order, in `joins/NAME/changelog`."""
    history: _History = None
    """Also keep every version of each row, with the time and the batch from which and until which it was one, in
    `joins/NAME/history`: `true`, or how; see below."""
    materialized: _Materialized = None
    """How the table of the result is kept: its name in a catalog, its layout, its properties; see below."""
    resolution: ResolvedBy = "hash"
    """How an answer that comes too late is told: by the `hash` of the left row it was given to, or by
    `highwater`, the place of that row's change among the changes of its key."""

    @property
    def sides(self) -> tuple[str, ...]:
        """The left one, and all right ones."""
        return (self.left, *[right.table for right in self.rights.values()])

    @property
    def part_names(self) -> tuple[str, ...]:
        """Below its own."""
        return tuple(f"{self.name}/{side}" for side in self.rights)

    def max_dangling_of(self, side: str) -> float | None:
        """As the right side declares."""
        return self.rights[side].max_dangling


class StreamJoin(DeclaredJoin):
    """A join of each record of a stream with the table row that its foreign key refers to (KIP-923)."""

    told_by = left_named_by = "stream"
    not_rebuilt = (
        "joins a stream, and what it met when its records came is no longer known: the history of its table reaches "
        "back no further than its retention. Give the join another name: it then begins with the records of the stream "
        "as they can be joined today."
    )
    stream: Name
    """Stream whose records are joined."""
    table: Name
    """Table that the foreign key refers to: by its key. A versioned one is read as of the record's time, any other
    as it is when the record is joined."""
    foreign_key: _ForeignKey
    """Columns of the record, or deterministic SQL expressions over it: one for each column of the table's key, of
    the same type. A record with a null in any of them refers to nothing."""
    how: How
    """`inner`: records with a match; `left`: all records, the table's columns null where nothing matches."""
    grace: Duration | None = None
    """How long a record waits, in the stream's time, for what the table learns late. Needs a versioned table, and at
    most its `history_retention`. Without it a record is joined in its batch."""
    late: Literal["drop", "join"] | None = None
    """What becomes of a record that comes after its grace period: `drop` (the default: counted as `late`, kept in
    quarantine) or `join` (joined at once)."""
    prefix: str = "right_"
    """Put before the names of the table's columns in the joined table."""
    select: _Select = None
    """Columns of the result: a list of columns, `*` or `* except (a, b)`, and `{name: SQL expression}` over
    the record's columns
    and prefixed ones of the table; see below. By default all."""
    where: str | None = None
    """SQL condition over the record's columns and prefixed ones of the table: rows that do not meet it are not in the
    result."""
    materialized: _Materialized = None
    """How the table of the result is kept: its name in a catalog, its layout, its properties; see below."""

    @property
    def waits(self) -> bool:
        """Whether records wait in a buffer."""
        return self.grace is not None


class Group(DeclaredJoin):
    """Rows of a table, of a join or of other groups, in groups: one row for each."""

    told_by = left_named_by = "of"
    of: Name
    """Table, join or groups whose rows are grouped."""
    by: Annotated[tuple[ResultColumn, ...], Field(min_length=1)]
    """What rows of a group have in common, and what identifies the group: columns, and `{name: SQL expression}`. Null
    is a value like others, as in SQL."""
    select: Annotated[dict[ColumnName, str], Field(min_length=1)]
    """The other columns, each an aggregate over the rows of a group: `count(*)`, `count(distinct x)`, `sum(x)`,
    `first(x, order by y desc)`, `collect(x, order by y)` and others; see below."""
    having: str | None = None
    """SQL condition over the columns of a group: groups that do not meet it are not in the result."""
    changelog: bool = False
    """Also keep every emission, in order, in `joins/NAME/changelog`."""
    history: _History = None
    """Also keep every version of each row, with the time and the batch from which and until which it was one, in
    `joins/NAME/history`: `true`, or how; see below."""
    materialized: _Materialized = None
    """How the table of the result is kept: its name in a catalog, its layout, its properties; see below."""


def kind_of_join(value: Any) -> str:
    """`stream`, `star` or `foreign_key`, told by the keys that only one kind of join has; `group` of groups."""
    if isinstance(value, dict):
        if {"stream", "table"} & value.keys():
            return "stream"
        return "star" if "rights" in value else "foreign_key"
    return next((tag for tag, model in JOIN_KINDS.items() if isinstance(value, model)), "foreign_key")


AnyJoin = Join | Star | StreamJoin | Group
"""Whatever makes a table of others."""
InJoins = Annotated[
    Annotated[Join, Tag("foreign_key")] | Annotated[Star, Tag("star")] | Annotated[StreamJoin, Tag("stream")],
    Discriminator(kind_of_join),
]
"""What may stand below `joins`."""

JOIN_KINDS: Mapping[str, type[AnyJoin]] = {
    **{tag.tag: model for model, tag in map(get_args, get_args(get_args(InJoins)[0]))},
    "group": Group,
}
"""The kinds of joins by their tags, and groups: the one place that says which there are. What else is to be known of a
kind stands in tables with its model as the key."""


def model_of_join(value: Any) -> type[AnyJoin]:
    """The kind that a mapping below `joins` is of."""
    return JOIN_KINDS[kind_of_join(value)]
