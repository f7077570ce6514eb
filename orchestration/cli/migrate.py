"""`lakejoin migrate`: gives a lake the columns that were added to its tables."""

from orchestration.cli import options
from orchestration.cli.options import Config
from orchestration.cli.summary import batch_line
from orchestration.cli.terminal import progress_bar, say


def migrate(config: Config) -> None:
    """Add columns that are new in the configuration.

    No row changes, and nothing is computed anew: rows have null in a new column until their next change. Columns that
    are gone or have another type are refused.
    """
    from orchestration.migrating import Added
    from orchestration.migrating import migrate as work

    pipeline = options.load_pipeline(config)
    found = False
    with progress_bar("looking", None) as bar:
        for done in work(pipeline, lambda: options.open_session(pipeline), progress=bar.describe):
            found = True
            say(f"{done.table}: {', '.join(done.columns)}" if isinstance(done, Added) else batch_line(done))
            bar.advance()
    if not found:
        say("No table or stream has new columns.")
