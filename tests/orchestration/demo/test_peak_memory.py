"""Peak memory of a process, its children, and its JVM."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakejoin.orchestration.demo.peak_memory import peak_megabytes


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the memory of a process")
def test_memory_of_a_child_counts() -> None:
    """What a started process holds is added to our own."""
    before = peak_megabytes(0)
    program = "data = bytearray(200_000_000); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        assert child.stdout.readline()
        during = peak_megabytes(0)
        child.communicate(b"\n")

    assert before is not None
    assert during is not None
    assert during - before > 150


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the memory of a process")
def test_memory_of_a_jvm_that_another_process_started_counts() -> None:
    """And one that this process started counts once."""
    program = "import os; data = bytearray(200_000_000); print(flush=True); input()"
    own = peak_megabytes(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", f"import os\nif os.fork() == 0:\n    print(os.getpid()); {program}\nos._exit(0)"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as starter:  # fmt: skip
        assert starter.stdout
        jvm = int(starter.stdout.readline())
        assert starter.stdout.readline()
        starter.wait()
        alone, both = peak_megabytes(0), peak_megabytes(jvm)
        starter.communicate(b"\n")

    assert own is not None
    assert alone is not None
    assert both is not None
    assert abs(alone - own) < 50
    assert both - alone > 150
