"""Turns what Pydantic found wrong with single values into messages about a configuration file."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.pipeline import Pipeline
from lakejoin.orchestration.config.problems import KeyPath, did_you_mean, found, is_misspelled, listed
from lakejoin.orchestration.config.schema.column import Column
from lakejoin.orchestration.config.schema.csv_options import CsvOptions
from lakejoin.orchestration.config.schema.expect import Expect, InputExpect, Verified
from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.joins import (
    Group,
    Join,
    KeptHistory,
    RightSide,
    Star,
    StreamJoin,
    model_of_join,
)
from lakejoin.orchestration.config.schema.materialized import Materialized
from lakejoin.orchestration.config.schema.model import Engine, Maintenance, Spark, Table, Versioned
from lakejoin.orchestration.config.schema.operation import Operation
from lakejoin.orchestration.config.schema.source import Limits, Security, Source
from lakejoin.orchestration.config.schema.stream import Stream

_MODELS: Mapping[KeyPath, type[Frozen]] = {
    ("spark",): Spark,
    ("engine",): Engine,
    ("maintenance",): Maintenance,
    ("expect",): Expect,
    ("expect", "verified"): Verified,
    ("tables", "expect"): InputExpect,
    ("streams", "expect"): InputExpect,
    ("tables",): Table,
    ("streams",): Stream,
    ("tables", "source"): Source,
    ("streams", "source"): Source,
    ("tables", "source", "limits"): Limits,
    ("streams", "source", "limits"): Limits,
    ("tables", "source", "security"): Security,
    ("streams", "source", "security"): Security,
    ("tables", "source", "csv"): CsvOptions,
    ("tables", "reconcile"): Source,
    ("tables", "reconcile", "limits"): Limits,
    ("tables", "reconcile", "csv"): CsvOptions,
    ("streams", "source", "csv"): CsvOptions,
    ("tables", "source", "op"): Operation,
    ("streams", "source", "op"): Operation,
    ("tables", "versioned"): Versioned,
    ("tables", "columns"): Column,
    ("streams", "columns"): Column,
    ("joins", "rights"): RightSide,
    ("groups",): Group,
    ("joins", "history"): KeptHistory,
    ("groups", "history"): KeptHistory,
    ("joins", "materialized"): Materialized,
    ("groups", "materialized"): Materialized,
    ("joins", "history", "materialized"): Materialized,
    ("groups", "history", "materialized"): Materialized,
}
"""The model of a mapping by its path without the names that stand second and, of a column or a right side, last."""
_KEY_OF_MAPPING = "[key]"
_OF_COLUMN = ("tables", "T", "columns", "C", "type")
_EXPECTED = {
    "string_type": "text",
    "string_too_short": "a name",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "float_type": "a number from 0 to 1",
    "int_type": "a whole number",
    "finite_number": "a number from 0 to 1",
}


def report_mistakes(error: ValidationError, reading: Reading) -> None:
    """Note each of Pydantic's complaints as a problem of the file."""
    refused_keys: set[KeyPath] = set()
    for detail in error.errors():
        path = _in_file(detail["loc"], reading)
        at_key = bool(path) and path[-1] == _KEY_OF_MAPPING and reading.raw(*path) is None
        if at_key:
            path = path[:-1]
            refused_keys.add(path)
        elif path in refused_keys:
            continue  # what is wrong with the key says enough of its value
        message = _message(detail, path, reading)
        if message:
            reading.refuse(path, message, at_key=at_key or detail["type"] == "extra_forbidden")


def _in_file(path: KeyPath, reading: Reading) -> KeyPath:
    """Where a value stands: Pydantic names the kind of a join, and the type of a column that is nothing else."""
    names_kind = path[:1] == ("joins",) and len(path) > 2 and path[2] != _KEY_OF_MAPPING
    if names_kind:
        return (*path[:2], *path[3:])
    of_column = len(path) == len(_OF_COLUMN) and path[2] == "columns" and path[4] != _KEY_OF_MAPPING
    return path[:-1] if of_column and not isinstance(reading.raw(*path[:-1]), dict) else path


def _message(detail: ErrorDetails, path: KeyPath, reading: Reading) -> str | None:
    """What is wrong, in a sentence; None where another problem says it already."""
    value, kind = detail["input"], detail["type"]
    # Settings of Spark may be passwords: what they are is never repeated.
    shown = "" if path[:2] == ("spark", "conf") else f"; found {found(value)}"
    match kind:
        case "extra_forbidden":
            return _unknown_key(path, reading)
        case "missing":
            return _missing_key(path, reading)
        case "literal_error":
            return _no_such_choice(value, detail)
        case "too_short":
            # With a mistake in an item too few are left; that mistake has its own message.
            return None if value else "expected at least one entry, found none"
    expected = _EXPECTED.get(kind) or _bound(detail)
    said = f"expected {expected}" if expected else str(detail.get("ctx", {}).get("error", detail["msg"]))
    return said + (shown if found(value) not in said else "") + _remedy(kind, value)


def _bound(detail: ErrorDetails) -> str | None:
    """What a number that is too small or too large should be; None where that is not what is wrong."""
    least, most = (detail.get("ctx", {}).get(name) for name in ("ge", "le"))
    if isinstance(least, float) or isinstance(most, float):
        return "a number from 0 to 1"
    if least is not None:
        return f"at least {least:,}"
    return None if most is None else f"at most {most:,}"


def _remedy(kind: str, value: Any) -> str:
    """How to write what was probably meant."""
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "; put it in quotes"
    if kind == "tuple_type" and isinstance(value, str):
        return f"; write [{value}]"
    return ""


def _unknown_key(path: KeyPath, reading: Reading) -> str:
    model, key = model_at(path[:-1], reading), str(path[-1])
    if model is Join and key in StreamJoin.model_fields:
        return f"'{key}' is for the join of a `stream` with a `table`; remove it"
    if model is Star and key in Join.model_fields:
        return f"'{key}' is for a join with one `right`; remove it, or say it of one of `rights`"
    known = list(model.fields_by_key())
    return f"unknown key '{key}'{did_you_mean(key, known)} (allowed: {listed(known)})"


def _missing_key(path: KeyPath, reading: Reading) -> str | None:
    model, key = model_at(path[:-1], reading), str(path[-1])
    if is_misspelled(key, reading.names(*path[:-1]), model.fields_by_key()):
        return None  # the unknown key says which one was meant
    return f"required, but not given: {model.said_of(key)}"


def _no_such_choice(value: Any, detail: ErrorDetails) -> str:
    hint = did_you_mean(value, _choices(detail).split(", ")) if isinstance(value, str) else ""
    return f"expected one of {_choices(detail)}; found {found(value)}{hint}"


def _choices(detail: ErrorDetails) -> str:
    return str(detail["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")


def model_at(path: KeyPath, reading: Reading) -> type[Frozen]:
    """The model that reads the mapping at a path."""
    if len(path) == 2 and path[0] == "joins":
        return model_of_join(reading.raw(*path))
    shape = tuple(step for index, step in enumerate(path) if index != 1)
    return _MODELS.get(shape[:2] if {"columns", "rights"} & {*shape[1:2]} else shape, Pipeline)
