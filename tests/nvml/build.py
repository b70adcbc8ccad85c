"""Our own NVML, built from `driver/` with gcc: a new folder for each state of its sources."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

NAME: Final = "libnvidia-ml.so.1"
SCRIPT_VARIABLE: Final = "GPUTALLY_NVML_SCRIPT"
"""Names the file that the library plays; tests/nvml/script.py writes it."""
FLAGS: Final = (
    *("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g"),
    *("-shared", "-fPIC", "-fvisibility=hidden", "-pthread", f"-Wl,-soname,{NAME}"),
)
DRIVER: Final = Path(__file__).parent / "driver"
BUILD: Final = Path(__file__).parents[2] / "build" / "nvml"


def library() -> Path:
    """The folder to put first in LD_LIBRARY_PATH; skips the test where no gcc is."""
    folder = BUILD / _state()
    if not (folder / NAME).exists():
        _build(folder)
    return folder


def environment(script: Path) -> dict[str, str]:
    """What makes a new process see the GPUs of `script`."""
    return {"LD_LIBRARY_PATH": str(library()), SCRIPT_VARIABLE: str(script)}


def _state() -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for source in sorted(DRIVER.iterdir()):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _build(folder: Path) -> None:
    """Several workers may do so at once: each makes its own file, and the last one stays."""
    compiler = shutil.which("gcc")
    if not compiler:
        pytest.skip("no gcc: it builds the NVML of these tests")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        built = Path(scratch) / NAME
        sources = sorted(map(str, DRIVER.glob("*.c")))
        subprocess.run([compiler, *FLAGS, "-o", str(built), *sources], check=True)
        os.replace(built, folder / NAME)  # noqa: PTH105 - the pair of names says what it does
