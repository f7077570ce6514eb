"""Limits the size of source files, so that a packed file, a file without line ends or a mistake fills no memory.

A file is checked while it is read through before a batch is planned, so that no Spark job ever sees one that is beyond
the limits. The limits of a single record are in `transforms.parsing.limits`.
"""

from dataclasses import dataclass

from storage.errors import SourceTooLarge

UNREADABLE_LINE = 512_000_000
"""Bytes of the longest line that is read at all: Spark needs some four times as much memory for a moment."""
_HONEST = 100_000_000
"""Up to so many bytes the ratio is not checked."""


@dataclass(frozen=True)
class FileLimits:
    """The limits of one source."""

    file: int = 10**12
    """Bytes of a file, unpacked."""
    ratio: int = 1000
    """Bytes that a byte of a packed file may stand for."""

    def check_size(self, path: str, size: int) -> None:
        """Refuse a file, or what is unpacked of it so far, that is larger than any may be. Raises `SourceTooLarge`."""
        if size > self.file:
            raise SourceTooLarge(
                f"{path}: has over {self.file:,} bytes, unpacked; expected at most that (source.limits.file). Split "
                "it, or raise the limit"
            )

    def check_ratio(self, path: str, packed: int, unpacked: int) -> None:
        """Refuse a packed file that unpacks to more than the ratio allows. Raises `SourceTooLarge`."""
        if unpacked > _HONEST and unpacked > self.ratio * packed:
            raise SourceTooLarge(
                f"{path}: its first {packed:,} bytes unpack to over {unpacked:,}; expected at most {self.ratio:,} for "
                "one (source.limits.ratio). If that is no mistake, raise the limit"
            )


NO_LIMITS = FileLimits()
"""The limits where none are declared."""


def check_line(path: str, number: int, length: int) -> None:
    """Refuse a file with a line that does not fit memory. Raises `SourceTooLarge`."""
    if length > UNREADABLE_LINE:
        raise SourceTooLarge(
            f"{path}: line {number:,} has over {UNREADABLE_LINE:,} bytes, which is more than can be read at once; "
            "expected a record a line, each with its line end. Correct the file"
        )
