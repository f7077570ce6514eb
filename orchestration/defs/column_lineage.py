"""Says what columns of its sides each column of a joined table is made of."""

from dagster import TableColumnDep, TableColumnLineage

from lakejoin.orchestration.config.schema.select import sources_of
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.transforms.model.result_spec import ResultSpec


def origins(join: ResultSpec) -> dict[str, str]:
    """Where each column is from, for people."""
    made_of = {name: ", ".join(map(".".join, sources)) for name, sources in sources_of(join).items()}
    return {name: f"From {sources}" for name, sources in made_of.items() if sources}


def column_lineage(embedded: EmbeddedPipeline, join: str) -> TableColumnLineage:
    """The same for Dagster, by the assets of tables, streams and joins, which bear their names."""
    made_of = sources_of(embedded.pipeline.spec_of_join(join))
    return TableColumnLineage(
        {
            name: [TableColumnDep(embedded.table_key(side), column) for side, column in sources]
            for name, sources in made_of.items()
        }
    )
