"""Lists the assets of a pipeline: one for each declared table and for each step of each join.

`left table → subscription log → response log ← right table`, `response log → joined`; a join over a join starts from
the first one's joined table. Keys are `pipeline/table`, `pipeline/join` for the joined table, and
`pipeline/join/join_step` for what leads to it.
"""

from dataclasses import dataclass

from dagster import AssetKey

from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.join_assets import JOIN_ASSETS
from lakejoin.orchestration.defs.steps import STEPS
from lakejoin.storage.lake.layout import changes_of, records_of


@dataclass(frozen=True)
class LakeAsset:
    """An asset: a step of a declared table or join, and the Delta table below the lake that stands for it."""

    key: AssetKey
    step: str
    """One of `STEPS`."""
    name: str
    """Of the declared table or join, or of a star's join with one right side."""
    table: str
    """Below the lake: a declared table is followed by the log of its changes."""

    @property
    def declared(self) -> str:
        """The name in the file that it belongs to."""
        return self.name.split("/")[0]


def lake_assets(embedded: EmbeddedPipeline) -> list[LakeAsset]:
    """The assets of a pipeline: its tables, then the steps of its joins in their order."""
    pipeline = embedded.pipeline
    found = [LakeAsset(embedded.table_key(name), "table", name, changes_of(name)) for name in pipeline.tables]
    found += [
        LakeAsset(embedded.step_key(name, "versions"), "versions", name, changes_of(name))
        for name, table in pipeline.tables.items()
        if table.versioned
    ]
    found += [
        LakeAsset(embedded.table_key(name), "stream", name, records_of(name)) for name in pipeline.streams
    ]
    for name, join in (pipeline.joins_of_streams | pipeline.kept_by_key).items():
        found += [
            LakeAsset(embedded.step_key(part, step), step, part, table)
            for part, step, table in JOIN_ASSETS[type(join)].steps(pipeline, name)
        ]
    return found


def assets_of_tables(embedded: EmbeddedPipeline) -> dict[str, LakeAsset]:
    """The asset that each table below the lake belongs to: of several that one stands for, the one that writes it.

    A folded base belongs to what its rows are of.
    """
    assets = lake_assets(embedded)
    found = {asset.table: asset for asset in reversed(assets)}  # who writes a table comes before who reads it
    bases = [(STEPS[asset.step].base, asset) for asset in assets]
    return found | {base(asset.name): asset for base, asset in bases if base is not None}
