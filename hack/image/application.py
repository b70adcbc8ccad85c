"""The upper layer: gputally and its Python dependencies, as locked in image/requirements.lock."""

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
"""Where Debian's Python looks for packages that are not from Debian."""
LAUNCHER: Final = "usr/local/bin/gputally"
LAUNCHER_TEXT: Final = """\
#!/usr/bin/python3.11
import sys
from gputally.cli import main
sys.exit(main())
"""
STATE: Final = "var/lib/gputally"
"""The working directory and mount point of the volume; it contains the ledger by default."""
GLIBCS: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
"""The platform tags accepted for wheels; Debian 12 has glibc 2.36."""
UNUSED: Final = (
    "bin",
    "*.dist-info/RECORD",  # lists files that are removed here
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
    """The pip options that select wheels for the image, independent of the build machine."""
    platforms = [f"--platform={glibc}_{architecture}" for glibc in GLIBCS]
    return ["--only-binary=:all:", "--implementation=cp", "--python-version=3.11", *platforms]


def install(folder: Path) -> None:
    """Install gputally and its dependencies into `folder`. Raises: ImageFailed."""
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
    options = ("--no-compile", "--no-deps", "--require-hashes", f"--requirement={lock}")
    pip("install", *options, *wheels(platform.machine()), f"--target={folder}")


def _wheel(folder: Path) -> Path:
    """The gputally wheel, built with the locked tools."""
    tools = folder / "tools"
    _install_locked(tools, BUILD_TOOLS)
    arguments = ("--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", ROOT)
    pip("wheel", *arguments, environment={"PYTHONPATH": str(tools)})
    [made] = folder.glob("gputally-*.whl")
    return made
