"""The upper layer: gputally and the Python packages that it needs, as image/requirements.lock has them."""

import platform
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hack.image.commands import pip
from hack.image.debian import remove

ROOT: Final = Path(__file__).parents[2]
REQUIREMENTS: Final = ROOT / "image" / "requirements.lock"
BUILD_TOOLS: Final = ROOT / "image" / "build.lock"
PACKAGES: Final = "usr/local/lib/python3.11/dist-packages"
"""Where Debian's Python looks for what Debian has not packaged."""
LAUNCHER: Final = "usr/local/bin/gputally"
LAUNCHER_TEXT: Final = """\
#!/usr/bin/python3.11
import sys
from gputally.cli import main
sys.exit(main())
"""
STATE: Final = "var/lib/gputally"
"""The working directory, in which the ledger lies by default: a volume's place."""
GLIBCS: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
"""What a wheel may ask of the C library; Debian 12 has 2.36."""
UNUSED: Final = (
    "bin",
    "*.dist-info/RECORD",  # of files that are not all here any more
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    "**/*.h",
    "**/*.pxd",
    "**/*.pyi",
    "**/*.pyx",
    "multidict/_testcapi.*",
)


def wheels(architecture: str) -> list[str]:
    """For pip: take what runs in the image, wherever it is made."""
    platforms = [f"--platform={glibc}_{architecture}" for glibc in GLIBCS]
    return ["--only-binary=:all:", "--implementation=cp", "--python-version=3.11", *platforms]


def install(folder: Path) -> None:
    """Fill `folder`. Raises: ImageFailed."""
    packages = folder / PACKAGES
    with TemporaryDirectory() as scratch:
        _install_locked(packages, REQUIREMENTS)
        pip("install", "--no-compile", "--no-deps", f"--target={packages}", _wheel(Path(scratch)))
    for pattern in UNUSED:
        remove(packages.glob(pattern))
    launcher = folder / LAUNCHER
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER_TEXT)
    launcher.chmod(0o755)
    (folder / STATE).mkdir(parents=True)


def _install_locked(folder: Path, lock: Path) -> None:
    exactly = ("--no-compile", "--no-deps", "--require-hashes", f"--requirement={lock}")
    pip("install", *exactly, *wheels(platform.machine()), f"--target={folder}")


def _wheel(folder: Path) -> Path:
    """Our own, built with the locked tools."""
    tools = folder / "tools"
    _install_locked(tools, BUILD_TOOLS)
    arguments = ("--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", ROOT)
    pip("wheel", *arguments, environment={"PYTHONPATH": str(tools)})
    [made] = folder.glob("gputally-*.whl")
    return made
