"""Says how many rows an ORC file has and how large it becomes, by its footer, before a batch is planned with it."""

from pyarrow import orc
from pyarrow.lib import ArrowException

from storage.errors import SourceBroken
from storage.filesystem import open_file_system
from storage.sources.compression import TORN
from storage.sources.limits import FileLimits
from storage.sources.orc_footer import read_footer


def check_orc(path: str, size: int, limits: FileLimits) -> int:
    """Return how many rows an ORC file has.

    Raises `SourceBroken` for one that is none, and `SourceTooLarge` for one that becomes more than the limits allow.
    """
    system, inner = open_file_system(path)
    try:
        with system.open_input_file(inner) as file:
            footer = read_footer(path, file, size, limits)
            limits.check(path, size, footer.bytes)
            limits.check_memory(path, "a row, on average,", footer.bytes // max(footer.rows, 1))
            return int(orc.ORCFile(file).nrows)
    except (*TORN, ArrowException, ValueError) as error:
        raise SourceBroken(
            f"{path}: is no whole ORC file ({str(error).splitlines()[0]}); write it again under another name, then "
            "rename it"
        ) from error
