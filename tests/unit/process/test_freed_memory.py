"""Large buffers that are freed go back to the system, also after the first one."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
from pathlib import Path
from gputally.process.command import return_freed_memory

def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

return_freed_memory()
bytearray(16 << 20)  # from now on, glibc would keep what is smaller
before = resident_mib()
buffers = [bytearray(b"x") * (3 << 20) for _ in range(8)]
most = resident_mib()
del buffers
print(most - before, resident_mib() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no such options")
def test_freed_buffers_are_returned() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    most, kept = map(int, found.stdout.split())

    assert most >= 24
    assert kept <= 2
