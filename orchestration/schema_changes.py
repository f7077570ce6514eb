"""`on_schema_change: fail`: files whose columns are not the declared ones stop a batch before it is planned."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from orchestration.config import Input, Pipeline
from orchestration.planning.pending_input import blamed
from storage.errors import LakejoinError
from storage.lake.plan import PlannedFile
from storage.sources.schema_check import Difference, differences

_SHOWN = 10


class SchemaChanged(LakejoinError):
    """The columns of new files are not those that are declared: declare them as they are, or correct the files."""


def check_schemas(pipeline: Pipeline, spark: SparkSession, files: Sequence[PlannedFile]) -> None:
    """Hold new parts of files against the declared columns, of the sources that want it.

    Raises `SchemaChanged` with every difference, and `SourceError` for a file that cannot be read.
    """
    for name, table in pipeline.inputs.items():
        ranges = [file.range for file in files if file.table == name and file.records]
        if table.source.on_schema_change == "fail" and ranges:
            spec, options, strict = table.spec, table.source.parse_options, table.source.strict
            with blamed(table):
                found = differences(spark, spec, options, ranges, strict=strict)
            if found:
                raise _changed(table, found)


def _changed(table: Input, found: Sequence[Difference]) -> SchemaChanged:
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return SchemaChanged(
        f"table {table.name}: its source has other columns than are declared: "
        f"{'; '.join(map(str, found[:_SHOWN]))}{more}. Nothing of the batch was written. Correct the files, or "
        "declare the columns as they are now: a lake with rows takes new and wider ones by `lakejoin migrate FILE`, "
        "other types only a new lake. Or set `on_schema_change: ignore`. Then run again."
    )
