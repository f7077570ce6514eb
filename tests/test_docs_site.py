"""The site of docs/ builds without a warning, its links lead somewhere, and it asks no other machine for anything."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("material") is None, reason="no MkDocs Material here; it comes with the extra `docs`"
)
ROOT = Path(__file__).parents[1]
_LOADED = re.compile(r"<(?:script|img|iframe)\b[^>]*\bsrc=\"([^\"]+)|<link\b[^>]*\bhref=\"([^\"]+)")


def build(project: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", project / "mkdocs.yml"]
    return subprocess.run(
        [*command, "--site-dir", site],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once."""
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Fonts, scripts, styles and images of every page lie in the site."""
    loaded = {
        link
        for page in site.rglob("*.html")
        for pair in _LOADED.findall(page.read_text("utf-8"))
        for link in pair
    }
    assert any("main" in link for link in loaded)
    assert [link for link in loaded if re.match(r"(?:\w+:)?//", link)] == []


def test_blocks_of_code_are_shown_as_such(site: Path) -> None:
    """MkDocs takes no second word behind the language; the block's fences would be shown as text."""
    pages = {page: page.read_text("utf-8") for page in site.rglob("*.html")}
    assert any('class="highlight"' in text for text in pages.values())
    assert [page for page, text in pages.items() if re.search(r"<p>```|<code>```", text)] == []


def test_files_outside_docs_are_in_the_site(site: Path) -> None:
    """Pages of the project as pages, tests as text, and each where the link leads."""
    for page, link in [
        ("index.html", "project/ARCHITECTURE/"),
        ("reliability/index.html", "../project/tests/faults/test_crashes.py.txt"),
        ("project/ARCHITECTURE/index.html", "../../glossary/"),
    ]:
        assert f'href="{link}"' in (site / page).read_text("utf-8")
        target = (site / page).parent / link
        assert (target / "index.html" if link.endswith("/") else target).is_file()


@pytest.mark.parametrize(
    "link", ["nowhere.md", "tutorial.md#nowhere", "../NOWHERE.md", "../README.md#nowhere", "/nowhere.md"]
)
def test_a_link_to_nowhere_fails_the_build(tmp_path: Path, link: str) -> None:
    """Whether it leads to a page, a heading, or out of docs/."""
    for name in ["README.md", "docs/hooks.py", "docs/tutorial.md"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    (tmp_path / "mkdocs.yml").write_text(
        settings[: settings.index("\nnav:")] + "\nnav: [index.md]\n", "utf-8"
    )
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n[there]({link})\n", "utf-8")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert f"Doc file 'index.md' contains a link '{link}'" in built.stderr.replace(
        "an absolute link", "a link"
    )
