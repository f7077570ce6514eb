"""Gets schemas by their numbers from a registry that has the interface of Confluent's."""

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from lakejoin.storage.errors import SourceNotFound, SourceRefused, SourceUnreadable
from lakejoin.storage.sources.kafka.topics import REGISTRY_PASSWORD, REGISTRY_USERNAME
from lakejoin.transforms.parsing.avro_references import completed

_SECONDS = 15


@dataclass(frozen=True)
class Schema:
    """What a number stands for."""

    number: int
    kind: str
    """AVRO or JSON."""
    text: str

    @property
    def parsed(self) -> Any:
        """The schema as JSON."""
        return json.loads(self.text)


@lru_cache(maxsize=1000)
def schema_of(registry: str, number: int) -> Schema:
    """Return a schema, which never changes, with all that it refers to. Raises `SourceError` for none to read by."""
    url = f"{registry}/schemas/ids/{number}"
    found = _get(url)
    kind = found.get("schemaType", "AVRO")
    if kind not in {"AVRO", "JSON"}:
        raise SourceRefused(f"{url}: a schema of type {kind}; expected one of type AVRO or JSON")
    text: str = found["schema"]
    if kind == "AVRO" and found.get("references"):
        text = json.dumps(
            completed(json.loads(text), map(json.loads, _referred(registry, found, {}).values()))
        )
    return Schema(number, kind, text)


def _referred(registry: str, found: Mapping[str, Any], known: dict[str, str]) -> dict[str, str]:
    """The texts of all schemas that one refers to, itself or by others. `known`: those already got, by their URLs."""
    for reference in found.get("references", ()):
        url = f"{registry}/subjects/{quote(reference['subject'], safe='')}/versions/{reference['version']}"
        if url not in known:
            other = _get(url)
            known[url] = other["schema"]
            _referred(registry, other, known)
    return known


def _get(url: str) -> dict[str, Any]:
    request = urllib.request.Request(url, headers={"Accept": "application/vnd.schemaregistry.v1+json"})  # noqa: S310
    if REGISTRY_USERNAME in os.environ:
        login = f"{os.environ[REGISTRY_USERNAME]}:{os.environ.get(REGISTRY_PASSWORD, '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - `registry` is http or https
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise SourceNotFound(
                f"{url}: there is no such schema, which records name; expected the registry that their producer writes "
                "to. Check `registry`"
            ) from error
        raise SourceUnreadable(
            f"{url}: the registry refuses it ({error.code} {error.reason}); expected a schema. Where it asks for a "
            f"login, set {REGISTRY_USERNAME} and {REGISTRY_PASSWORD} in the environment"
        ) from error
    except (OSError, ValueError) as error:
        raise SourceUnreadable(
            f"{url}: no registry answers ({error}); check `registry` and the network"
        ) from error
