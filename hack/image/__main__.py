"""`python -m hack.image ARCHIVE` writes the image to load; with `--layers FOLDER` its files, for the Containerfile."""

import argparse
import gzip
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hack.image import archive
from hack.image.archive import layer_of
from hack.image.commands import ImageFailed
from hack.image.containerfile import CONTAINERFILE, settings
from hack.image.layers import make

MIB: Final = 2**20
REPOSITORY: Final = "ghcr.io/gputally/gputally"
"""Where the chart looks, which then finds an image that was loaded by hand."""


def main() -> int:
    """For the shell: 0, or 1 and one message."""
    arguments = _parser().parse_args()
    try:
        if arguments.layers:
            make(arguments.layers)
        else:
            write(arguments.archive, arguments.tag or f"{REPOSITORY}:{version()}")
    except ImageFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m hack.image", description=__doc__)
    target = command.add_mutually_exclusive_group(required=True)
    target.add_argument("archive", nargs="?", type=Path, metavar="ARCHIVE")
    target.add_argument("--layers", type=Path, metavar="FOLDER")
    command.add_argument("--tag", metavar="NAME", help="name and tag in the archive [default: as the chart has it]")
    return command


def version() -> str:
    """Of gputally, as the image is labelled."""
    labels = settings(CONTAINERFILE.read_text())["Labels"]
    assert isinstance(labels, dict)
    return str(labels["org.opencontainers.image.version"])


def write(path: Path, reference: str) -> None:
    """The archive, and on the terminal how large each layer is, also as a registry would store it."""
    with TemporaryDirectory() as scratch:
        made = {layer.name: layer_of(layer) for layer in make(Path(scratch) / "layers")}
    archive.write(path, reference, [*made.values()], settings(CONTAINERFILE.read_text()))
    for name, layer in made.items():
        print(f"{name:<12}{len(layer) / MIB:6.1f} MiB, compressed {len(gzip.compress(layer)) / MIB:5.1f} MiB")
    print(f"{reference} in {path}")


if __name__ == "__main__":
    sys.exit(main())
