"""Makes a lake a second time from its sources, in a folder that is thrown away."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.config.document import written
from lakejoin.orchestration.config.loading import declared_in


@contextmanager
def second_lake(pipeline: Pipeline) -> Iterator[Pipeline]:
    """Give a pipeline over the same sources whose lake is empty, and goes with the block.

    Its results are registered in no catalog.
    """
    declared = declared_in(pipeline)
    with TemporaryDirectory(prefix="lakejoin-replay-") as folder:
        made = declared | {
            section: {name: unregistered(entry) for name, entry in declared[section].items()}
            for section in ("joins", "groups")
            if declared.get(section)
        }
        text = written(made | {"lake": str(Path(folder) / "lake")})
        yield load_text(text, pipeline.path)


def unregistered(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without what says how its tables are kept."""
    return {
        key: unregistered(value) if key == "history" and isinstance(value, dict) else value
        for key, value in result.items()
        if key != "materialized"
    }
