"""Builds one folder per image layer; image/Containerfile copies them."""

import os
import shutil
from pathlib import Path
from typing import Final

from hack.image.application import install
from hack.image.commands import run
from hack.image.debian import unpack

LAYERS: Final = {"base": unpack, "application": install}
"""From lower to upper: each release changes only the smaller layer."""


def make(folder: Path) -> list[Path]:
    """Empty `folder`, then build one subfolder per layer. Raises: ImageFailed."""
    shutil.rmtree(folder, ignore_errors=True)
    layers = []
    for name, fill in LAYERS.items():
        layer = folder / name
        layer.mkdir(parents=True)
        fill(layer)
        _compile(layer, folder / "base")
        _normalize(layer)
        layers.append(layer)
    return layers


def _compile(layer: Path, base: Path) -> None:
    """Compile the modules with the Python of `base`; a read-only container would compile them at each start.

    Invalidation is `unchecked-hash`: timestamps would make builds irreproducible, and the files never change.
    """
    where = ("-s", layer, "-p", "/")
    how = ("-q", "-f", "--invalidation-mode=unchecked-hash")
    # Bytecode may depend on the iteration order of sets.
    environment = {"PYTHONHOME": str(base / "usr"), "PYTHONHASHSEED": "0"}
    run(*_python(base), "-m", "compileall", *how, *where, layer, environment=environment)


def _python(base: Path) -> list[Path | str]:
    """The command that runs the image's Python in place, with its own loader and libraries."""
    [loader] = base.glob("lib/*-linux-gnu/ld-linux-*.so.*")
    libraries = [loader.parent, base / "usr" / loader.parent.relative_to(base)]
    return [loader, "--library-path", ":".join(map(str, libraries)), base / "usr/bin/python3.11"]


def _normalize(layer: Path) -> None:
    """Set all times to 0 and all modes to fixed values; this also removes set-uid and set-gid bits."""
    for path in [layer, *layer.rglob("*")]:
        if not path.is_symlink():
            path.chmod(_mode(path, layer))
        os.utime(path, (0, 0), follow_symlinks=False)


def _mode(path: Path, layer: Path) -> int:
    if path == layer / "tmp":
        return 0o1777
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644
