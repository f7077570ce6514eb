"""What a test puts in the place of a name reaches all that read it: no module has a copy of its own."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CODE = ("transforms", "storage", "expectations", "orchestration")
_PATCH = re.compile(rf'(?:setattr|patch)\(\s*"(lakejoin\.(?:{"|".join(_CODE)})[.\w]*)\.(\w+)"')


def _files(*folders: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if name.endswith(".py")]


def _copies() -> set[tuple[str, str]]:
    """Names that some module takes from the one that defines them, with the latter."""
    trees = [ast.parse(file.read_text()) for file in _files(*_CODE)]
    taken = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {(str(node.module), name.name) for node in taken for name in node.names}


def test_patched_name_is_read_in_one_place() -> None:
    """Else the patch would miss the others, and the test pass without what it is about."""
    copies = _copies()
    patched = [
        (file.relative_to(ROOT).as_posix(), match[1], match[2])
        for file in _files("tests")
        for match in _PATCH.finditer(file.read_text())
    ]
    assert len(patched) > 20, "the pattern finds the patches"
    missed = [
        f"{test}: {module}.{name} is imported elsewhere"
        for test, module, name in patched
        if (module, name) in copies
    ]
    assert missed == []
