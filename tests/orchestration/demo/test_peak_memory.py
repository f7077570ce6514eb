"""Peak memory of a process and its children."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.demo.peak_memory import peak_megabytes


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the memory of a process")
def test_memory_of_a_child_counts() -> None:
    """What a started process holds is added to our own."""
    before = peak_megabytes()
    program = "data = bytearray(200_000_000); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        assert child.stdout.readline()
        during = peak_megabytes()
        child.communicate(b"\n")

    assert before is not None
    assert during is not None
    assert during - before > 150
