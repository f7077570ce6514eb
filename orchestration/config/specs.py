"""Translates declared joins and groups for the stages: the columns and keys of their sides, foreign keys as SQL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from lakejoin.orchestration.config.schema.groups import as_group
from lakejoin.orchestration.config.schema.joins import AnyJoin, Group, Join, RightSide, Star, StreamJoin
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.orchestration.config.schema.select import as_sql, star_with_result, with_result, with_selected
from lakejoin.orchestration.config.schema.stream import Stream
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.specs import JoinSpec, StarSpec, StreamJoinSpec


@dataclass(frozen=True)
class Specs:
    """What the stages take of the joins and groups of a pipeline."""

    tables: Mapping[str, Table]
    streams: Mapping[str, Stream]
    joins: Mapping[str, AnyJoin]

    def of(self, name: str) -> ResultSpec:
        """A join of any kind, or groups."""
        return _SPECS[type(self.joins[name])](self, name)

    def group(self, name: str) -> GroupSpec:
        """Groups: their columns, and what each is made of."""
        group = self.joins[name]
        assert isinstance(group, Group)
        return as_group(name, group, *self._side(group.of), of_join=group.of in self.joins)

    def join(self, name: str) -> JoinSpec | StarSpec:
        """A join of tables as the stages take it: the rows and keys of its sides, its foreign keys as SQL."""
        join, of_join = self.joins[name], self.joins[name].left_side in self.joins
        if isinstance(join, Star):
            return star_with_result(self._star_spec(name, join), join.select, join.where, of_join=of_join)
        assert isinstance(join, Join)
        spec = replace(
            self._pair(name, join, join),
            changelog=join.changelog,
            history=join.history_spec,
            result_key=join.result_key,
            left_key_may_be_null=self._may_be_null(join.left),
        )
        return with_result(spec, join.select, join.where, of_join=of_join)

    def _pair(self, name: str, join: Join | Star, right: Join | RightSide, side: str = "") -> JoinSpec:
        """The join with one right side. `right`: what the file says of that; `side`: what a star calls it."""
        (columns, key), table = self._side(join.left), right.right if isinstance(right, Join) else right.table
        right_columns, right_key = self._side(table)
        return JoinSpec(
            name=name,
            left=join.left,
            right=table,
            left_columns=columns,
            left_key=key,
            right_columns=right_columns,
            right_key=right_key,
            foreign_key=as_sql(right.foreign_key, columns.names),
            how=right.how,
            prefix=right.prefix if isinstance(right, Join) else right.prefix_of(side),
            resolution=join.resolution,
            side=side,
            left_sequence=self._sequence_in(join, join.left),
            right_sequence=self._sequence_in(join, table),
        )

    def _side(self, name: str) -> tuple[StructType, tuple[str, ...]]:
        """The columns of what a join reads, and its key."""
        if name in self.joins:
            first = self.of(name)
            return first.columns, first.joined_key
        table = self.tables[name].spec
        return table.columns, table.key

    def _star_spec(self, name: str, join: Star) -> StarSpec:
        columns, key = self._side(join.left)
        rights = [
            self._pair(part, join, right, side)
            for part, (side, right) in zip(join.part_names, join.rights.items(), strict=True)
        ]
        return StarSpec(
            name, join.left, columns, key, tuple(rights), changelog=join.changelog,
            history=join.history_spec, left_sequence=self._sequence_in(join, join.left),
            left_key_may_be_null=self._may_be_null(join.left),
        )  # fmt: skip

    def _sequence_in(self, join: Join | Star, side: str) -> StructType | None:
        """Type of what orders the changes of a side, where the history of the join says it."""
        return self.tables[side].spec.sequence if join.history and side in self.tables else None

    def _may_be_null(self, name: str) -> bool:
        """Whether a part of the key of a left side may be null: those of groups may."""
        return name in self.joins and self.of(name).key_may_be_null

    def stream_join(self, name: str) -> StreamJoinSpec:
        """The join of a stream as the stages take it."""
        join = self.joins[name]
        assert isinstance(join, StreamJoin)
        stream, table = self.streams[join.stream].spec, self.tables[join.table].spec
        spec = StreamJoinSpec(
            name=name,
            left=join.stream,
            right=join.table,
            left_columns=stream.columns,
            left_key=stream.key,
            right_columns=table.columns,
            right_key=table.key,
            foreign_key=as_sql(join.foreign_key, stream.columns.names),
            how=join.how,
            prefix=join.prefix,
            grace=join.grace,
            drops_late=join.late != "join",
            as_of=table.history_retention is not None,
        )
        return with_selected(spec, join.select, join.where)


_SPECS: Mapping[type[AnyJoin], Callable[[Specs, str], ResultSpec]] = {
    Join: Specs.join,
    Star: Specs.join,
    StreamJoin: Specs.stream_join,
    Group: Specs.group,
}
