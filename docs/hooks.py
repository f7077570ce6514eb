"""Adds to the site what lies outside docs/: the project's own pages, and whatever a page links to."""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
_INTO_DOCS = re.compile(r"\]\((?:\.\./)*docs/")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Return the configuration; in its navigation each folder of docs/ is the list of its pages."""
    config.nav = _without_folders(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of docs/, those pages of ROOT, and what any of them links to outside docs/."""
    waiting = [DOCS / file.src_uri for file in files.documentation_pages()] + sorted(ROOT.glob("*.md"))
    seen = set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue  # what is not there is for MkDocs to report
        seen.add(path)
        if not path.is_relative_to(DOCS):
            files.append(_outside(path, config))
        if path.suffix == ".md":
            linked = [(path.parent / link).resolve() for link in _LINK.findall(path.read_text("utf-8"))]
            waiting += [target for target in linked if target.is_relative_to(ROOT)]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page's text; of a page outside docs/, links to docs/ become those that MkDocs can follow."""
    return _INTO_DOCS.sub("](/", markdown) if page.file.src_uri.startswith("../") else markdown


def _without_folders(nav: Any) -> Any:
    """Return a part of the navigation with a list of pages in the place of each `folder/`."""
    if isinstance(nav, list):
        return [_without_folders(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: _without_folders(entry) for title, entry in nav.items()}
    if not nav.endswith("/"):
        return nav
    pages = sorted((DOCS / nav).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [page.relative_to(DOCS).as_posix() for page in pages]


def _outside(path: Path, config: MkDocsConfig) -> File:
    """Return a file under the name by which links from docs/ find it; in the site it lies in project/."""
    file = File.generated(
        config,
        Path(os.path.relpath(path, DOCS)).as_posix(),
        abs_src_path=str(path),
        inclusion=InclusionLevel.NOT_IN_NAV,  # unless mkdocs.yml names it
    )
    below = file.dest_uri.removeprefix("../")
    # Servers offer .py for download, and show .txt.
    file.dest_uri = f"project/{below}" if file.is_documentation_page() else f"project/{below}.txt"
    return file
