"""`python -m hack.image ARCHIVE` writes a loadable image; `--layers FOLDER` writes its files for the Containerfile."""

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
"""The chart's default repository, so that the chart finds an image that was loaded by hand."""


def main() -> int:
    """Return the exit code: 0, or 1 after printing one message."""
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
    """The gputally version in the image labels."""
    labels = settings(CONTAINERFILE.read_text())["Labels"]
    assert isinstance(labels, dict)
    return str(labels["org.opencontainers.image.version"])


def write(path: Path, reference: str) -> None:
    """Write the archive, and print the size of each layer, plain and compressed as in a registry."""
    with TemporaryDirectory() as scratch:
        made = {layer.name: layer_of(layer) for layer in make(Path(scratch) / "layers")}
    archive.write(path, reference, [*made.values()], settings(CONTAINERFILE.read_text()))
    for name, layer in made.items():
        print(f"{name:<12}{len(layer) / MIB:6.1f} MiB, compressed {len(gzip.compress(layer)) / MIB:5.1f} MiB")
    print(f"{reference} in {path}")


if __name__ == "__main__":
    sys.exit(main())
