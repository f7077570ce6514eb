"""The first page of the Data Docs says what was found without any other site."""

from lakejoin.expectations.index_page import Page, render_index
from lakejoin.expectations.results import RuleResult

HOLDS = RuleResult("left_row_exists", "No joined row outlives its left row.", True, 0, ())
BROKEN = RuleResult(
    "left_row_current", "A joined row is current.", False, 12, ('{"primary_key":{"name":"<b>&"}}',)
)
UNCHECKED = RuleResult("nothing_pending", "All are joined.", False, 0, (), error="no such column: <x>")


def test_index_names_rules_and_shows_offending_rows() -> None:
    """Every rule stands there with its statement and result, an offended one with count and escaped rows."""
    page = render_index({"flights": [Page("batch 7", "2013-01-07", "validations/7.html", [HOLDS, BROKEN])]})
    assert "left_row_exists" in page
    assert "No joined row outlives its left row." in page
    assert "<code>{&quot;primary_key&quot;:{&quot;name&quot;:&quot;&lt;b&gt;&amp;&quot;}}</code>" in page
    assert "<td>12<br>" in page
    assert '<a href="validations/7.html">batch 7</a> 2013-01-07 <span class="failed">failed</span>' in page


def test_index_shows_why_a_rule_was_not_checked() -> None:
    """An exception counts as a failure and its message takes the place of rows."""
    page = render_index({"flights": [Page("batch 7", "", "7.html", [UNCHECKED])]})
    assert '<span class="failed">failed</span></td><td><code>no such column: &lt;x&gt;</code>' in page


def test_index_links_older_runs_below_the_newest() -> None:
    """Older runs are a list of links with their result; a single run has no such list."""
    newest, older = Page("batch 8", "", "8.html", [HOLDS]), Page("batch 7", "", "7.html", [BROKEN])
    page = render_index({"flights": [newest, older]})
    assert page.index("8.html") < page.index("Older runs") < page.index("7.html")
    assert "Older runs" not in render_index({"flights": [newest]})


def test_index_needs_no_other_site() -> None:
    """The page is whole without a network."""
    assert "//" not in render_index({"flights": [Page("batch 8", "", "8.html", [HOLDS])]})
