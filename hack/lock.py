"""Writes image/*.lock: the exact Python packages of the image and its build, with hashes, from PyPI today.

`python -m hack.lock` resolves pyproject.toml with pip for each architecture. It also updates the Containerfile to
today's Debian snapshot.
"""

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hack.image.application import BUILD_TOOLS, REQUIREMENTS, ROOT, wheels
from hack.image.commands import ImageFailed, pip
from hack.image.containerfile import CONTAINERFILE

ARCHITECTURES: Final = ("x86_64", "aarch64")
LEFT_OUT: Final = frozenset({"kubernetes"})
"""It is needed only for kubeconfig plugins, whose programs are not in the image either, and adds 85 MB."""
HEAD: Final = "# Written by `python -m hack.lock`; see docs/image.md.\n"


def wanted() -> Mapping[Path, Sequence[str]]:
    """The requirements of each lock file."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = stated["project"]
    direct = [*project["dependencies"], *project["optional-dependencies"]["agent"]]
    return {
        REQUIREMENTS: [each for each in direct if not each.startswith(tuple(LEFT_OUT))],
        BUILD_TOOLS: stated["build-system"]["requires"],
    }


def locked(requirements: Sequence[str]) -> str:
    """The content of a lock file."""
    hashes: dict[str, set[str]] = {}
    for architecture in ARCHITECTURES:
        for pinned, digest in resolved(requirements, architecture).items():
            hashes.setdefault(pinned, set()).add(digest)
    return HEAD + "".join(
        " \\\n    ".join([pinned, *(f"--hash=sha256:{digest}" for digest in sorted(digests))]) + "\n"
        for pinned, digests in sorted(hashes.items())
    )


def resolved(requirements: Sequence[str], architecture: str) -> Mapping[str, str]:
    """All packages that pip would install, as `name==version`, with wheel hashes. Raises: ImageFailed."""
    options = ("install", "--dry-run", "--ignore-installed", "--report=-", "--target=unused")
    report = pip(*options, *wheels(architecture), *requirements)
    return {
        f"{each['metadata']['name'].lower()}=={each['metadata']['version']}": each["download_info"]["archive_info"][
            "hashes"
        ]["sha256"]
        for each in json.loads(report)["install"]
    }


def of_today(containerfile: str, now: datetime) -> str:
    """The Containerfile with the Debian snapshot of last midnight."""
    return re.sub(r"^ARG SNAPSHOT=.*$", f"ARG SNAPSHOT={now:%Y%m%d}T000000Z", containerfile, flags=re.MULTILINE)


def main() -> int:
    """Return the exit code: 0, or 1 after printing pip's error."""
    try:
        texts = {path: locked(requirements) for path, requirements in wanted().items()}
    except ImageFailed as failure:
        print(failure)
        return 1
    texts[CONTAINERFILE] = of_today(CONTAINERFILE.read_text(), datetime.now(UTC))
    for path, text in texts.items():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
