"""Where deletion vectors lie, by the examples of Delta's protocol."""

import pytest

from lakejoin.storage.delta_log.actions import vector_file

NAME = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("u", "ab^-aqEH.-t@S}K{vb[*k^", f"ab/{NAME}"),
        ("u", "^-aqEH.-t@S}K{vb[*k^", NAME),
        ("p", f"s3://mytable/{NAME}", f"s3://mytable/{NAME}"),
        ("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None),
    ],
    ids=["below a folder", "in the table", "elsewhere", "in the log"],
)
def test_place_of_a_deletion_vector_is_told_by_its_kind(kind: str, text: str, expected: str | None) -> None:
    """Only one with a file has a place."""
    assert vector_file({"deletionVector": {"storageType": kind, "pathOrInlineDv": text}}) == expected


@pytest.mark.parametrize("file", [{}, {"deletionVector": None}])
def test_file_without_deletion_vector_needs_none(file: dict[str, None]) -> None:
    """Writers leave the member out, or say null."""
    assert vector_file(file) is None
