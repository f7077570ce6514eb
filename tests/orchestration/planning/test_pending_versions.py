"""Delta tables as sources: which versions a run reads, and how they are cut into batches. No Spark here."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from faults.shop import make_pipeline
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.planning.backlog import backlog
from lakejoin.orchestration.planning.pending_input import (
    Group,
    check_read,
    check_unchanged,
    cut,
    pending_groups,
)
from lakejoin.orchestration.show.status import lake_status
from lakejoin.storage.errors import SourceChanged, SourceNotFound, SourceTrimmed
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.planned.planned_file import PlannedFile

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TEXT = """\
name: shop
lake: ./lake
tables:
  customers:
    source: {format: delta, path: warehouse/customers}
    columns: {id: bigint, city: string}
    key: [id]
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: bigint}
    key: [id]
joins:
  orders_with_customers: {left: orders, right: customers, foreign_key: [customer], how: left}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """Return a pipeline over a table of somebody else, made with three rows, and a directory of files."""
    (tmp_path / "orders").mkdir()
    append(tmp_path, 3)
    return make_pipeline(tmp_path, TEXT)


def append(folder: Path, count: int) -> None:
    """Commit rows to the customers, in a version of their own."""
    customers = pa.table({"id": list(range(count)), "city": ["Rome"] * count, "phone": ["1"] * count})
    configuration = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(
        str(folder / "warehouse/customers"), customers, mode="append", configuration=configuration
    )


def compact(folder: Path) -> None:
    """Commit a version that changes no row."""
    DeltaTable(str(folder / "warehouse/customers")).optimize.compact()


def plan_of(files: Sequence[PlannedFile]) -> Plan:
    """A plan that reads these files and nothing else."""
    nothing: dict[str, int] = {}
    return Plan(1, "batch", NOW, tuple(files), nothing, nothing, {}, (), (), "", {}, "0.1")


def pending(shop: Pipeline, journal: Journal, rows: int | None = None) -> list[Group]:
    """The batches that a run would make."""
    groups = pending_groups(shop, journal, now=NOW, spark=None)
    return [piece for group in groups for piece in cut(group, rows)]


def ranges(batches: Sequence[Group]) -> list[list[tuple[int, int, int]]]:
    """The versions of the customers in each batch, with about how many records they have."""
    return [
        [(file.from_line, file.to_line, file.records) for file in batch.files if not file.is_divisible]
        for batch in batches
    ]


def test_first_batch_reads_the_table_and_later_ones_its_versions(shop: Pipeline, tmp_path: Path) -> None:
    """A plan holds one range for all versions that wait, and the next one goes on behind it."""
    journal = Journal(Lake(shop.lake))
    append(tmp_path, 2)
    batches = pending(shop, journal)
    assert ranges(batches) == [[(-1, 1, 5)]]

    journal.plans.append(plan_of(batches[0].files))
    assert pending(shop, journal) == []
    append(tmp_path, 1)
    append(tmp_path, 4)

    assert ranges(pending(shop, journal)) == [[(1, 3, 5)]]


def test_batches_by_rows_are_cut_between_versions(shop: Pipeline, tmp_path: Path) -> None:
    """A version is never cut, however large; each is in one batch, those without changes as well."""
    journal = Journal(Lake(shop.lake))
    append(tmp_path, 1)
    journal.plans.append(plan_of(pending(shop, journal)[0].files))
    compact(tmp_path)
    for count in (2, 1, 6, 1):
        append(tmp_path, count)
    compact(tmp_path)

    found = [part for batch in ranges(pending(shop, journal, 3)) for part in batch]

    assert [start for start, _, _ in found[1:]] == [end for _, end, _ in found[:-1]]
    assert (found[0][0], found[-1][1]) == (1, 7)
    assert [records for _, _, records in found] == [2, 1, 7]


def test_files_of_a_day_and_versions_share_a_batch(shop: Pipeline, tmp_path: Path) -> None:
    """Versions have no date: they go with the first day that waits."""
    for day in (1, 2):
        (tmp_path / "orders" / f"2024-01-0{day}.jsonl").write_text('{"op": "c", "id": 1, "customer": 1}\n')

    batches = pending(shop, Journal(Lake(shop.lake)))

    assert ranges(batches) == [[(-1, 0, 3)], []]
    assert [batch.records for batch in batches] == [4, 1]


@pytest.mark.bad_input(22)
def test_versions_that_changed_no_row_do_not_wait(shop: Pipeline, tmp_path: Path) -> None:
    """An OPTIMIZE makes no work; its version goes with the next one that does."""
    journal = Journal(Lake(shop.lake))
    append(tmp_path, 1)
    journal.plans.append(plan_of(pending(shop, journal)[0].files))
    compact(tmp_path)
    assert pending(shop, journal) == []
    append(tmp_path, 2)

    assert ranges(pending(shop, journal)) == [[(1, 3, 2)]]


def test_backlog_and_status_name_versions(shop: Pipeline, tmp_path: Path) -> None:
    """They say what waits from the log alone, and which columns nobody declared."""
    journal = Journal(Lake(shop.lake))
    journal.write_plan(plan_of(pending(shop, journal)[0].files))
    append(tmp_path, 1)
    compact(tmp_path)

    waiting = backlog(shop, NOW)

    assert [(w.table, w.file.name) for w in waiting.files] == [("customers", "version 1")]
    assert lake_status(shop, NOW).undeclared == {"customers": ("phone",)}
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "lakejoin.yaml")])
    assert "table customers: 1 versions wait, from version 1 on" in shown.stdout


def test_status_says_why_a_feed_cannot_be_followed(shop: Pipeline, tmp_path: Path) -> None:
    """What else is known of the lake is shown all the same."""
    (tmp_path / "warehouse/customers").rename(tmp_path / "elsewhere")

    status = lake_status(shop, NOW)

    assert status.backlog is None
    assert "table customers: " in status.unlisted
    assert "is no Delta table" in status.unlisted
    with pytest.raises(SourceNotFound, match="table customers"):
        pending(shop, Journal(Lake(shop.lake)))


@pytest.mark.bad_input(38)
def test_unfinished_batch_needs_the_versions_it_was_planned_with(shop: Pipeline, tmp_path: Path) -> None:
    """Versions that come meanwhile are left to the next one; what is gone stops it."""
    journal = Journal(Lake(shop.lake))
    journal.plans.append(plan_of(pending(shop, journal)[0].files))
    append(tmp_path, 1)
    (batch,) = pending(shop, journal)
    plan = plan_of(batch.files)
    append(tmp_path, 1)
    check_unchanged(shop, plan)
    check_read(shop.tables["customers"], batch.files, 7)  # how many there are is known once they are read

    DeltaTable(str(tmp_path / "warehouse/customers")).create_checkpoint()
    for version in (0, 1):
        (tmp_path / "warehouse/customers/_delta_log" / f"{version:020d}.json").unlink()

    with pytest.raises(SourceTrimmed, match=r"table customers: .*version 1 of the log is gone"):
        check_unchanged(shop, plan)


@pytest.mark.bad_input(38)
def test_another_table_in_its_place_is_refused(shop: Pipeline, tmp_path: Path) -> None:
    """Also where it came after the batch was planned."""
    (batch,) = pending(shop, Journal(Lake(shop.lake)))
    (tmp_path / "warehouse/customers").rename(tmp_path / "elsewhere")
    append(tmp_path, 3)

    with pytest.raises(SourceChanged, match=r"table customers: .*another table"):
        check_read(shop.tables["customers"], batch.files, 3)
