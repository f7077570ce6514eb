"""Schemas of a registry: with all that they refer to, each asked for once."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from lakejoin.storage.errors import SourceNotFound, SourceRefused
from lakejoin.storage.sources.kafka.schema_registry import schema_of


def record(name: str, *kinds: Any) -> str:
    """A schema with a field of each type."""
    fields = [{"name": f"field{place}", "type": kind} for place, kind in enumerate(kinds)]
    return json.dumps({"type": "record", "name": name, "fields": fields})


def to(subject: str) -> dict[str, Any]:
    """A reference to the second version of a subject."""
    return {"name": subject, "subject": subject, "version": 2}


ANSWERS = {
    "/schemas/ids/1": {
        "schema": record("Event", "Row", "Place", "Row"),
        "references": [to("Row"), to("of/Place")],
    },
    "/subjects/Row/versions/2": {"schema": record("Row", "Place"), "references": [to("of/Place")]},
    "/subjects/of%2FPlace/versions/2": {"schema": record("Place", "int")},
    "/schemas/ids/2": {"schema": record("Event", "Gone"), "references": [to("Gone")]},
    "/schemas/ids/3": {"schema": "{}", "schemaType": "JSON", "references": [to("Gone")]},
    "/schemas/ids/4": {"schema": "syntax", "schemaType": "PROTOBUF"},
}
"""What is answered, by path."""


@contextmanager
def registry(asked: list[str]) -> Iterator[str]:
    """Serve the answers; what was asked is noted."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path in ANSWERS else 404)
            self.end_headers()
            self.wfile.write(json.dumps(ANSWERS.get(self.path, {})).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_schema_has_what_it_refers_to() -> None:
    """Of Avro, through others as well; each is got once. What values of JSON need is no schema."""
    asked = list[str]()
    with registry(asked) as url:
        event, _ = schema_of(url, 1), schema_of(url, 1)
        of_json = schema_of(url, 3)

    place = {**json.loads(record("Place", "int")), "namespace": ""}
    row = {**json.loads(record("Row", place)), "namespace": ""}
    assert event.parsed == json.loads(record("Event", row, "Place", "Row"))
    assert (of_json.kind, of_json.text) == ("JSON", "{}")
    assert sorted(asked) == sorted(
        ["/schemas/ids/1", "/subjects/Row/versions/2", "/subjects/of%2FPlace/versions/2", "/schemas/ids/3"]
    )


def test_schema_that_nothing_can_be_read_by_is_refused() -> None:
    """One that refers to another that is gone, which is named; one of another type."""
    with registry([]) as url:
        with pytest.raises(SourceNotFound, match="/subjects/Gone/versions/2: there is no such schema"):
            schema_of(url, 2)
        with pytest.raises(SourceRefused, match="/schemas/ids/4: a schema of type PROTOBUF; expected"):
            schema_of(url, 4)
