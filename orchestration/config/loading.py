"""Turns a file into a checked pipeline, or lists everything that is wrong with it."""

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.conditions import check_conditions
from lakejoin.orchestration.config.checks.joins import check_joins
from lakejoin.orchestration.config.checks.materialized import check_materialized
from lakejoin.orchestration.config.checks.snapshots import check_snapshots
from lakejoin.orchestration.config.checks.streams import check_streams
from lakejoin.orchestration.config.checks.tables import check_tables
from lakejoin.orchestration.config.document import MAX_BYTES, Document, read_document
from lakejoin.orchestration.config.pipeline import Pipeline
from lakejoin.orchestration.config.problems import ConfigurationError, Problem
from lakejoin.orchestration.config.pydantic_errors import report_mistakes


def load(path: str | os.PathLike[str]) -> Pipeline:
    """Read and check a configuration file; relative paths in it start from its directory.

    Neither sources nor the lake need exist, and Spark is not started. Raises `ConfigurationError` with every
    mistake found; messages name the file as `path` does.
    """
    return load_text(read_text(Path(path)), path)


def pipeline_of(given: str | os.PathLike[str] | Pipeline) -> Pipeline:
    """Return the pipeline that is given as such, or by the path of its file. Raises as `load`."""
    return given if isinstance(given, Pipeline) else load(given)


def load_text(text: str, path: str | os.PathLike[str]) -> Pipeline:
    """Check the text of a configuration file as if it stood at `path`. Raises `ConfigurationError`."""
    document = read_document(text, os.fspath(path))
    reading = Reading(document)
    pipeline = _validate(document, reading, Path(path).absolute()) if document.data is not None else None
    if pipeline is None or reading.problems:
        raise ConfigurationError(reading.problems)
    return pipeline


def declared_in(pipeline: Pipeline) -> dict[str, Any]:
    """Return what the file of a pipeline says, as plain data. Raises `ConfigurationError` if it cannot be read."""
    data: dict[str, Any] = read_document(read_text(pipeline.path), str(pipeline.path)).data
    return data


def _validate(document: Document, reading: Reading, path: Path) -> Pipeline | None:
    pipeline = None
    try:
        context = {"directory": path.parent, "path": path, "lines": document.lines}
        pipeline = Pipeline.model_validate(document.data, context=context)
    except ValidationError as error:
        report_mistakes(error, reading)
    check_tables(reading)
    check_snapshots(reading)
    check_streams(reading)
    check_conditions(reading)
    check_joins(reading)
    check_materialized(reading)
    return pipeline


def read_text(path: Path) -> str:
    """The text of a file. Raises `ConfigurationError` if there is none to read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _unreadable(path, f"larger than {MAX_BYTES} bytes; a configuration file is not")
        return content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise _unreadable(
            path, "no such file; give the path of a configuration file (lakejoin.yaml)"
        ) from error
    except UnicodeDecodeError as error:
        raise _unreadable(
            path,
            f"not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x}); save it as UTF-8",
        ) from error
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from error


def _unreadable(path: Path, message: str) -> ConfigurationError:
    return ConfigurationError([Problem(str(path), 0, (), message)])
