"""`lakejoin migrate`: gives a lake the columns that were added to its tables, and the types that were widened."""

from typing import TYPE_CHECKING

from orchestration.cli import options
from orchestration.cli.options import Config
from orchestration.cli.summary import batch_line
from orchestration.cli.terminal import progress_bar, say

if TYPE_CHECKING:
    from orchestration.migrating import Migrated


def migrate(config: Config) -> None:
    """Take in columns that are new in the configuration, and wider types.

    No row changes, and nothing is computed anew: rows have null in a new column until their next change. Columns that
    are gone or have a type that is no wider one are refused.
    """
    from orchestration.migrating import Migrated
    from orchestration.migrating import migrate as work

    pipeline = options.load_pipeline(config)
    found = False
    with progress_bar("looking", None) as bar:
        for done in work(pipeline, lambda: options.open_session(pipeline), progress=bar.describe):
            found = True
            say(batch_line(done) if not isinstance(done, Migrated) else _line(done))
            bar.advance()
    if not found:
        say("No table or stream has new columns or wider types.")


def _line(done: "Migrated") -> str:
    added = [f"added {', '.join(done.added)}"] if done.added else []
    widened = [f"widened {', '.join(done.widened)}"] if done.widened else []
    return f"{done.table}: {'; '.join(added + widened)}"
