"""Runs `lakejoin migrate`: gives a lake the columns that were added to its tables, and the types that were widened."""

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.summary import batch_line
from lakejoin.orchestration.cli.terminal import progress_bar, say


def migrate(config: Config) -> None:
    """Take in columns that are new in the configuration, and wider types.

    No row changes, and nothing is computed anew: rows have null in a new column until their next change. Columns that
    are gone or have a type that is no wider one are refused. Joins that changed as well are left as they are, and the
    command is named that computes them anew.
    """
    from lakejoin.orchestration.runs.migrate import migrate as work
    from lakejoin.storage.lake.plan import Published

    pipeline = options.load_pipeline(config)
    found = False
    with progress_bar("looking", None) as bar:
        for done in work(pipeline, lambda: options.open_session(pipeline), progress=bar.describe):
            found = True
            say(batch_line(done) if isinstance(done, Published) else str(done))
            bar.advance()
    if not found:
        say("No table or stream has new columns or wider types.")
