"""Reads the first records of some files without a JVM: JSON, CSV, Parquet and ORC, each told by its content."""

import io
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakejoin.orchestration.proposals.csv_samples import csv_sample, encoding_of
from lakejoin.orchestration.proposals.file_samples import BYTES, RECORDS, FileSample, Unreadable
from lakejoin.orchestration.proposals.records import Record, record_of
from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.filesystem import open_file_system
from lakejoin.storage.sources.files.fingerprint import open_text
from lakejoin.storage.sources.orc.orc_files import orc_schema
from lakejoin.storage.sources.parquet.parquet_files import parquet_schema
from lakejoin.storage.sources.text.column_preview import parsed, pieces

_BESIDE = re.compile(r"\s*[^\t\n]+\t(?:[^\t\n]*\t)*\{")
"""A value behind something else on the first line; a field of CSV with tabs would be in quotes."""
_LINES = 20
"""Among how many lines there must be one that begins as JSON does."""


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
    encoding = encoding_of(content, is_whole=is_whole)
    text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
    if not text.strip():
        raise Unreadable(f"{path}: is empty; give a file with records")
    if _BESIDE.match(text):
        raise Unreadable(
            f"{path}: holds keys or times before its values, as a consumer on a console prints them with `print.key`; "
            "dump the values alone, or with `kcat -J`"
        )
    if _may_be_json(text) and (found := _of_json(path, text, is_whole=is_whole)) is not None:
        return found
    return csv_sample(path, text, encoding, is_whole=is_whole)


def _of_json(path: str, text: str, *, is_whole: bool) -> FileSample | None:
    lines = text.splitlines()
    found = list(map(parsed, itertools.islice(lines if is_whole or len(lines) < 2 else lines[:-1], RECORDS)))
    records = _records(found)
    written: dict[str, Any] = {}
    if len(records) < len(found) / 2 and text.lstrip()[:1] in {"{", "["}:
        records = _records(itertools.islice(pieces(text), RECORDS))
        written = {"one_per_line": False}
    if not records and any(isinstance(line, dict) for line in found):
        raise Unreadable(
            f"{path}: holds no value in JSON; if these are values of Avro with a registry, declare their topic "
            "with `format: kafka` and `registry`"
        )
    if not records:
        return None
    if any(record.is_dumped and not record.is_event for record in records):
        raise Unreadable(
            f"{path}: holds rows that were dumped with their keys or topics, which are not read; dump the values alone "
            "(`kcat -C -e -f '%s\\n' …`)"
        )
    is_event = any(record.is_event for record in records)
    records = [record for record in records if record.is_event == is_event]
    return FileSample(path, "debezium" if is_event else "jsonl", records, written=written)


def _records(found: Iterable[Any]) -> list[Record]:
    return [record for record in map(record_of, found) if record is not None]


def _may_be_json(text: str) -> bool:
    return any(line.lstrip()[:1] in {"{", "[", '"'} for line in itertools.islice(io.StringIO(text), _LINES))


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
