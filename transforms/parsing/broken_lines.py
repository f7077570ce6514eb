"""Says why a line is no record: where it goes wrong, or which of its members is not what it should be."""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from lakejoin.transforms.parsing.json_patterns import whole_object

_SHOWN = 40  # characters of a line that a message shows
_LONGEST = 20_000_000
"""Characters of a string that Spark's parser reads."""
_OBJECT = rf"(?s)^\s*+{whole_object()}"
_OTHER_RECORD = r"(?s)^\s*+,?\s*+\{"
_OR_ELSE = "; expected one, or in files `one_per_line: false` under `source`"


def why_broken(line: Column, record: StructType) -> Column:
    """What is wrong with a line that cannot be parsed. `record`: what it should hold, all members text or objects."""
    text = F.ltrim(line)
    first = F.regexp_extract(line, _OBJECT, 0)
    behind = F.substr(line, F.length(first) + 1)
    is_whole, goes_on = F.try_parse_json(line).isNotNull(), (first != "") & (F.trim(behind) != "")
    return (
        F.when(text.rlike(r"^\[\s*+(?:\{|$)"), _concat("begins a list: ", _shown(text), _OR_ELSE))
        .when(~text.startswith("{"), _concat("begins with ", _shown(text), "; expected an object of JSON"))
        .when(
            goes_on & behind.rlike(_OTHER_RECORD),
            _concat("holds several records, the second one at character ", F.length(first) + 1, _OR_ELSE),
        )
        .when(goes_on, _concat("is followed by something else behind its object: ", _shown(behind)))
        .when(
            is_whole, F.coalesce(_wrong_member(line, list(_objects(record))), F.lit("is no object of JSON"))
        )
        .when(
            F.octet_length(line) > _LONGEST,
            F.lit(f"is no valid JSON, or has a string of over {_LONGEST:,} characters"),
        )
        .when(
            ~F.rtrim(line).endswith("}"),
            _concat("is cut off: it ends with ", _shown(F.substring(line, -_SHOWN, _SHOWN))),
        )
        .otherwise(F.lit("is no valid JSON (RFC 8259): a sign, a quote or a bracket is missing or too many"))
    )


def _wrong_member(line: Column, paths: Sequence[str]) -> Column:
    """Which member is no object though it should be, null for none."""
    wrong = F.filter(F.array(*map(F.lit, paths)), lambda path: ~_at(line, path).startswith("{"))
    path = F.get(wrong, F.lit(0))
    found, several = _at(line, path), r"^\[\s*+\{"
    shown = _concat(
        "has no object in `", path, "`: ", _shown(found), F.when(found.rlike(several), _OR_ELSE).otherwise("")
    )
    return F.when(path.isNotNull(), shown)


def _at(line: Column, path: Column) -> Column:
    return F.call_function("get_json_object", line, F.concat(F.lit("$."), path))


def _objects(dtype: DataType, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of the members that should be objects, as far as a path can name them."""
    for field in dtype if isinstance(dtype, StructType) else ():
        if isinstance(field.dataType, StructType) and not set(field.name) & set(".'[]"):
            yield ".".join((*path, field.name))
            yield from _objects(field.dataType, (*path, field.name))


def _shown(text: Column) -> Column:
    return F.concat(
        F.lit('"'),
        F.substring(text, 1, _SHOWN),
        F.when(F.length(text) > _SHOWN, "…").otherwise(""),
        F.lit('"'),
    )


def _concat(*parts: Column | str) -> Column:
    return F.concat(*[F.lit(part) if isinstance(part, str) else part for part in parts])
