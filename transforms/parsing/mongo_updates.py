"""Reads what MongoDB says of an update without its document: fields that were set, removed, or shortened.

Such an event has no row after it but `updateDescription`: `updatedFields`, an object as text, `removedFields`, names,
and `truncatedArrays`. What it does not name is as it was. A path such as `address.city` names a part of a field, whose
rest nobody knows here. (Debezium documentation, "MongoDB connector": `change_streams`; MongoDB: "update Event".)
"""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.transforms.parsing.json_lines import absent_from

_DESCRIBED = '"updateDescription"'
_UPDATE = "_lj_update"
"""The member's name once its fields stand in the event as the row after it."""
_VALUES = ("", "payload.", "value.", "value.payload.")
"""Where the value of an event is."""
_NO_ROW = r'"after"\s*+:\s*+null\s*+,?+'
_ROW = r'"after"\s*+:\s*+[{"]'


def with_updated_fields(event: Column) -> Column:
    """The event, whose row after it are the fields that were set where it has none itself."""
    fields = F.coalesce(_member(event, "updateDescription", "updatedFields"), F.lit("{}"))
    row = F.concat(F.lit('"after":'), fields, F.lit(f',"{_UPDATE}"'))
    without_row = F.regexp_replace(event, _NO_ROW, "")
    described = event.contains(_DESCRIBED) & ~event.rlike(_ROW)
    return F.when(described, F.replace(without_row, F.lit(_DESCRIBED), row)).otherwise(event)


def is_update(event: Column) -> Column:
    """Whether `with_updated_fields` put fields into the event."""
    return event.contains(f'"{_UPDATE}"')


def not_named(event: Column, wanted: Mapping[str, str]) -> Column:
    """The columns that such an update does not name. `wanted`: members by column."""
    return absent_from(F.array_union(_set(event), _removed(event)), wanted)


def in_parts(event: Column, members: Iterable[str]) -> Column:
    """Which of these members the update changes a part of, as a sentence; null for none."""
    said = F.from_json(_member(event, _UPDATE, "truncatedArrays"), "array<struct<field: string>>")
    paths = F.filter(F.array_union(_set(event), _removed(event)), lambda path: path.contains("."))
    paths = F.array_union(paths, _or_none(said["field"]))
    own = F.array(*map(F.lit, members))
    found = F.filter(paths, lambda path: F.array_contains(own, F.substring_index(path, ".", 1)))
    told = F.concat(
        F.lit("says of an update only that it changed "),
        F.array_join(found, ", "),
        F.lit("; expected the document: set the connector's `capture.mode` to `change_streams_update_full`"),
    )
    return F.when(is_update(event) & (F.size(found) > 0), told)


def _set(event: Column) -> Column:
    row = F.coalesce(*[F.get_json_object(event, f"$.{place}after") for place in _VALUES])
    return _or_none(F.json_object_keys(row))


def _removed(event: Column) -> Column:
    names = F.from_json(_member(event, _UPDATE, "removedFields"), "array<string>")
    return _or_none(names)


def _or_none(names: Column) -> Column:
    return F.coalesce(names, F.array().cast("array<string>"))


def _member(event: Column, name: str, within: str) -> Column:
    return F.coalesce(*[F.get_json_object(event, f"$.{place}{name}.{within}") for place in _VALUES])
