from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.nvml import build


def test_workers_that_build_at_once_leave_one_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "BUILD", tmp_path)

    with ThreadPoolExecutor(2) as pool:
        folders = {future.result() for future in [pool.submit(build.library) for _ in range(2)]}

    (folder,) = folders
    assert list(folder.iterdir()) == [folder / "libnvidia-ml.so.1"]


def test_what_is_built_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build.library()
    monkeypatch.setenv("PATH", "")

    assert build.library() == folder
