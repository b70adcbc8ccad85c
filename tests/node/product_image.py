"""The image of agent and aggregator, made without an engine, and programs run in it without one."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from hack.image import archive
from hack.image.containerfile import CONTAINERFILE, settings
from hack.image.debian import USER
from hack.image.layers import make
from tests.node.images import TAG_OF_TESTS

REFERENCE = f"docker.io/library/gputally:{TAG_OF_TESTS}"


class Ran(NamedTuple):
    """What became of a program."""

    printed: str
    seconds: float


class ProductImage(NamedTuple):
    """Its archive, and its files as a container would see them."""

    archive: Path
    root: Path

    @classmethod
    def made(cls, folder: Path) -> Self:
        """All of it lies in `folder`."""
        layers = make(folder / "layers")
        written, root = folder / "image.tar", folder / "root"
        archive.write(written, REFERENCE, [*map(archive.layer_of, layers)], settings(CONTAINERFILE.read_text()))
        for layer in layers:
            shutil.copytree(layer, root, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(folder / "layers")
        return cls(written, root)

    def members(self) -> list[tarfile.TarInfo]:
        """The files of all layers."""
        found: list[tarfile.TarInfo] = []
        with tarfile.open(self.archive) as outer:
            for name in outer.getnames():
                if name.endswith("/layer.tar"):
                    with tarfile.open(fileobj=outer.extractfile(name)) as layer:
                        found += layer.getmembers()
        return found

    def contents(self) -> dict[str, str]:
        """What each file holds, as a digest."""
        files = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def run(self, *command: str) -> Ran:
        """As the image's user, with the image's environment. Raises: CalledProcessError."""
        variables = settings(CONTAINERFILE.read_text())["Env"]
        assert isinstance(variables, list)
        started = time.monotonic()
        ended = subprocess.run(
            [*self.entering(), *command],
            env=dict(variable.split("=", 1) for variable in variables),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return Ran(ended.stdout, time.monotonic() - started)

    def entering(self) -> Sequence[str]:
        return ["/usr/sbin/chroot", f"--userspec={USER}:{USER}", os.fspath(self.root)]
