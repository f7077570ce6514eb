"""Avro files are counted by their blocks, and refused where they are torn or become too large; no JVM is started."""

import io
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import fastavro
import pytest

from lakejoin.storage.errors import SourceBroken, SourceChanged, SourceTooLarge
from lakejoin.storage.sources.avro.avro_blocks import read_header
from lakejoin.storage.sources.avro.avro_fields import nanoseconds, reader_schema
from lakejoin.storage.sources.files import limits
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.avro import Avro

Write = Callable[..., FoundFile]
SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "op", "type": "string"}, {"name": "id", "type": "long"}],
}


def in_avro(count: int, codec: str = "null", schema: Any = SCHEMA, row: Any = None) -> bytes:
    """A file of so many rows, in blocks of about a thousand bytes."""
    rows: Iterable[Any] = ({"op": "c", "id": n} if row is None else row for n in range(count))
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=1000)
    return file.getvalue()


def number(value: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    value, found = value << 1, b""
    while value >= 128:
        value, found = value >> 7, found + bytes([value & 127 | 128])
    return found + bytes([value])


def one_block(count: int, packed: bytes, codec: str, schema: Any = SCHEMA) -> bytes:
    """A file with a block that says what it likes."""
    said = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec.encode()}
    texts = b"".join(number(len(text)) + text for entry in said.items() for text in entry)
    sync = b"s" * 16
    return b"Obj\x01" + number(2) + texts + b"\0" + sync + number(count) + number(len(packed)) + packed + sync


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz", "zstandard"])
def test_records_are_counted_whatever_packs_them(write: Write, codec: str) -> None:
    """Over several blocks; one byte that is altered in a packed one is found where the codec has a checksum."""
    content = in_avro(1000, codec)
    assert content.count(read_header((found := write("x.avro", content)).path, found.size).sync) > 2

    assert Avro().measure(found).lines == 1000
    if codec in {"snappy", "bzip2", "xz"}:
        altered = bytearray(content)
        altered[len(content) // 2] ^= 1
        with pytest.raises(SourceBroken, match=r"x\.avro: is no whole Avro file"):
            Avro().measure(write("x.avro", bytes(altered)))


@pytest.mark.bad_input(41)
def test_file_that_is_cut_is_told_wherever_it_is_cut_but_between_blocks(write: Write) -> None:
    """Avro has no footer: a file that ends with a block is whole."""
    content = in_avro(300, "deflate")
    sync = read_header((found := write("x.avro", content)).path, found.size).sync
    ends = {place + 16 for place in range(len(content)) if content[place:].startswith(sync)}

    whole = set()
    for end in range(len(content)):
        try:
            Avro().measure(write("x.avro", content[:end]))
            whole.add(end)
        except SourceBroken as error:
            assert "write it again under another name" in str(error)  # noqa: PT017 - each of a thousand

    assert whole == ends - {len(content)}


@pytest.mark.bad_input(41)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "first bytes"),
        (b"PAR1" * 9, "first bytes"),
        (in_avro(300)[:-16] + b"x" * 16, "does not end where it says"),
        (one_block(1, b"x", "lz4"), "its codec is 'lz4', and Spark reads null, snappy"),
        (one_block(1, b"x", "null", "string"), "its schema is none of records"),
        (one_block(1, b"x", "null", {"type": "record", "name": "x", "fields": [{"type": "int"}]}), "none of records"),
        (one_block(1, zlib.compress(b"x" * 99)[2:-9], "deflate"), "has no end"),
        (b"Obj\x01" + number(2**40), "ends in the middle"),
        (b"Obj\x01" + b"\xff" * 20, "more than 64 bits"),
    ],
    ids=["0 bytes", "parquet", "sync", "codec", "no record", "no name", "deflate", "entries", "number"],
)  # fmt: skip
def test_what_is_no_avro_is_told(write: Write, content: bytes, said: str) -> None:
    """Before a batch is planned with it."""
    with pytest.raises(SourceBroken, match=rf"x\.avro: is no whole Avro file \(.*{said}.*\); write it again"):
        Avro().measure(write("x.avro", content))
    assert Avro().columns_of(write("x.avro", b"none"), None) == []  # type: ignore[arg-type] # no row says anything


@pytest.mark.bad_input(46)
def test_bombs_are_refused_without_being_unpacked(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that unpacks to much, one that says so, records without a byte, and a file of many such blocks."""
    packer = zlib.compressobj(9, wbits=-15)
    large = packer.compress(bytes(150_000_000)) + packer.flush()
    empty = {"type": "record", "name": "x", "fields": [{"name": "id", "type": "null"}]}
    found = {
        r"block 1, unpacked, has at least [0-9,]+ bytes, all": one_block(1, large, "deflate"),
        r"block 1, unpacked, has 2,000,000,000 bytes": one_block(1, number(10**9) + b"x" * 9, "snappy"),
        r"unpack to over 1,000,000,000,000; expected at most 1,000": one_block(10**12, b"", "null", empty),
        r"its header has 1,[0-9,]+ bytes": b"Obj\x01" + number(1) + number(1_100_000) + b"x" * 1_200_000,
    }

    for said, content in found.items():
        tracemalloc.start()
        with pytest.raises(SourceTooLarge, match=rf"x\.avro: .*{said}"):
            Avro().measure(write("x.avro", content), limits=FileLimits(memory=1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
        tracemalloc.stop()
    monkeypatch.setattr(limits, "_HONEST", 1000)
    many = write("x.avro", in_avro(2000, "deflate", row={"op": "c" * 900, "id": 1}))
    with pytest.raises(SourceTooLarge, match=r"bytes unpack to over [0-9,]+; expected at most 5 for one"):
        Avro().measure(many, limits=FileLimits(ratio=5))
    assert Avro().measure(many).lines == 2000


def test_nothing_is_added_to_a_file(write: Write) -> None:
    """A block that was appended is a change, as it is of Parquet; a copy is none."""
    file = io.BytesIO(content := in_avro(10))
    file.seek(0, io.SEEK_END)
    fastavro.writer(file, fastavro.parse_schema(SCHEMA), [{"op": "c", "id": 11}])
    known = Avro().measure(write("x.avro", content))

    assert Avro().measure(write("x.avro", content, modified=2), known).lines == 10
    longer = write("x.avro", file.getvalue(), modified=3)
    assert Avro().measure(longer).lines == 11
    with pytest.raises(SourceChanged, match="has other content now"):
        Avro().measure(longer, known)


def test_reader_knows_the_types_that_stand_in_fields_it_leaves_out() -> None:
    """The first place of a name is written out, also of one within a namespace; a type may hold itself."""
    kind = {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}
    node = {"type": "record", "name": "inner.Node", "fields": [
        {"name": "kind", "type": "shop.Kind"}, {"name": "next", "type": ["null", "Node"]},
    ]}  # fmt: skip
    schema = {
        "type": "record", "name": "Row", "namespace": "shop",
        "fields": [
            {"name": "first", "type": kind, "aliases": ["id"]},
            {"name": "second", "type": ["null", {"type": "array", "items": node}]},
            {"name": "id", "type": {"type": "long", "logicalType": "timestamp-nanos"}, "default": 0},
            {"name": "third", "type": {"type": "map", "values": "Kind"}},
            {"name": "fourth", "type": {"type": "Kind"}},
            {"name": "fifth", "type": "inner.Node"},
        ],
    }  # fmt: skip
    written_out = {"type": "enum", "name": "shop.Kind", "symbols": ["a", "b"]}

    some = reader_schema(schema, {"third", "fourth", "id"})

    assert (some["name"], [field["name"] for field in some["fields"]]) == (
        "shop.Row",
        ["id", "third", "fourth"],
    )
    assert some["fields"][1:] == [
        {"name": "third", "type": {"type": "map", "values": written_out}},
        {"name": "fourth", "type": "shop.Kind"},
    ]
    fifth = reader_schema(schema, {"fifth"})["fields"][0]["type"]
    assert fifth["fields"] == [
        {"name": "kind", "type": written_out}, {"name": "next", "type": ["null", "inner.Node"]}
    ]  # fmt: skip
    assert [nanoseconds(field["type"]) for field in schema["fields"]] == [None, None, True, None, None, None]
