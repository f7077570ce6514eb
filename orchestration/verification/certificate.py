"""Certifies what a lake holds: hashes of its tables, of the input that they are made of, and of the configuration."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.config_fingerprints import state_versions
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.lake_state.readable import check_readable
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.orchestration.verification.content_hash import METHOD, Content, content_of
from lakejoin.orchestration.verification.duck_tables import rows_of
from lakejoin.orchestration.verification.order_dependent import order_dependent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of, shown_name
from lakejoin.storage.lake.plan import Plan
from lakejoin.transforms.model.schemas import is_internal

FORMAT = "lakejoin-certificate-1"
_PROGRAMS = ("lakejoin", "pyspark", "delta-spark", "deltalake", "duckdb")
_LISTED = 100
"""Up to how many files the certificate names them."""


class Inputs(BaseModel):
    """What was read of a source."""

    model_config = ConfigDict(frozen=True)
    files: int
    sha256: str
    names: list[str] | None = None
    """Of its files, where they are few."""


class Replay(BaseModel):
    """What the same input made in another lake, by other batches."""

    model_config = ConfigDict(frozen=True)
    cut: str
    batches: int
    content: dict[str, Content]
    first_differences: dict[str, str]
    """Of each table that differs, the first key of it."""

    def differing(self, certificate: "Certificate") -> dict[str, str]:
        """Return how the content is another one, by table."""
        return _content_differences(certificate.content, self.content)


class Certificate(BaseModel):
    """What a lake held at a time."""

    model_config = ConfigDict(frozen=True)
    format: str = FORMAT
    method: str = METHOD
    pipeline: str
    made_at: str
    batch: int
    programs: dict[str, str]
    configuration: dict[str, str]
    """Of each table and result a fingerprint of what it is made with."""
    inputs: dict[str, Inputs]
    content: dict[str, Content]
    replay: Replay | None = None

    def text(self) -> str:
        """Return it as a file has it: the same content is the same text."""
        return (
            json.dumps(self.model_dump(exclude_none=True), indent=2, sort_keys=True, ensure_ascii=False)
            + "\n"
        )


@dataclass(frozen=True)
class Differences:
    """What of a lake is not as a certificate has it."""

    content: Mapping[str, str]
    configuration: tuple[str, ...]
    inputs: tuple[str, ...]


def certified(pipeline: Pipeline) -> Certificate:
    """Certify what a lake holds after its last finished batch.

    Raises `WrongUsage` where there is none or DuckDB is not installed, `LakeUnusable` and `LakeInconsistent`.
    """
    journal = Journal(Lake(pipeline.lake))
    snapshot = published_snapshot(journal)
    batch = snapshot.batch - 1
    return Certificate(
        pipeline=pipeline.name,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        batch=batch,
        programs={name: version(name) for name in _PROGRAMS},
        configuration=state_versions(pipeline),
        inputs={name: _inputs(journal, name, batch) for name in pipeline.inputs},
        content=dict(contents(pipeline, journal, snapshot)),
    )


def contents(pipeline: Pipeline, journal: Journal, snapshot: Plan) -> Iterator[tuple[str, Content]]:
    """Yield what each result, table and stream holds. What batches alone decide, such as numbers, is not covered."""
    tables = arrow_tables(pipeline)
    histories = [shown_name(history_of(name)) for name in pipeline.event_histories]
    for name in [*pipeline.joins, *histories, *pipeline.inputs]:
        check_readable(pipeline, journal, snapshot, name, kept=False)
        shown = [column for column in tables[name].schema if not is_internal(column.name)]
        left_out = order_dependent(pipeline, name.partition(".")[0]) & {column.name for column in shown}
        covered = StructType([column for column in shown if column.name not in left_out])
        yield name, content_of(rows_of(pipeline, snapshot, name, covered.names), covered, sorted(left_out))


def goes_by_arrival(pipeline: Pipeline, name: str) -> bool:
    """Whether a result may depend on how its input was cut: a join of a stream meets what has come until then."""
    return not pipeline.joins_of_streams.keys().isdisjoint(pipeline.made_of(name))


def _inputs(journal: Journal, name: str, batch: int) -> Inputs:
    files = dict[str, tuple[Any, ...]]()
    for file, *read in journal.known_files(name, until=batch).each(
        "name", "from_line", "to_line", "fingerprint"
    ):
        first = files[file][0] if file in files else read[0]
        files[file] = (first, *read[1:])  # one that was read in parts is one
    text, names = json.dumps(files, sort_keys=True), sorted(files)
    return Inputs(
        files=len(files),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        names=names if len(names) <= _LISTED else None,
    )


def read_certificate(path: Path) -> Certificate:
    """Read a certificate. Raises `WrongUsage` for a file that is none, or one of another version."""
    try:
        found = Certificate.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{path}: is no certificate of `lakejoin certify`") from error
    if (found.format, found.method) != (FORMAT, METHOD):
        raise WrongUsage(
            f"{path}: was made as {found.format} by {found.method}, and this version makes {FORMAT} by {METHOD}; "
            "hold the lake against it with the version that made it"
        )
    return found


def differences(certificate: Certificate, now: Certificate) -> Differences:
    """Return what of a lake, as it is certified now, is not as a certificate has it."""
    return Differences(
        _content_differences(certificate.content, now.content),
        _different(certificate.configuration, now.configuration),
        _different(certificate.inputs, now.inputs),
    )


def _content_differences(then: Mapping[str, Content], now: Mapping[str, Content]) -> dict[str, str]:
    told = {name: _differs(then.get(name), now.get(name)) for name in [*then, *now.keys() - then.keys()]}
    return {name: said for name, said in told.items() if said}


def _differs(then: Content | None, now: Content | None) -> str:
    if then is None:
        return "is not in the certificate"
    if now is None:
        return "is not in the lake"
    if then.columns != now.columns:
        changed = sorted(name for name, _ in then.columns.items() ^ now.columns.items())
        return f"other columns: {', '.join(dict.fromkeys(changed))}"
    if then.rows != now.rows:
        return f"{now.rows:,} rows; certified {then.rows:,}"
    return "" if then.sha256 == now.sha256 else f"{now.rows:,} rows, as certified, with other values"


def _different(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*then, *now} if then.get(name) != now.get(name)))
