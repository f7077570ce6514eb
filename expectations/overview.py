"""Renders what stands above the rules on the first page of the Data Docs: rows, age and quality of each table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakejoin.transforms.model.printable_text import printable_html

_BAR, _GAP, _HEIGHT = 6, 2, 24


@dataclass(frozen=True)
class Read:
    """What a batch read of a table."""

    batch: int
    records: int
    quarantined: int


@dataclass(frozen=True)
class Standing:
    """A table, stream or result as the last batch left it."""

    name: str
    rows: int | None
    """None where nobody counts them."""
    changed: str
    """When it was last read or changed, in words."""
    trend: Sequence[Read]
    """What its last batches read; nothing of a result."""


@dataclass(frozen=True)
class Expected:
    """A figure that is held against what the file expects of it."""

    subject: str
    figure: str
    found: str
    bound: str
    holds: bool = field(kw_only=True)


@dataclass(frozen=True)
class Overview:
    """What is said of a pipeline."""

    title: str
    tables: Sequence[Standing]
    expected: Sequence[Expected] = ()


def render_overview(overview: Overview) -> str:
    """Return it as HTML."""
    rows = "".join(_standing(one) for one in overview.tables)
    expected = "".join(_expected(one) for one in overview.expected)
    return (
        f"<p>{printable_html(overview.title)}</p>"
        "<table><tr><th>Table</th><th>Rows</th><th>Last changed by</th>"
        f"<th>Records by batch, quarantined ones in red</th></tr>{rows}</table>"
        + (
            "<h2>What the file expects</h2><table><tr><th>Table or join</th><th>Figure</th><th>Found</th>"
            f"<th>Expected</th><th>Result</th></tr>{expected}</table>"
            if expected
            else ""
        )
    )


def _standing(one: Standing) -> str:
    rows = "" if one.rows is None else f"{one.rows:,}"
    name = printable_html(one.name)
    return (
        f'<tr><td><a href="#{name}">{name}</a></td><td class="number">{rows}</td>'
        f"<td>{printable_html(one.changed)}</td><td>{_trend(one.trend)}</td></tr>"
    )


def _expected(one: Expected) -> str:
    word = "passed" if one.holds else "failed"
    cells = (one.subject, one.figure, one.found, one.bound)
    texts = "".join(f"<td>{printable_html(cell)}</td>" for cell in cells)
    return f'<tr>{texts}<td><span class="{word}">{word}</span></td></tr>'


def _trend(reads: Sequence[Read]) -> str:
    """A bar for each batch, as high as the batch is large among them; each says its numbers when pointed at."""
    if not reads:
        return ""
    most = max(read.records for read in reads)
    bars = "".join(_bar(read, index * (_BAR + _GAP), most) for index, read in enumerate(reads))
    width = len(reads) * (_BAR + _GAP)
    total, bad = sum(read.records for read in reads), sum(read.quarantined for read in reads)
    return (
        f'<svg width="{width}" height="{_HEIGHT}" role="img" aria-label="{total:,} records, {bad:,} quarantined">'
        f"{bars}</svg> {total:,}" + (f', <span class="failed">{bad:,} quarantined</span>' if bad else "")
    )


def _bar(read: Read, left: int, most: int) -> str:
    # what is there is seen, however little it is among the others
    height = max(round(_HEIGHT * read.records / most), 2)
    bad = max(round(height * read.quarantined / read.records), 2) if read.quarantined else 0
    said = f"batch {read.batch}: {read.records:,} records, {read.quarantined:,} quarantined"
    return f"<g><title>{said}</title>{_box('good', left, 0, height - bad)}{_box('bad', left, height - bad, bad)}</g>"


def _box(kind: str, left: int, above: int, height: int) -> str:
    """A part of a bar; `above`: how far it stands above the ground."""
    if height <= 0:
        return ""
    return (
        f'<rect class="{kind}" x="{left}" y="{_HEIGHT - above - height}" width="{_BAR}" height="{height}"/>'
    )
