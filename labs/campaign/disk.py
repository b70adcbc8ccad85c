"""A small file system for the ledger that can be filled completely, to cause a real ENOSPC."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

SIZE = "48m"
CHUNKS = (1 << 20, 1 << 12, 1)
"""Decreasing write sizes, until no byte fits."""


class Disk:
    """A tmpfs mounted at `folder`. Without permission to mount, the test is skipped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.full_s = 0.0
        """Total time that it was full."""
        self._filler = folder / "filler"
        self._full_since = 0.0

    @property
    def is_full(self) -> bool:
        return self._filler.exists()

    def fill(self) -> None:
        """Fill the disk to the last byte."""
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
    """Mount a disk for the duration of the block."""
    if os.geteuid() != 0:
        pytest.skip("a full disk is a small tmpfs, and only root may mount one")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
