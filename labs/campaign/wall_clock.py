"""Sets the product's wall clock while it runs; its monotonic clock is unchanged."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_suffix(".c")


class WallClock:
    """A preloaded library, and the offset that it adds to the system time."""

    def __init__(self, scratch: Path) -> None:
        self.offset_s = 0
        self.steps: list[int] = []
        """Seconds of each step; negative steps set the clock back."""
        self._file = scratch / "clock-offset"
        self._file.write_bytes(struct.pack("=q", 0))
        self._library = compiled(scratch / "wall_clock.so")

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that make a new process use this clock."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET_FILE": str(self._file)}

    def set(self, offset_s: int) -> None:
        """Set the offset to the system time, effective immediately in all processes."""
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
