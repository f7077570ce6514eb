"""Makes a lake a second time from its sources, in a folder that is thrown away."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.config.document import read_document


@contextmanager
def second_lake(pipeline: Pipeline) -> Iterator[Pipeline]:
    """Give a pipeline over the same sources whose lake is empty, and goes with the block.

    Its results are registered in no catalog.
    """
    declared = read_document(pipeline.path.read_text(encoding="utf-8-sig"), str(pipeline.path)).data
    with TemporaryDirectory(prefix="lakejoin-replay-") as folder:
        text = yaml.safe_dump(_unregistered(declared) | {"lake": str(Path(folder) / "lake")}, sort_keys=False)
        yield load_text(text, pipeline.path)


def _unregistered(value: Any) -> Any:
    """Return a part of a file without what says how tables of results are kept, and with lists for tuples."""
    if isinstance(value, dict):
        return {key: _unregistered(item) for key, item in value.items() if key != "materialized"}
    return [_unregistered(item) for item in value] if isinstance(value, tuple) else value
