"""Settings of a Dagster instance of ours: nothing is sent anywhere, and runs of a pipeline queue up."""

from pathlib import Path

SETTINGS = """\
# Made by Lakejoin; change it as you like, it is not written again.
telemetry:
  enabled: false
concurrency:
  pools:
    # A pipeline is a pool: its runs wait for one another.
    granularity: run
    default_limit: 1
"""


def prepare_home(home: Path) -> Path:
    """Make a directory that DAGSTER_HOME can name, with our settings unless it has some. Return it."""
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text(SETTINGS, encoding="utf-8")
    return home.resolve()
