"""Symbolic links in a lake: what is outside of it is neither read nor written."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.shop import copy_of, joins, make_shop, run
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.storage.errors import LakeUnusable
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.symlinks import check_links

LINKS = (
    "tables", "joins", "tables/orders", "joins/left", "tables/orders/changes", "joins/left/joined", "quarantine",
    "_plan", "_published", "tables/customers/changes/_delta_log", "_plan/_delta_log",
)  # fmt: skip


def lead_out(lake: Path, name: str) -> Path:
    """Put a folder of a lake, or an empty one, elsewhere, and a link to it in its place."""
    place, elsewhere = lake / name, lake.parent / "elsewhere"
    place.mkdir(parents=True, exist_ok=True)
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    return elsewhere


@pytest.mark.bad_input(30)
@pytest.mark.parametrize("name", [*LINKS, "_lock"])
def test_link_out_of_the_lake_is_refused(tmp_path: Path, name: str) -> None:
    """Before anything is read through it, and before a lock is written."""
    lake = tmp_path / "lake"
    lake.mkdir()
    elsewhere = lead_out(lake, name)
    for opening in (Journal, lambda lake: writing(lake).__enter__()):
        with pytest.raises(LakeUnusable) as refused:
            opening(Lake(str(lake)))
        assert str(refused.value).startswith(
            f"{lake}/{name}: is a symbolic link to {elsewhere}, out of the lake "
        )
    assert list(elsewhere.iterdir()) == []
    assert not (lake / "_lock").is_file()


def test_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    """What would be made there is not in the lake."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "tables").symlink_to("../../nowhere")
    with pytest.raises(
        LakeUnusable, match=r"/lake/tables: is a symbolic link to .*/nowhere, out of the lake"
    ):
        check_links(Lake(str(tmp_path / "lake")))


def test_link_that_stays_in_the_lake_is_followed(tmp_path: Path) -> None:
    """The lake itself may be a link, too, and a lake at a URI has none."""
    lake = tmp_path / "lake"
    (lake / "store" / "orders").mkdir(parents=True)
    (lake / "tables").symlink_to("store")
    (tmp_path / "linked").symlink_to(lake)
    for root in ("lake", "linked", "none"):
        check_links(Lake(str(tmp_path / root)))
    check_links(Lake("s3a://bucket/lake"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a lake of one day with input for a second one."""
    pipeline = make_shop(tmp_path_factory.mktemp("links") / "shop", ["2024-01-01"])
    run(pipeline, spark)
    return make_shop(pipeline.path.parent, ["2024-01-01", "2024-01-02"])


@pytest.mark.spark
@pytest.mark.slow
def test_commands_do_not_follow_a_link_out_of_the_lake(shop: Pipeline, tmp_path: Path) -> None:
    """Each says which link it is, and what is at its other end stays as it was."""
    file = str(copy_of(shop, tmp_path / "shop").path)
    elsewhere = lead_out(tmp_path / "shop" / "lake", "tables/orders/changes")
    before = sorted(elsewhere.rglob("*"))
    for command in (["run"], ["check"], ["show", "orders"], ["repair", "left"], ["status"], ["maintain"],
                    ["quarantine", "list"]):  # fmt: skip
        *words, last = (
            [*command, file] if command[0] not in {"show", "repair"} else [command[0], file, command[1]]
        )
        found = CliRunner().invoke(app, [*words, last])
        assert (found.exit_code, "tables/orders/changes: is a symbolic link to" in found.output) == (1, True), (
            command, found.output,
        )  # fmt: skip
    assert sorted(elsewhere.rglob("*")) == before


@pytest.mark.spark
@pytest.mark.slow
def test_lake_that_is_reached_by_a_link_is_as_any_other(
    shop: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Its directory is named by the configuration, wherever that leads."""
    plain, linked = copy_of(shop, tmp_path / "plain"), copy_of(shop, tmp_path / "linked")
    lake = tmp_path / "linked" / "lake"
    lake.rename(tmp_path / "elsewhere")
    lake.symlink_to(tmp_path / "elsewhere")
    linked = load(linked.path)
    assert run(linked, spark) == run(plain, spark) == 1
    assert joins(linked, spark) == joins(plain, spark)
