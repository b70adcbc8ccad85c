"""The image's files, as a folder for each layer: what image/Containerfile copies."""

import os
import shutil
from pathlib import Path
from typing import Final

from hack.image.application import install
from hack.image.commands import run
from hack.image.debian import unpack

LAYERS: Final = {"base": unpack, "application": install}
"""From the lower to the upper: what changes with each release is the smaller download."""


def make(folder: Path) -> list[Path]:
    """A folder below `folder`, which is emptied before, for each layer. Raises: ImageFailed."""
    shutil.rmtree(folder, ignore_errors=True)
    layers = []
    for name, fill in LAYERS.items():
        layer = folder / name
        layer.mkdir(parents=True)
        fill(layer)
        _compile(layer, folder / "base")
        _settle(layer)
        layers.append(layer)
    return layers


def _compile(layer: Path, base: Path) -> None:
    """Compile here what a process that may write nothing would have to at each start; by the Python of `base`.

    By hash, never checked: a file's time would make each image another, and who could change the file may do worse.
    """
    where = ("-s", layer, "-p", "/")
    how = ("-q", "-f", "--invalidation-mode=unchecked-hash")
    # What is compiled may depend on the order of sets.
    environment = {"PYTHONHOME": str(base / "usr"), "PYTHONHASHSEED": "0"}
    run(*_python(base), "-m", "compileall", *how, *where, layer, environment=environment)


def _python(base: Path) -> list[Path | str]:
    """The Python of the image where it lies: its own loader brings its own libraries."""
    [loader] = base.glob("lib/*-linux-gnu/ld-linux-*.so.*")
    libraries = [loader.parent, base / "usr" / loader.parent.relative_to(base)]
    return [loader, "--library-path", ":".join(map(str, libraries)), base / "usr/bin/python3.11"]


def _settle(layer: Path) -> None:
    """Give all the same age and rights whoever made it, and nobody another's: no bit of set-uid or set-gid stays."""
    for path in [layer, *layer.rglob("*")]:
        if not path.is_symlink():
            path.chmod(_mode(path, layer))
        os.utime(path, (0, 0), follow_symlinks=False)


def _mode(path: Path, layer: Path) -> int:
    if path == layer / "tmp":
        return 0o1777
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644
