"""Runs external programs: apt, dpkg and pip."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class ImageFailed(Exception):
    """The output of a program that failed."""


def run(*command: str | Path, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run the command and return its standard output. Raises: ImageFailed."""
    try:
        ended = subprocess.run(
            [*map(str, command)],
            cwd=folder,
            env=os.environ | (environment or {}),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as missing:
        text = f"{missing.filename} is not installed: only Debian makes the image, elsewhere use image/Containerfile"
        raise ImageFailed(text) from None
    if ended.returncode:
        raise ImageFailed(f"{' '.join(map(str, command))}\n{ended.stdout}{ended.stderr}".strip())
    return ended.stdout


def pip(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run pip of the current Python interpreter. Raises: ImageFailed."""
    return run(sys.executable, "-m", "pip", "--quiet", *arguments, environment=environment)
