"""Says which columns an ORC file has, how many rows, and how large it becomes, by its footer and without a JVM."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import orc
from pyarrow.lib import ArrowException

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.filesystem import open_file_system
from lakejoin.storage.sources.files.compression import TORN
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.orc.orc_footer import read_footer


def columns_in(path: str) -> pa.Schema:
    """Return the columns of an ORC file. Raises `SourceBroken` for what is none."""
    with _opened(path) as file:
        return orc.ORCFile(file).schema


def check_orc(path: str, size: int, limits: FileLimits) -> int:
    """Return how many rows an ORC file has.

    Raises `SourceBroken` for one that is none, and `SourceTooLarge` for one that becomes more than the limits allow.
    """
    with _opened(path) as file:
        footer = read_footer(path, file, size, limits)
        limits.check(path, size, footer.bytes)
        limits.check_memory(path, "a row, on average,", footer.bytes // max(footer.rows, 1))
        found = orc.ORCFile(file)
        assert isinstance(found.schema, pa.Schema)  # raises for what has no columns
        return int(found.nrows)


@contextmanager
def _opened(path: str) -> Iterator[pa.NativeFile]:
    system, inner = open_file_system(path)
    try:
        with system.open_input_file(inner) as file:
            yield file
    except (*TORN, ArrowException, ValueError) as error:
        raise SourceBroken(
            f"{path}: is no whole ORC file ({str(error).splitlines()[0]}); write it again under another name, then "
            "rename it"
        ) from error
