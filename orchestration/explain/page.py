"""Renders an explanation as a page of its own, for those who read it in a browser or send it on."""

from lakejoin.orchestration.explain.explanation import Explanation, Finding
from lakejoin.transforms.model.printable_text import printable_html

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
p.answer { border-left: 4px solid #48c; padding: .4rem .8rem; font-size: 1.1rem; }
details, p.leaf { margin: .2rem 0 .2rem 1.2rem; overflow-wrap: anywhere; }
summary { cursor: pointer; }
"""


def render_page(explanation: Explanation) -> str:
    """Return the page as HTML; what an answer follows from can be folded away below it."""
    title = printable_html(explanation.called)
    body = "".join(_finding(finding, 0) for finding in explanation.findings)
    following = "".join(f"<li>{printable_html(text)}</li>" for text in explanation.next)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f'<p class="answer">{printable_html(explanation.answer)}</p>'
        f"<p>As batch {explanation.batch} left it.</p>{body}"
        f"<h2>What could change it next</h2><ul>{following}</ul></body></html>\n"
    )


def _finding(finding: Finding, depth: int) -> str:
    if not finding.because:
        return f'<p class="leaf">{printable_html(finding.says)}</p>'
    inner = "".join(_finding(each, depth + 1) for each in finding.because)
    opened = " open" if depth < 1 else ""
    return f"<details{opened}><summary>{printable_html(finding.says)}</summary>{inner}</details>"
