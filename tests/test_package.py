"""What is published holds the package and nothing else, and is the same however it is built."""

import re
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("expectations", "orchestration", "storage", "transforms")


@dataclass(frozen=True)
class Built:
    """A wheel that was made of the last commit, and one that was made of the source distribution of it."""

    wheel: Path
    wheel_of_sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build both as a release does, in environments of their own."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
    return Built(_build(source, folder / "direct", "--wheel"), _build(source, folder / "both"))


def _build(source: Path, into: Path, *options: str) -> Path:
    command = [sys.executable, "-m", "build", *options, "--outdir", into, source]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if "No matching distribution found for setuptools" in said:
        pytest.skip("setuptools cannot be fetched: there is no network")
    assert done.returncode == 0, said
    [wheel] = into.glob("*.whl")
    return wheel


def _committed(*paths: str) -> list[str]:
    """Return the files of the last commit below some paths."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD", *paths],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return listed.stdout.splitlines()


def _content(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file."""
    with zipfile.ZipFile(wheel) as files:
        return {file.filename: file.CRC for file in files.infolist()}


def test_wheel_has_one_name_in_site_packages(built: Built) -> None:
    """`lakejoin`, beside what describes the distribution."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert {name.split("/")[0] for name in _content(built.wheel)} == {
        "lakejoin",
        f"lakejoin-{version}.dist-info",
    }


def test_wheel_has_each_file_of_the_package(built: Built) -> None:
    """Every module of the last commit, the files that they read, and the example that the demo runs."""
    files = [name for name in _committed("lakejoin", *ROOMS) if re.search(r"\.\w+$", name)]
    expected = {name if name.startswith("lakejoin/") else f"lakejoin/{name}" for name in files}
    example = _committed("examples/flights/lakejoin.yaml", "examples/flights/data")
    expected |= {name.replace("examples/", "lakejoin/orchestration/demo/", 1) for name in example}
    assert len(expected) > 100
    assert {name for name in _content(built.wheel) if name.startswith("lakejoin/")} == expected


def test_source_distribution_builds_the_same_wheel(built: Built) -> None:
    """File by file."""
    assert _content(built.wheel_of_sdist) == _content(built.wheel)
