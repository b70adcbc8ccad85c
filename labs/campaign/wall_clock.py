"""The product's wall clock, which is set at will while it runs; its monotonic clock is the machine's."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_suffix(".c")


class WallClock:
    """A library to preload, and the offset it adds to the machine's time."""

    def __init__(self, scratch: Path) -> None:
        self.offset_s = 0
        self.steps: list[int] = []
        """By how many seconds it was set forward or, below 0, back."""
        self._file = scratch / "clock-offset"
        self._file.write_bytes(struct.pack("=q", 0))
        self._library = compiled(scratch / "wall_clock.so")

    @property
    def environment(self) -> dict[str, str]:
        """What makes a new process go by this clock."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET_FILE": str(self._file)}

    def set(self, offset_s: int) -> None:
        """From now on, in all processes, the wall shows this much more than the machine."""
        self.steps.append(offset_s - self.offset_s)
        self.offset_s = offset_s
        with self._file.open("r+b") as file:  # in place: the processes have mapped it
            file.write(struct.pack("=q", offset_s))


def compiled(library: Path) -> Path:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler: it builds the library that steps the clock")
    command = [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return library
