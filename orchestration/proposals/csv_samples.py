"""Reads the beginning of a CSV file: its rows as texts, and how it is written where it is not as in RFC 4180."""

import csv
import io
import itertools
import re
from collections.abc import Sequence
from typing import Any

from lakejoin.orchestration.proposals.file_samples import RECORDS, FileSample, Unreadable
from lakejoin.orchestration.proposals.records import Record
from lakejoin.storage.sources.text.csv_text import records_of
from lakejoin.transforms.parsing.csv_dialect import CsvDialect, CsvEncoding

_DELIMITERS = ",;\t|\x01"
_CELL = re.compile(r"[+-]?[0-9][0-9.,:T +Z-]*")


def encoding_of(content: bytes, *, is_whole: bool) -> CsvEncoding:
    """Return the encoding of a file by its beginning; `is_whole`: there is no more of it."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        # a sign that was cut at the end of what was read is no mistake
        return "utf-8" if not is_whole and error.start > len(content) - 4 else "windows-1252"
    return "utf-8"


def csv_sample(path: str, text: str, encoding: CsvEncoding, *, is_whole: bool) -> FileSample:
    """Return what the text with which a CSV file begins says. Raises `Unreadable` for what is no CSV."""
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
