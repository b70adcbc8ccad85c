"""The real pynvml, in this process, on the library of tests/nvml: each test has a copy of its own."""

import ctypes
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pynvml
import pytest

from gputally.devices.nvml import xids as events
from gputally.devices.nvml.library import Nvml, load
from tests.fakes.until import PATIENCE_SECONDS
from tests.nvml.build import NAME, SCRIPT_VARIABLE, library
from tests.nvml.script import Gpu, Script


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass
class Node:
    """Where a script is played, the origin of whose times is when the test began."""

    path: Path
    nvml: Nvml
    origin_us: int

    def play(self, *gpus: Gpu, **rest: object) -> Script:
        """From the next call on."""
        script = Script(origin_us=self.origin_us, gpus=gpus, **rest)  # type: ignore[arg-type]  # as Script has it
        script.write(self.path)
        return script

    def now(self) -> float:
        """As a script names it."""
        return (now_us() - self.origin_us) / 10**6


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Before NVML is initialised; what a script lets hang is to be freed by a later one."""
    copied = shutil.copy(library() / NAME, tmp_path)
    path = tmp_path / "gpus.txt"
    monkeypatch.setenv(SCRIPT_VARIABLE, str(path))
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(copied)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(events, "WAIT_MS", 20)
    monkeypatch.setattr(events, "PAUSE_SECONDS", 0.02)
    node = Node(path=path, nvml=load(), origin_us=now_us())
    node.play()
    yield node
    for thread in threading.enumerate():
        if thread.name.startswith("nvml"):
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), f"the thread {thread.name} was left"


@pytest.fixture
def nvml(node: Node) -> Iterator[Nvml]:
    """Initialised."""
    node.nvml.initialise()
    yield node.nvml
    node.nvml.shut_down()
