"""Writes Data Docs: the pages on which Great Expectations shows what was checked and what was found.

Everything lies in one local folder: the pages, and below `store/` the results and suites that they are made of. From
these a later process links older runs. No check depends on the folder: what could not be written is reported.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from lakejoin.expectations.index_page import Page, render_index
from lakejoin.expectations.overview import Overview
from lakejoin.expectations.results import rule_results
from lakejoin.transforms.model.printable_text import printable_lines

if TYPE_CHECKING:  # importing Great Expectations takes seconds
    from great_expectations.core import ExpectationSuite, ExpectationSuiteValidationResult
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
    from great_expectations.data_context.types.base import DataContextConfig
    from great_expectations.data_context.types.resource_identifiers import ValidationResultIdentifier

    Results = Mapping[ValidationResultIdentifier, ExpectationSuiteValidationResult]


@dataclass(frozen=True)
class DataDocs:
    """A Data Docs site that shows the last runs of every asset."""

    folder: Path
    """A local folder of its own, made where it does not exist."""
    keep: int = 30
    """How many runs of each asset stay; each is a page."""
    assets: Collection[str] | None = None
    """Those that the index links; None for every one that was ever checked."""
    overview: Overview | None = None
    """What the index says above the rules."""

    @property
    def index(self) -> Path:
        """The page to open; it links all others."""
        return self.folder / "index.html"


def open_context() -> "AbstractDataContext":
    """Return a Great Expectations context that keeps everything in memory.

    Great Expectations knows one current context in a process; a later call replaces it.
    """
    return _context(_in_memory())


def publish(docs: DataDocs, suites: Iterable["ExpectationSuite"], results: "Results") -> str | None:
    """Write the pages of new results, forget the runs beyond `docs.keep`, link what remains in the index.

    What was found is known already, and holds whatever becomes of the site. Returns None, or what could not be written
    and what to do about it.
    """
    try:
        _publish(docs, suites, results)
    except Exception as error:  # noqa: BLE001 - what a torn file makes of Great Expectations' stores has no common class
        return (
            f"Data Docs at {docs.folder} were not written: {type(error).__name__}: {error}. The results stand without "
            "them. Check again. If it stays: let the folder be writable, or delete it; the next check makes it anew."
        )
    return None


def _publish(docs: DataDocs, suites: Iterable["ExpectationSuite"], results: "Results") -> None:
    context = _site(docs)
    for suite in suites:
        with _naming(f"the suite {suite.name}"):
            context.suites.add_or_update(suite)
    for key, validated in results.items():
        for result in validated.results:
            result.exception_info = _printable(result.exception_info)
        context.validation_results_store.set(key, validated)
    kept = _prune(context, docs)
    written: list[Any] = [page for key in results for page in (key, key.expectation_suite_identifier)]
    # its index would be where ours is, and readers would see it for a moment
    context.build_data_docs(resource_identifiers=written, build_index=False)
    for key in results:
        _page_file(docs, key).stat()  # Great Expectations only logs where it could not write it
    linked = {name: keys for name, keys in kept.items() if docs.assets is None or name in docs.assets}
    pages: dict[str, Sequence[Page]] = {
        name: [_page(context, key) for key in keys] for name, keys in linked.items()
    }
    _write_whole(docs.index, render_index(pages, docs.overview))


def _site(docs: DataDocs) -> "AbstractDataContext":
    """A context that keeps its results and suites with the site."""
    configuration, folder = _in_memory(), docs.folder.absolute()
    results, suites = configuration.validation_results_store_name, configuration.expectations_store_name
    configuration.stores[results]["store_backend"] = _files(folder / "store" / "results")
    configuration.stores[suites]["store_backend"] = _files(folder / "store" / "suites")
    configuration.data_docs_sites = {
        "lakejoin": {
            "class_name": "SiteBuilder",
            "show_how_to_buttons": False,
            "store_backend": _files(folder),
        }
    }
    return _context(configuration)


def _in_memory() -> "DataContextConfig":
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    return DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )


def _context(configuration: "DataContextConfig") -> "AbstractDataContext":
    import great_expectations

    return great_expectations.get_context(mode="ephemeral", project_config=configuration)


def _prune(
    context: "AbstractDataContext", docs: DataDocs
) -> Mapping[str, Sequence["ValidationResultIdentifier"]]:
    """Forget all but the newest results of each asset, with their pages, and return those, newest first."""
    store = context.validation_results_store
    runs: dict[str, list[ValidationResultIdentifier]] = defaultdict(list)
    keys = cast("list[ValidationResultIdentifier]", store.list_keys())
    for result in sorted(keys, key=lambda key: key.run_id.run_time, reverse=True):
        runs[result.expectation_suite_identifier.name].append(result)
    for results in runs.values():
        for result in results[docs.keep :]:
            store.remove_key(result)  # type: ignore[no-untyped-call]
            _page_file(docs, result).unlink(missing_ok=True)
    return {name: results[: docs.keep] for name, results in runs.items()}


def _page(context: "AbstractDataContext", key: "ValidationResultIdentifier") -> Page:
    from great_expectations.core import ExpectationSuiteValidationResult

    parts = _parts(key)
    with _naming(f"the result {'/'.join(parts)}"):
        validated = context.validation_results_store.get(key)
    assert isinstance(validated, ExpectationSuiteValidationResult)
    return Page(
        run=key.run_id.run_name,
        time=f"{key.run_id.run_time:%Y-%m-%d %H:%M:%S} UTC",
        href="/".join(["validations", *map(quote, parts)]) + ".html",
        results=rule_results(validated),
    )


def _page_file(docs: DataDocs, key: "ValidationResultIdentifier") -> Path:
    *folders, name = _parts(key)
    return docs.folder.joinpath("validations", *folders, f"{name}.html")


def _parts(key: "ValidationResultIdentifier") -> tuple[str, ...]:
    return cast("tuple[str, ...]", key.to_tuple())  # type: ignore[no-untyped-call]


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Say which file it is that holds no JSON."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what} below store/ cannot be read: {error}") from error


def _printable(value: Any) -> Any:
    """What was raised, with every text in it printable; a traceback keeps its lines."""
    match value:
        case str():
            return printable_lines(value)
        case dict():
            return {key: _printable(found) for key, found in value.items()}
        case _:
            return value


def _write_whole(path: Path, text: str) -> None:
    """Write a file beside and rename it, so that readers see the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _files(folder: Path) -> dict[str, Any]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
