"""What the beginnings of files show: whether their records say how values are written."""

import gzip
from pathlib import Path

import pytest

from lakejoin.storage.sources.text.column_preview import says_types

PLAIN = b'{"op":"c","after":{"id":1,"schema":"public","note":"{\\"a\\":1}"}}\n'


@pytest.mark.parametrize(
    "line",
    [
        b'{"schema":{"type":"struct"},"payload":{}}',
        b'{"key":null,"value":{"schema": {"type":"struct"},"payload":{}}}',
        b'"{\\"schema\\":{\\"type\\":\\"struct\\"},\\"payload\\":{}}"',
        b'{"op":"c","after":"{\\"_id\\": {\\"$oid\\": \\"5\\"}}"}',
        b'{"op":"c","after":{"AMOUNT":{"scale":2,"value":"AfQ="}}}',
    ],
)
def test_record_that_says_it_is_found_in_any_of_some_files(line: bytes, tmp_path: Path) -> None:
    """Behind others, packed, and in strings."""
    (tmp_path / "a.jsonl").write_bytes(PLAIN * 9)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(PLAIN * 99 + line + b"\n"))
    paths = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl.gz")]

    assert says_types(paths)
    assert says_types([*paths[:1] * 40, paths[1]])
    assert not says_types(paths[:1])


def test_file_that_is_gone_says_nothing(tmp_path: Path) -> None:
    """Reading it in a batch tells what is wrong."""
    assert not says_types([str(tmp_path / "gone.jsonl")])
    assert not says_types([])
