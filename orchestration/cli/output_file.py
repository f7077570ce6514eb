"""Opens the file that a command writes, which is complete or not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def output_file(option: str, output: Path) -> Iterator[BinaryIO]:
    """Give a file beside `output` that takes its place when the block has ended well; what was there stays till then.

    option: how the command calls it, with its dashes. Raises `WrongUsage` at once where it cannot be written.
    """
    draft = output.with_name(f".{output.name}.draft")
    try:
        file = draft.open("wb")
    except OSError as error:
        from lakejoin.orchestration.errors import WrongUsage

        raise WrongUsage(
            f"{option} {output}: cannot be written ({error.strerror}); expected a file in a directory that is there "
            "and that you may write to"
        ) from error
    try:
        with file:
            yield file
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
