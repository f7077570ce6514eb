"""Opens what `dangling` and `references` show: where the foreign keys of a join point, as of a published batch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.checks.references import read_references
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.problems import listed
from lakejoin.orchestration.errors import WrongUsage, unknown
from lakejoin.orchestration.show.frame_view import Open, View
from lakejoin.orchestration.show.text_formats import field_text
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.foreign_key_join.references import dangling, fan_out, unreferenced
from lakejoin.transforms.model.specs import JoinSpec

_KINDS = {"tables": "a table", "streams": "a stream", "joins": "the join of a stream", "groups": "groups"}
"""What else has a name in a configuration, by the section that declares it."""


@dataclass(frozen=True)
class Report:
    """What is told of the references of a join."""

    rows: Callable[[DataFrame, DataFrame, JoinSpec], DataFrame]
    """Makes its rows of references and right keys."""
    key: str
    """The column of these that holds the foreign key, or the right key."""
    name: str
    """What messages call the rows of a join."""


DANGLING = Report(dangling, "foreign_key", "list of dangling foreign keys")
FAN_OUT = Report(fan_out, "right_key", "list of referenced right keys")
UNREFERENCED = Report(unreferenced, "right_key", "list of unreferenced right keys")


def report_view(pipeline: Pipeline, join: str, report: Report) -> Open:
    """Return what opens a report; it can be called once there is a session.

    Raises `WrongUsage` for what is no join of tables; the message lists those there are.
    """
    known = pipeline.joins_of_tables
    if join in known:
        return partial(_view, pipeline, join, report)
    if join in {*pipeline.inputs, *pipeline.joins}:
        raise WrongUsage(
            f"{join} is {_KINDS[pipeline.section_of(join)]}; expected a join of tables, whose foreign keys refer to "
            f"rows that come and go; there are: {listed(known) or 'none'}"
        )
    raise unknown("join of tables", join, known)


def _view(pipeline: Pipeline, join: str, report: Report, state: State) -> View:
    """The keys with the most left rows first. Of a star all sides together, whose keys may differ in type, as text."""
    parts = pipeline.join_spec(join).parts
    of_parts = [report.rows(*read_references(pipeline, part, state), part) for part in parts]
    if parts[0].side:
        of_parts = [
            rows.select(
                F.lit(part.side).alias("side"),
                field_text(rows.schema[report.key], (report.key,)).alias(report.key),
                *[name for name in rows.columns if name != report.key],
            )
            for part, rows in zip(parts, of_parts, strict=True)
        ]
    rows = reduce(DataFrame.unionByName, of_parts)
    most = [F.col("left_rows").desc()] if "left_rows" in rows.columns else []
    order = (*most, *[F.col(name) for name in ("side", report.key) if name in rows.columns])
    return View(f"{join}'s {report.name}", rows, {}, order, (report.key, "left_key"))
