"""Checks before a run that the tables of a lake are as its plans say."""

from collections.abc import Collection, Iterator, Mapping

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.active_joins import kept_joins
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.declared_schemas import check_histories, check_partitions, check_types
from lakejoin.orchestration.lake_state.fold_progress import folded_ahead, folded_through
from lakejoin.orchestration.lake_state.inventory import stages_of, state_tables
from lakejoin.orchestration.lake_state.log_checks import check_begun, check_own_commits
from lakejoin.storage.delta_log.snapshot import Snapshot
from lakejoin.storage.errors import LakeInconsistent, remedy
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, Lake, rows_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.folds import Folds


def journal_at_rest(pipeline: Pipeline, lake: Lake) -> Journal:
    """Return the journal of a lake that is as its plans say, and of which no batch is under way.

    Raises `WrongUsage` while one is, and what `check_shapes` and `check_progress` do.
    """
    journal = Journal(lake)
    check_shapes(pipeline, journal)
    check_progress(pipeline, lake, journal)
    if journal.unfinished is not None:
        raise WrongUsage(f"batch {journal.unfinished.batch} is under way; `lakejoin run` finishes it first")
    return journal


def check_progress(pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str] = ()) -> None:
    """Compare each table's own log with what was published.

    A stage has committed the batch that the last publication says, or the one under way, by its transaction
    identifier; and whatever changed rows since then is a commit of this lake. Anything else means that the table was
    restored, lost or written by somebody else. What is no longer declared may be gone, and so may what a join left
    behind before it began anew, or is about to: `rebuilt`. Raises `LakeInconsistent`, and `ConfigurationChanged` for
    types that are wider than declared.
    """
    snapshots = snapshots_of(pipeline, lake, journal, rebuilt)
    if not journal.plans and snapshots:
        raise LakeInconsistent(
            f"{lake.root}: holds {', '.join(snapshots)} and no plan of any batch; expected `{PLAN}`, or none of them. "
            f"`{PLAN}` was removed, or what is there is of another lake. Put `{PLAN}` back from a copy, or point "
            "`lake` at an empty directory."
        )
    for stage, found, expected in wrong_stages(pipeline, journal, snapshots, rebuilt):
        table = journal.table_of(stage)
        raise LakeInconsistent(
            f"{lake.path(table)}: its log says that stage {stage} is done up to batch {found}; expected {expected}, "
            "as published. The table was restored, replaced or removed behind the back of the plan, or the plan was. "
            f"{remedy(table)}"
        )
    for base, through in folded_ahead(journal, snapshots):
        raise LakeInconsistent(
            f"{lake.path(base)}: its log says that batches up to {through} are folded into it; expected none after "
            f"batch {len(journal.published)}, the last finished one. The plan was put back to an earlier state and the "
            f"table was not, or it is of another lake. {remedy(base)}"
        )
    beginning = journal.unfinished.bootstrap if journal.unfinished else ()
    versions = {
        table: snapshot.version for table, snapshot in snapshots.items() if _name(table) not in beginning
    }
    check_own_commits(lake, journal, versions)
    _check_folds(pipeline, lake, journal, snapshots)
    # the tables of a join that begins with the batch under way may be of another one
    lasting = {table: snapshots[table] for table in versions}
    check_types(pipeline, lasting)
    check_histories(pipeline, lasting)
    check_partitions(pipeline, lasting)


def snapshots_of(
    pipeline: Pipeline,
    lake: Lake,
    journal: Journal,
    rebuilt: Collection[str] = (),
    beside: Collection[str] = (),
) -> dict[str, Snapshot]:
    """Return the tables that the lake keeps and has, without those `beside`. Raises `LakeInconsistent`."""
    declared = {*_declared(pipeline, journal, rebuilt), ""}
    tables = [table for table in state_tables(pipeline) if _name(table) in declared and table not in beside]
    return {table: snapshot for table in tables if (snapshot := lake.snapshot(table)) is not None}


def wrong_stages(
    pipeline: Pipeline, journal: Journal, snapshots: Mapping[str, Snapshot], rebuilt: Collection[str] = ()
) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield each stage whose table has not committed what it should, with the last batch found and expected.

    What a join committed before it last began no longer counts. It belongs to published batches, or the join was left
    out of the batch that was interrupted at it.
    """
    commits = journal.last.commits if journal.last else {}
    under_way = {journal.unfinished.batch} if journal.unfinished else set()
    declared = _declared(pipeline, journal, rebuilt)
    for stage in dict.fromkeys([*commits, *stages_of(pipeline)]):
        name, batch = stage.partition("/")[2], commits.get(stage)
        if name not in declared:
            continue
        snapshot = snapshots.get(journal.table_of(stage))
        found = snapshot.transaction(journal.application(stage)) if snapshot else None
        begun = journal.begun.get(name, 0)
        counts_no_more = (batch or 0) < begun and (found or 0) < begun
        if found not in {batch, *under_way} and not counts_no_more:
            yield stage, found, batch


def stages_done(
    pipeline: Pipeline, journal: Journal, plan: Plan, snapshots: Mapping[str, Snapshot]
) -> list[str]:
    """Return the stages of the batch under way that committed something. `snapshots`: as `snapshots_of` has them."""
    tables = {stage: journal.table_of(stage) for stage in stages_of(pipeline)}
    return [
        stage
        for stage, table in tables.items()
        if table in snapshots and snapshots[table].transaction(journal.application(stage)) == plan.batch
    ]


def check_not_given_up(
    pipeline: Pipeline, lake: Lake, journal: Journal, plan: Plan, snapshots: Mapping[str, Snapshot]
) -> None:
    """Refuse to finish a batch whose rows are partly removed already. Raises `WrongUsage`."""
    for table, snapshot in snapshots.items():
        removals = (giving_up(table), giving_up_begun(table))
        if any(snapshot.transaction(journal.application(stage)) == plan.batch for stage in removals):
            raise WrongUsage(
                f"{lake.path(table)}: what batch {plan.batch} wrote here is removed already: giving it up was cut off. "
                f"`lakejoin repair {pipeline.path} --replan` ends what it began."
            )


def giving_up(table: str) -> str:
    """What removes the rows of a batch that is given up from a table, as its transaction identifier calls it."""
    return f"abandoned/{table}"


def giving_up_begun(table: str) -> str:
    """What removes the versions that such a batch began from a history, of which the other makes ended ones current."""
    return f"abandoned/begun/{table}"


def _declared(pipeline: Pipeline, journal: Journal, rebuilt: Collection[str]) -> set[str]:
    """Tables and streams, and the joins that the lake keeps up to date."""
    kept = set(kept_joins(pipeline, journal)) - set(rebuilt)
    return {*pipeline.inputs, *(set(pipeline.joins) & kept)}


def _name(table: str) -> str:
    """The declared name that a table of the lake is kept for; none for the quarantine."""
    return "".join(table.split("/")[1:2])


def _check_folds(pipeline: Pipeline, lake: Lake, journal: Journal, snapshots: Mapping[str, Snapshot]) -> None:
    folded = {
        rows_of(name): folded_through(journal, snapshots[rows_of(name)])
        for name in pipeline.tables
        if rows_of(name) in snapshots
    }
    done = {base: through for base, through in folded.items() if through is not None}
    if done:
        check_begun(lake, journal, done, {(fold.base, fold.through) for fold in Folds(lake).begun})
