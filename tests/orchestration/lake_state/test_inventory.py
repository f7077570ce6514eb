"""How the rows of a stage are put into files."""

import pytest

from lakejoin.orchestration.batch.context import files_for


@pytest.mark.parametrize(
    ("count", "cores", "files"),
    [
        (0, 2, 1),
        (200_000, 2, 1),
        (400_000, 2, 2),
        (1_500_000, 2, 4),
        (15_000_000, 2, 30),
        (1_500_000, 16, 7),
        (8_000_000, 16, 16),
        (8_100_000, 16, 32),
        (1_500_000, 1, 3),
    ],
)
def test_rows_go_into_few_files_that_keep_every_core_busy(count: int, cores: int, files: int) -> None:
    """None of them is so large that one task would be slow, or so small that there would be many."""
    assert files_for(count, cores) == files
