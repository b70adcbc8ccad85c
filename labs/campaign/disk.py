"""A small file system of its own for the ledger, which can be filled to the last byte: real ENOSPC, for everybody."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

SIZE = "48m"
CHUNKS = (1 << 20, 1 << 12, 1)
"""Bytes written at once, ever fewer, until none fits."""


class Disk:
    """Mounted at `folder`. Who may not mount cannot fill it, and is told so by the test being skipped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.full_s = 0.0
        """For how long it was full, all windows together."""
        self._filler = folder / "filler"
        self._full_since = 0.0

    @property
    def is_full(self) -> bool:
        return self._filler.exists()

    def fill(self) -> None:
        """Leave no byte free."""
        with self._filler.open("wb", buffering=0) as filler:
            for chunk in CHUNKS:
                with suppress(OSError):
                    while filler.write(bytes(chunk)):
                        pass
        self._full_since = time.monotonic()

    def make_room(self) -> None:
        self._filler.unlink()
        self.full_s += time.monotonic() - self._full_since


@contextmanager
def mounted(folder: Path) -> Iterator[Disk]:
    """A disk for as long as the block lasts."""
    if os.geteuid() != 0:
        pytest.skip("a full disk is a small tmpfs, and only root may mount one")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
