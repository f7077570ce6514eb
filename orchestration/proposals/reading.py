"""Reads the first records of some files without a JVM: JSON, CSV, Parquet and ORC, each told by its content."""

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakejoin.orchestration.proposals.records import Record, record_of
from lakejoin.storage.errors import SourceBroken, SourceError
from lakejoin.storage.filesystem import open_file_system
from lakejoin.storage.sources.files.fingerprint import open_text
from lakejoin.storage.sources.orc.orc_files import orc_schema
from lakejoin.storage.sources.parquet.parquet_files import parquet_schema
from lakejoin.storage.sources.text.csv_text import records_of
from lakejoin.transforms.parsing.csv_dialect import CsvDialect, CsvEncoding

RECORDS = 4_000
"""How many records of a file are looked at."""
BYTES = 16 * 1024 * 1024
"""How many bytes of its text are looked at, at most."""
_LINES = 20
"""Among how many lines there must be one that begins as JSON does."""
_DELIMITERS = ",;\t|\x01"
_CELL = re.compile(r"[+-]?[0-9][0-9.,:T +Z-]*")


class Unreadable(SourceError):
    """A file of which no sample can be taken; the message says why."""


@dataclass(frozen=True)
class FileSample:
    """What the beginning of a file says."""

    path: str
    format: str
    """`debezium`, `jsonl`, `csv`, `parquet` or `orc`."""
    records: Sequence[Record]
    names: Sequence[str] = ()
    """The columns of a file that names them beside its records."""
    types: dict[str, str] = field(default_factory=dict)
    """The types of columns that the file itself says."""
    written: dict[str, Any] = field(default_factory=dict)
    """Keys of the source that say how it is written."""


def read_sample(path: str) -> FileSample:
    """Look at the beginning of a file. Raises `Unreadable`, and what opening the file raises."""
    with open_text(path) as stream:
        try:
            content = bytes(stream.read(BYTES))
        except (OSError, ValueError) as error:
            raise Unreadable(f"{path}: cannot be unpacked ({error}); write it again") from error
    if content.startswith(b"PAR1"):
        return _of_parquet(path)
    if content.startswith(b"ORC"):
        return _of_orc(path)
    if content.startswith(b"Obj\x01"):
        raise Unreadable(
            f"{path}: Avro cannot be looked into without a JVM; declare its columns yourself, with `format: avro`"
        )
    is_whole = len(content) < BYTES
    encoding = _encoding(content, is_whole=is_whole)
    text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
    if not text.strip():
        raise Unreadable(f"{path}: is empty; give a file with records")
    if _may_be_json(text) and (found := _of_json(path, text, is_whole=is_whole)) is not None:
        return found
    return _of_csv(path, text, encoding, is_whole=is_whole)


def _of_json(path: str, text: str, *, is_whole: bool) -> FileSample | None:
    lines = text.splitlines()
    found = list(map(_parsed, itertools.islice(lines if is_whole or len(lines) < 2 else lines[:-1], RECORDS)))
    records = [record for record in map(record_of, found) if record is not None]
    written: dict[str, Any] = {}
    if len(records) < len(found) / 2 and text.lstrip()[:1] in {"{", "["}:
        records = [record for record in map(record_of, _pieces(text)) if record is not None]
        written = {"one_per_line": False}
    if not records:
        return None
    if any(record.is_dumped and not record.is_event for record in records):
        raise Unreadable(
            f"{path}: holds rows in the envelope of kcat, which are not read; dump the values alone "
            "(`kcat -C -e -f '%s\\n' …`)"
        )
    is_event = any(record.is_event for record in records)
    records = [record for record in records if record.is_event == is_event]
    return FileSample(path, "debezium" if is_event else "jsonl", records, written=written)


def _may_be_json(text: str) -> bool:
    return any(line.lstrip()[:1] in {"{", "[", '"'} for line in itertools.islice(io.StringIO(text), _LINES))


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _pieces(text: str) -> Iterator[Any]:
    """Objects that share lines, span lines or lie in lists."""
    decoder, place = json.JSONDecoder(), text.find("{")
    for _ in range(RECORDS):
        try:
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield found
        place = text.find("{", place)


def _encoding(content: bytes, *, is_whole: bool) -> CsvEncoding:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        # a sign that was cut at the end of what was read is no mistake
        return "utf-8" if not is_whole and error.start > len(content) - 4 else "windows-1252"
    return "utf-8"


def _of_csv(path: str, text: str, encoding: CsvEncoding, *, is_whole: bool) -> FileSample:
    first = re.sub(r'"(?:[^"]|"")*"', "", text.split("\n", 1)[0])
    delimiter = max(_DELIMITERS, key=first.count)
    lines = io.StringIO(text if is_whole else text[: text.rfind("\n") + 1], newline="")
    try:
        rows = [
            row
            for row in itertools.islice(records_of(lines, CsvDialect(delimiter=delimiter)), RECORDS)
            if row
        ]
    except csv.Error as error:
        raise Unreadable(
            f"{path}: is neither JSON, CSV, Parquet nor ORC that can be read ({error})"
        ) from error
    if "\0" in text or not rows or (len(rows[0]) == 1 and ".csv" not in path):
        raise Unreadable(f"{path}: is neither JSON, CSV, Parquet nor ORC; give a file of these")
    written: dict[str, Any] = {"delimiter": delimiter} if delimiter != "," else {}
    if encoding != "utf-8":
        written["encoding"] = encoding
    header = rows.pop(0)
    if _is_no_header(header):
        rows.insert(0, header)
        is_dms = all(row[0] in {"I", "U", "D"} for row in rows)
        header = [f"column_{place}" for place in range(1, len(header) + 1)]
        header[0] = "Op" if is_dms else header[0]
        written["names"] = header
    records = [Record(dict(zip(header, row, strict=True))) for row in rows if len(row) == len(header)]
    nulls = [
        r"\N",
        *sorted({"NULL", "null"} & {value for record in records for value in record.row.values()}),
    ]
    if len(nulls) > 1:
        written["nulls"] = nulls
    if delimiter == ";" and _has_commas(records):
        written["decimal"] = ","
    return FileSample(
        path, "csv", [Record(_told(record.row, nulls, written)) for record in records], header,
        written={"csv": written} if written else {},
    )  # fmt: skip


def _is_no_header(first: Sequence[str]) -> bool:
    """Whether the first line is a record: a name is no number, never missing, and there once."""
    return len(set(first)) < len(first) or any(not cell or _CELL.fullmatch(cell) for cell in first)


def _has_commas(records: Sequence[Record]) -> bool:
    texts = [
        text
        for record in records
        for text in record.row.values()
        if re.fullmatch(r"-?[0-9]+[.,][0-9]+", text)
    ]
    return bool(texts) and all("," in text for text in texts)


def _told(row: Any, nulls: Sequence[str], written: dict[str, Any]) -> dict[str, Any]:
    """A row with its nulls, and its numbers with a point."""
    return {
        name: None
        if text in nulls
        else text.replace(",", ".")
        if "decimal" in written and re.fullmatch(r"-?[0-9]+,[0-9]+", text)
        else text
        for name, text in row.items()
    }


def _of_parquet(path: str) -> FileSample:
    system, inner = open_file_system(path)
    try:
        file = pq.ParquetFile(inner, filesystem=system)
        names = file.schema_arrow.names
        batch = next(file.iter_batches(batch_size=RECORDS), None)
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{path}: is no whole Parquet file ({error}); write it again") from error
    return _of_columns(path, "parquet", names, batch, parquet_schema)


def _of_orc(path: str) -> FileSample:
    system, inner = open_file_system(path)
    try:
        with system.open_input_file(inner) as opened:
            file = orc.ORCFile(opened)
            names = file.schema.names
            batch = file.read_stripe(0).slice(0, RECORDS) if file.nstripes else None
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(f"{path}: is no whole ORC file ({error}); write it again") from error
    return _of_columns(path, "orc", names, batch, orc_schema)


def _of_columns(
    path: str,
    form: str,
    names: Sequence[str],
    batch: pa.RecordBatch | None,
    schema: Callable[[str, list[str]], Any],
) -> FileSample:
    """The sample of a file with types; a column that Spark cannot read is left out."""
    types: dict[str, str] = {}
    for name in names:
        try:
            types[name] = schema(path, [name])[name].simpleString()
        except SourceBroken:
            continue
    rows = [] if batch is None else batch.select(list(types)).to_pylist()
    return FileSample(path, form, [Record(row) for row in rows], list(types), types)
