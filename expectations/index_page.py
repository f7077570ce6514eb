"""Renders the first page of the Data Docs: how the tables stand, and every asset with its rules and older runs.

Great Expectations' own index is drawn by scripts from other sites and stays empty where they cannot be reached; this
one is a single file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakejoin.expectations.overview import Overview, render_overview
from lakejoin.expectations.results import RuleResult
from lakejoin.transforms.model.printable_text import printable_html

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top; }
.failed { color: #c22; font-weight: 600; } .passed { color: #283; }
code { font-size: 13px; overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; }
.number { font-variant-numeric: tabular-nums; text-align: right; }
.good { fill: #5a9; } .bad { fill: #c22; }
"""


@dataclass(frozen=True)
class Page:
    """A validation of an asset and the page that shows it."""

    run: str
    time: str
    href: str
    results: Sequence[RuleResult]

    @property
    def success(self) -> bool:
        """Whether every rule held."""
        return all(result.success for result in self.results)


def render_index(assets: dict[str, Sequence[Page]], overview: Overview | None = None) -> str:
    """Return the page as HTML; `assets` has the pages of each asset, newest first and at least one."""
    above = "" if overview is None else render_overview(overview)
    body = "".join(_asset(name, pages) for name, pages in sorted(assets.items()))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Data Docs</title>'
        f"<style>{_STYLE}</style></head><body><h1>Data Docs</h1>"
        f"{above}<h2>Rules</h2><p>The rules of every asset as its newest run found them.</p>{body}</body></html>\n"
    )


def _asset(name: str, pages: Sequence[Page]) -> str:
    shown, (newest, *older) = printable_html(name), pages
    rules = "".join(_rule(result) for result in newest.results)
    runs = "".join(f"<li>{_link(page)} {_status(success=page.success)}</li>" for page in older)
    return (
        f'<h3 id="{shown}">{shown}</h3><p>{_link(newest)} {_status(success=newest.success)}</p>'
        f"<table><tr><th>Rule</th><th>What holds</th><th>Result</th><th>Offending rows</th></tr>"
        f"{rules}</table>"
        + (f"<details><summary>Older runs</summary><ul>{runs}</ul></details>" if runs else "")
    )


def _rule(result: RuleResult) -> str:
    shown = [result.error] if result.error else [*result.sample]
    count = f"{result.unexpected_count}<br>" if result.unexpected_count else ""
    rows = "<br>".join(f"<code>{printable_html(line)}</code>" for line in shown)
    return (
        f"<tr><td><code>{printable_html(result.rule)}</code></td><td>{printable_html(result.statement)}</td>"
        f"<td>{_status(success=result.success)}</td><td>{count}{rows}</td></tr>"
    )


def _link(page: Page) -> str:
    return f'<a href="{printable_html(page.href)}">{printable_html(page.run)}</a> {printable_html(page.time)}'


def _status(*, success: bool) -> str:
    word = "passed" if success else "failed"
    return f'<span class="{word}">{word}</span>'
