"""Runs the rules of `expectations` over a lake: over all rows, or those that its last batches touched."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from lakejoin.expectations.data_docs import DataDocs
from lakejoin.expectations.results import RuleResult
from lakejoin.expectations.validation import Asset, Validated, judge_assets, validate_assets
from lakejoin.orchestration.checks.figures import Figure, figures
from lakejoin.orchestration.checks.join_frames import Scope, table_asset
from lakejoin.orchestration.checks.join_rules import JOIN_RULES
from lakejoin.orchestration.checks.overview import overview
from lakejoin.orchestration.checks.references import Dangling, count_dangling
from lakejoin.orchestration.checks.time_frames import history_asset
from lakejoin.orchestration.checks.version_frames import version_assets
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State

_MOVED = [name for rules in JOIN_RULES.values() for name in rules.touched]
"""Names of counts of joins that tell how many rows a batch touched."""


@dataclass(frozen=True)
class Checked:
    """The results of a check."""

    results: Mapping[str, list[RuleResult]]
    """Of each table and join, in the order of its rules."""
    docs: DataDocs | None
    """Where these results are shown; None where nobody asked for it."""
    since: int | None
    """Only rows that batches after this one touched were looked at; None for all rows."""
    through: int
    """The batch that left the state that was looked at."""
    not_begun: Sequence[str]
    """Joins that were declared since, which the next run begins with."""
    unpublished: str | None = None
    """Why Data Docs do not show these results, and what to do; None where they do."""
    dangling: Sequence[Dangling] = ()
    """The foreign keys of all rows that point nowhere, of the joins that say how many may."""
    figures: Sequence[Figure] = ()
    """What the file expects of tables and streams, and what was found."""

    @property
    def passed(self) -> bool:
        """Whether every rule holds, no more foreign keys dangle than may, and every figure is as expected."""
        holds = all(result.success for results in self.results.values() for result in results)
        is_expected = all(figure.holds for figure in self.figures)
        return holds and is_expected and not any(found.exceeds for found in self.dangling)


def check_lake(
    pipeline: Pipeline,
    spark: SparkSession,
    *,
    batches: int | None,
    names: Collection[str] | None = None,
    run: str = "check",
    publish: bool = True,
) -> Checked:
    """Check a lake as its last finished batch left it, and write Data Docs, without which the results stand as well.

    `batches`: look at the rows that so many last batches touched, None for all rows. `names`: tables and
    joins to look at, by default every one; only then figures are held against what the file expects, dangling foreign
    keys among them. `run`: how Data Docs call this check. `publish`: whether they are written, by Great Expectations.
    Raises `WrongUsage` where no batch is finished, `ConfigurationChanged` where the lake was built with another
    configuration, `LakeInconsistent` where a file of it is gone or damaged.
    """
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    check_shapes(pipeline, journal)
    state = State(spark, lake, published_snapshot(journal))
    finished = len(journal.published)
    since = None if batches is None else max(finished - batches, 0)
    scope = Scope(journal, state, since, _touched(journal, since or 0))
    docs: DataDocs | None = None
    with explained(pipeline, "a check"), closing(scope):
        # Data Docs list all of them; what nobody asked for is not even planned
        every = _assets(pipeline, scope, None if publish else names)
        wanted = [asset for asset in every if names is None or asset.name in names]
        begun = [name for name in pipeline.joins_of_tables if name in journal.kept]
        dangling = count_dangling(pipeline, state, begun) if names is None else ()
        first = None if since is None else since + 1
        expected = figures(pipeline, journal, datetime.now(UTC), first=first) if names is None else ()
        if publish:
            named = {asset.name for asset in every}.union(pipeline.joins)
            above = overview(pipeline, journal, expected, dangling)
            docs = DataDocs(docs_folder(lake), assets=named, overview=above)
        found = _validated(wanted, docs, run) if docs is not None else Validated(judge_assets(wanted))
    not_begun = [name for name in pipeline.joins if name not in journal.kept]
    return Checked(found.results, docs, since, finished, not_begun, found.unpublished, dangling, expected)


def _validated(assets: Sequence[Asset], docs: DataDocs, run: str) -> Validated:
    frames = [frame.persist() for asset in assets for frame in asset.frames.values()]
    try:
        # Each rule reads its frames anew; what is kept is read from the lake once.
        return validate_assets(assets, docs=docs, run=run)
    finally:
        for frame in frames:
            frame.unpersist()


def docs_folder(lake: Lake) -> Path:
    """Return where Data Docs go: below the lake, or beside the caller for a lake at a URI."""
    return lake.local / "_data_docs" if lake.local is not None else Path("data_docs")


def _assets(pipeline: Pipeline, scope: Scope, names: Collection[str] | None) -> list[Asset]:
    """What is checked: all of it, or at least what has these names."""
    begins = None if names is None else {name.split(".")[0] for name in names}
    declared = {name: table for name, table in pipeline.tables.items() if begins is None or name in begins}
    tables = [table_asset(table.spec, scope) for table in declared.values()]
    histories = [history_asset(table.spec, scope) for table in declared.values() if table.versioned]
    of_joins, of_streams = (
        [
            asset
            for name, join in joins.items()
            if name in scope.journal.kept and (begins is None or name in begins)
            for asset in (
                *JOIN_RULES[type(join)].assets(pipeline, name, scope),
                *version_assets(pipeline, pipeline.spec_of_join(name), scope),
            )
        ]
        for joins in (pipeline.kept_by_key, pipeline.joins_of_streams)
    )
    return [*tables, *of_joins, *histories, *of_streams]


def _touched(journal: Journal, since: int) -> int:
    """The most rows that batches after `since` can have touched in a table or join."""
    most = 0
    for batch in journal.published[since:]:
        changed = [counts.get("changed", 0) for counts in batch.tables.values()]
        moved = [sum(counts.get(name, 0) for name in _MOVED) for counts in batch.joins.values()]
        most += max([*changed, *moved], default=0)
    return most
