"""The web interface in a real browser: the asset graph, a backfill over three days, its results."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from recordings.tiny import DAYS, write_pipeline
from ui.dagster_server import DagsterServer, dagster_dev

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.ui,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium"),
]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RUN_SECONDS = 600
PAGE_SECONDS = 60
EVERYTHING = "/asset-groups"
GROUP = "/locations/lakejoin/asset-groups/tiny"
JOINED = "/assets/tiny/flights_with_planes"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterServer]:
    """Serve the tiny recording, of which nothing was worked off yet."""
    folder = tmp_path_factory.mktemp("ui")
    with dagster_dev(write_pipeline(folder), folder) as running:
        yield running


@pytest.fixture(scope="module")
def page(server: DagsterServer) -> Iterator[Page]:
    """Open the interface in Chromium; no dialog lies over its first page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1600, "height": 900})
        tab.set_default_timeout(PAGE_SECONDS * 1000)
        tab.goto(server.url + GROUP)
        yield tab
        browser.close()


def shoot(page: Page, folder: Path, name: str) -> None:
    """Keep a picture of the page for whoever looks into a failure."""
    page.screenshot(path=str(folder / f"{name}.png"))


def test_backfill_over_three_days_runs_from_the_browser(
    server: DagsterServer, page: Page, tmp_path: Path
) -> None:
    """The graph shows tables and results, a backfill of all days started there is one run, and its results show."""
    expect.set_options(timeout=PAGE_SECONDS * 1000)
    for node in ("flights", "planes", "flights_with_planes"):
        expect(page.get_by_text(node, exact=True).first).to_be_visible()
    shoot(page, tmp_path, "1-graph")

    page.goto(server.url + EVERYTHING)
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_role("button", name="All", exact=True).click()
    shoot(page, tmp_path, "2-launch")
    page.get_by_role("button", name="Launch backfill").click()
    run = server.finished_run(RUN_SECONDS)
    assert run["status"] == "SUCCESS", server.log.read_text()[-5000:]
    tags = {tag["key"].removeprefix("dagster/"): tag["value"] for tag in run["tags"]}
    assert tags["asset_partition_range_start"] == DAYS[0]
    assert tags["asset_partition_range_end"] == DAYS[-1]

    page.goto(server.url + GROUP)
    expect(page.get_by_text("100% filled")).to_have_count(3)
    shoot(page, tmp_path, "3-materialized")
    page.goto(f"{server.url}{GROUP}_internal")
    expect(page.get_by_text("100% filled")).to_have_count(2)

    page.goto(f"{server.url}{JOINED}?view=events")
    for day in DAYS:
        expect(page.get_by_text(day).first).to_be_visible()
    expect(page.get_by_text("emissions").first).to_be_visible()
    shoot(page, tmp_path, "4-materializations")

    page.goto(f"{server.url}{JOINED}?view=checks")
    for check in ("left_row_exists", "one_subscription", "nothing_pending"):
        expect(page.get_by_text(check, exact=True).first).to_be_visible()
    expect(page.get_by_text("Passed").first).to_be_visible()
    shoot(page, tmp_path, "5-checks")

    page.goto(f"{server.url}/runs/{run['runId']}")
    expect(page.get_by_text("Success").first).to_be_visible()
    shoot(page, tmp_path, "6-run")
