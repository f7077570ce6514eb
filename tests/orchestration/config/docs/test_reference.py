"""The JSON Schema and the documentation of the configuration say what the model says."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.config.docs.reference import (
    PAGE_FILE,
    SCHEMA_FILE,
    json_schema,
    main,
    page_text,
    schema_text,
)
from lakejoin.orchestration.config.docs.text import EXAMPLE
from lakejoin.orchestration.config.pipeline import Pipeline
from lakejoin.orchestration.config.schema.joins import Join, StreamJoin
from lakejoin.orchestration.config.schema.model import Engine, Maintenance, Spark, Table, Versioned
from lakejoin.orchestration.config.schema.source import Limits, Source
from lakejoin.orchestration.config.schema.stream import Stream

CASES = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def validator() -> Any:
    """Checks a document against the schema, as an editor does."""
    return jsonschema.Draft202012Validator(json_schema())


def test_schema_file_is_current() -> None:
    """The file that ships is what `python -m lakejoin.orchestration.config.docs.reference` makes."""
    assert SCHEMA_FILE.read_text("utf-8") == schema_text()


def test_page_is_current() -> None:
    """The page of documentation is what `python -m lakejoin.orchestration.config.docs.reference` makes."""
    assert PAGE_FILE.read_text("utf-8") == page_text()


def test_main_writes_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command makes the page's folder and writes what the two functions return."""
    monkeypatch.setattr("lakejoin.orchestration.config.docs.reference.SCHEMA_FILE", tmp_path / "schema.json")
    monkeypatch.setattr(
        "lakejoin.orchestration.config.docs.reference.PAGE_FILE", tmp_path / "docs" / "page.md"
    )

    main()

    assert (tmp_path / "schema.json").read_text("utf-8") == schema_text()
    assert (tmp_path / "docs" / "page.md").read_text("utf-8") == page_text()


def test_example_of_the_page_is_sound() -> None:
    """A reader can copy the example."""
    assert list(load_text(EXAMPLE, "lakejoin.yaml").joins) == [
        "flights_with_planes",
        "departures_with_weather",
        "flights_with_sister_planes",
    ]


def test_every_key_is_described() -> None:
    """No field of the model lacks the sentence that the reference shows."""
    bare = [
        f"{model.__name__}.{name}"
        for model in (
            Pipeline,
            Spark,
            Engine,
            Maintenance,
            Source,
            Limits,
            Table,
            Versioned,
            Stream,
            Join,
            StreamJoin,
        )
        for name, field in model.model_fields.items()
        if not field.description
    ]

    assert bare == []


def test_schema_is_valid_and_takes_sound_files(validator: Any) -> None:
    """An editor shows no mistake where there is none."""
    jsonschema.Draft202012Validator.check_schema(json_schema())

    assert list(validator.iter_errors(yaml.safe_load(EXAMPLE))) == []
    assert list(validator.iter_errors(yaml.safe_load((CASES / "sound.yaml").read_text("utf-8")))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lake:", "laek:"),
        ("  flights:\n    source", "  Flights:\n    source"),
        ("      tailnum: string", "      _lj_tailnum: string"),
        ("    key: [flight_id]", "    key: flight_id"),
        ("how: left", "how: outer"),
        ("90 days", "90 weeks"),
        ("format: debezium", "format: iceberg"),
        ("name: flights", "name: 7"),
    ],
)
def test_schema_refuses_what_an_editor_can_see(validator: Any, old: str, new: str) -> None:
    """Mistakes in single values are marked while typing."""
    assert old in EXAMPLE
    assert list(validator.iter_errors(yaml.safe_load(EXAMPLE.replace(old, new))))
