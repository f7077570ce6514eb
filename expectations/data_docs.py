"""Data Docs: the pages on which Great Expectations shows what was checked and what was found.

Everything lives in one local folder: the pages, and below `store/` the results and suites they are made of,
by which a later process links the older runs. Great Expectations removes the pages whose result is gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from expectations.index_page import Page, render_index
from expectations.results import rule_results

if TYPE_CHECKING:  # importing Great Expectations takes seconds
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
    from great_expectations.data_context.types.resource_identifiers import ValidationResultIdentifier


@dataclass(frozen=True)
class DataDocs:
    """A Data Docs site that shows the last runs of every asset."""

    folder: Path
    """A local folder of its own, made where it does not exist."""
    keep: int = 30
    """How many runs of each asset stay; each is a page."""

    @property
    def index(self) -> Path:
        """The page to open; it links all others."""
        return self.folder / "index.html"


def open_context(docs: DataDocs | None) -> "AbstractDataContext":
    """Return a Great Expectations context that keeps its results and suites with the site, or in memory.

    Great Expectations knows one current context in a process; a later call replaces it.
    """
    import great_expectations
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    configuration = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    if docs is not None:
        folder = docs.folder.absolute()
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
    return great_expectations.get_context(mode="ephemeral", project_config=configuration)


def publish(
    context: "AbstractDataContext", docs: DataDocs, results: Iterable["ValidationResultIdentifier"]
) -> None:
    """Write the pages of new results, forget the runs beyond `docs.keep`, link what remains in the index."""
    written: list[Any] = [
        page for result in results for page in (result, result.expectation_suite_identifier)
    ]
    kept = _prune(context, docs.keep)
    context.build_data_docs(resource_identifiers=written)
    index = render_index({name: [_page(context, key) for key in keys] for name, keys in kept.items()})
    docs.index.write_text(index, encoding="utf-8")


def _prune(context: "AbstractDataContext", keep: int) -> Mapping[str, Sequence["ValidationResultIdentifier"]]:
    """Forget all but the newest results of each asset and return those, newest first."""
    store = context.validation_results_store
    runs: dict[str, list[ValidationResultIdentifier]] = defaultdict(list)
    keys = cast("list[ValidationResultIdentifier]", store.list_keys())
    for result in sorted(keys, key=lambda key: key.run_id.run_time, reverse=True):
        runs[result.expectation_suite_identifier.name].append(result)
    for results in runs.values():
        for result in results[keep:]:
            store.remove_key(result)  # type: ignore[no-untyped-call]
    return {name: results[:keep] for name, results in runs.items()}


def _page(context: "AbstractDataContext", key: "ValidationResultIdentifier") -> Page:
    from great_expectations.core import ExpectationSuiteValidationResult

    parts = key.to_tuple()  # type: ignore[no-untyped-call]
    validated = context.validation_results_store.get(key)
    assert isinstance(validated, ExpectationSuiteValidationResult)
    return Page(
        run=key.run_id.run_name,
        time=f"{key.run_id.run_time:%Y-%m-%d %H:%M:%S} UTC",
        href="/".join(["validations", *map(quote, parts)]) + ".html",
        results=rule_results(validated),
    )


def _files(folder: Path) -> dict[str, Any]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
