"""Limits the size of source files, so that a packed file, a file without line ends or a mistake fills no memory.

A file is checked while it is read through before a batch is planned, so that no Spark job ever sees one that is beyond
the limits; what files that are no text become say `parquet_size`, `avro_blocks` and `orc_size` in `storage.sources`.
The limits of a single record are in `transforms.parsing.limits`.
"""

from dataclasses import dataclass

from lakejoin.storage.errors import SourceTooLarge

AT_ONCE = 256_000_000
"""Bytes of what is in memory at once, where nothing is declared: Spark reads it with its default memory of 4 GB."""
WIDE = 2
"""Bytes that the readers of CSV, and of JSON that is cut into records, need for a character."""
WIDE_TEXT = f", with {WIDE} bytes for each character,"
_HONEST = 100_000_000
"""Up to so many bytes the ratio is not checked."""


@dataclass(frozen=True)
class FileLimits:
    """The limits of one source."""

    file: int = 10**12
    """Bytes of a file, unpacked."""
    ratio: int = 1000
    """Bytes that a byte of a packed file may stand for."""
    memory: int = AT_ONCE
    """Bytes of what is read whole: a line, a record of CSV, a block of Avro, a page and the footer of Parquet."""

    def check(self, path: str, packed: int, unpacked: int) -> None:
        """Refuse a file that unpacks to more than any may, or than it may itself. Raises `SourceTooLarge`."""
        self.check_size(path, unpacked)
        self.check_ratio(path, packed, unpacked)

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

    def most(self, packed: int) -> int:
        """Bytes that a file of so many may unpack to."""
        return min(self.file, max(_HONEST, self.ratio * packed))

    def check_memory(self, path: str, what: str, size: int, *, about: str = "") -> None:
        """Refuse a file with a part that does not fit memory. Raises `SourceTooLarge`.

        `about`: what stands before the size, of a part that was not read to its end.
        """
        if size > self.memory:
            raise SourceTooLarge(
                f"{path}: {what} has {about}{size:,} bytes, all in memory at once; expected at most {self.memory:,} "
                "(source.limits.memory). If that is no mistake, raise the limit, and Spark's memory to sixteen times "
                "as much (`spark: {conf: {spark.driver.memory: …}}`)"
            )


NO_LIMITS = FileLimits()
"""The limits where none are declared."""
