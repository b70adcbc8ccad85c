from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvml.remote import Remote
from tests.nvml.script import Script


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    """A process that has initialised NVML on a node without GPUs."""
    path = tmp_path / "gpus.txt"
    Script(origin_us=0).write(path)
    with Remote(path) as remote:
        remote.ask("nvmlInit()")
        yield remote
