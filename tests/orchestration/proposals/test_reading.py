"""The beginnings of files, read without a JVM."""

import gzip
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakejoin.orchestration.proposals.file_samples import RECORDS, FileSample, Unreadable
from lakejoin.orchestration.proposals.locating import files_at
from lakejoin.orchestration.proposals.reading import read_sample
from lakejoin.storage.errors import SourceNotFound

ROW = {"op": "c", "id": 1}


def sample(folder: Path, name: str, content: bytes | str) -> FileSample:
    """Return what a file with this content says."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_sample(str(path))


def rows(found: FileSample) -> list[dict[str, object]]:
    """Return the rows of a sample."""
    return [dict(record.row) for record in found.records]


def test_json_is_read_packed_or_not(tmp_path: Path) -> None:
    """Lines that hold no record are passed over, and no more than the first are read."""
    lines = "\n".join(["", "null", "broken {", *[json.dumps({**ROW, "id": n}) for n in range(RECORDS)]])

    plain = sample(tmp_path, "a.json", lines)
    packed = sample(tmp_path, "a.jsonl.gz", gzip.compress(lines.encode()))

    assert plain.format == packed.format == "jsonl"
    assert rows(plain) == rows(packed)
    assert (rows(plain)[0], len(plain.records)) == (ROW | {"id": 0}, RECORDS - 3)


@pytest.mark.parametrize("text", [json.dumps([ROW, ROW]), json.dumps(ROW, indent=2) * 2])
def test_json_that_is_no_line_each(tmp_path: Path, text: str) -> None:
    """The source says so."""
    found = sample(tmp_path, "a.json", text)

    assert (rows(found), found.written) == ([ROW, ROW], {"one_per_line": False})


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ('a,b\n1,"x,\ny"\n', [{"a": "1", "b": "x,\ny"}], {}),
        ("a;b\n1,5;x\n", [{"a": "1.5", "b": "x"}], {"delimiter": ";", "decimal": ","}),
        ("a\tb\n1\tNULL\n", [{"a": "1", "b": None}], {"delimiter": "\t", "nulls": [r"\N", "NULL"]}),
        ("a,b\n1,\\N\n", [{"a": "1", "b": None}], {}),
        (
            "I,1,ann\nU,2,bob\n",
            [
                {"Op": "I", "column_2": "1", "column_3": "ann"},
                {"Op": "U", "column_2": "2", "column_3": "bob"},
            ],
            {"names": ["Op", "column_2", "column_3"]},
        ),
        ("a,b\n1,ö\n".encode("cp1252"), [{"a": "1", "b": "ö"}], {"encoding": "windows-1252"}),
        ("a\tb\n1\tö\n".encode("utf-16"), [{"a": "1", "b": "ö"}], {"delimiter": "\t", "encoding": "utf-16"}),
        ("\ufeffa,b\n1,ö\n", [{"a": "1", "b": "ö"}], {}),
    ],
)
def test_csv_says_how_it_is_written(tmp_path: Path, text: str, expected: object, written: object) -> None:
    """Delimiter, encoding, nulls, and whether there is a header."""
    found = sample(tmp_path, "a.csv", text)

    assert (found.format, rows(found)) == ("csv", expected)
    assert found.written.get("csv", {}) == written


def test_columns_have_the_types_of_the_file(tmp_path: Path) -> None:
    """Parquet and ORC; a column that Spark cannot read is left out."""
    table = pa.table({"id": [1], "price": [Decimal("1.10")], "at": [datetime(2026, 1, 1)]})  # noqa: DTZ001 - as stored
    orc.write_table(table, tmp_path / "a.orc")
    pq.write_table(table.append_column("clock", pa.array([1], pa.time64("us"))), tmp_path / "a.parquet")

    for form in ("orc", "parquet"):
        found = read_sample(str(tmp_path / f"a.{form}"))
        assert (found.format, found.types) == (
            form, {"id": "bigint", "price": "decimal(3,2)", "at": "timestamp_ntz"},
        )  # fmt: skip
        assert rows(found)[0]["id"] == 1


def test_what_cannot_be_looked_into_says_why(tmp_path: Path) -> None:
    """Avro needs a JVM, kcat's rows another dump; the rest is no source at all."""
    with (tmp_path / "a.avro").open("wb") as file:
        fastavro.writer(
            file, {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}, [{"id": 1}]
        )
    with pytest.raises(Unreadable, match="Avro cannot be looked into without a JVM"):
        read_sample(str(tmp_path / "a.avro"))
    dumped = json.dumps({"topic": "t", "partition": 0, "offset": 1, "payload": json.dumps(ROW)})
    with pytest.raises(Unreadable, match="dumped with their keys or topics"):
        sample(tmp_path, "dump.json", dumped)
    with pytest.raises(Unreadable, match="no value in JSON"):
        sample(tmp_path, "avro.json", json.dumps({"topic": "t", "key": "AAAAAAMC", "value": "AAAAAAcA"}))
    for line in ('{"id":1}\t{"op":"c","id":1}', 'CreateTime:17935\tnull\t{"op":"c","id":1}'):
        with pytest.raises(Unreadable, match="before its values"):
            sample(tmp_path, "console.txt", f"{line}\n{line}\n")
    for content in ("", b"\x00\x01\x02", b"PAR1 torn", b"ORC torn"):
        with pytest.raises(Unreadable):
            sample(tmp_path, "a", content)
    with pytest.raises(Unreadable):
        sample(tmp_path, "torn.gz", gzip.compress(b"x" * 10_000)[:20])


def test_files_are_named_as_the_configuration_would(tmp_path: Path) -> None:
    """Of folders, patterns and single files; what is hidden is no source."""
    for name in ("in/a[1].jsonl", "in/b.jsonl", "in/.hidden", "in/_done"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}\n")

    every = {"../in/a[1].jsonl", "../in/b.jsonl"}
    assert set(files_at([f"{tmp_path}/in"], tmp_path / "shop")) == every
    assert set(files_at([f"{tmp_path}/in/*.jsonl", f"{tmp_path}/in/b.jsonl"], tmp_path / "shop")) == every
    assert files_at([f"{tmp_path}/in/a[1].jsonl"], tmp_path) == {"in/a[1].jsonl": f"{tmp_path}/in/a[1].jsonl"}
    for nothing in ("nothing", "in/*.csv"):
        with pytest.raises(SourceNotFound):
            files_at([f"{tmp_path}/{nothing}"], tmp_path)
