"""The lower layer: Python 3.11 from Debian 12 and the libraries it loads, without any other program."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hack.image.commands import ImageFailed, run

PACKAGES: Final = (
    "base-files",  # identifies Debian to scanners, and to NVIDIA's runtime, which derives the library path from it
    "ca-certificates",
    "gcc-12-base",  # the licence of the two GCC libraries
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",  # gRPC and RE2
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)
UNUSED: Final = (
    "etc/update-motd.d",
    "usr/games",
    "usr/lib/python3.11/pydoc_data",
    "usr/lib/python3.11/test",
    "usr/lib/*-linux-gnu/gconv",  # character sets that Python does not load through gconv
    "usr/share/doc/*/[!c]*",
    "usr/share/doc/*/changelog*",
    "usr/sbin/*",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/lintian",
    "usr/share/man",
    "var/local",  # belongs to another group
    # Modules whose libraries are not installed:
    *(f"usr/lib/python3.11/lib-dynload/{module}.*" for module in ("_curses*", "_dbm", "nis", "readline")),
)
AUTHORITIES: Final = "usr/share/ca-certificates"
BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
USER: Final = 65532
FILES: Final = {
    "etc/group": f"root:x:0:\ngputally:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
    "etc/passwd": f"root:x:0:0:root:/root:/none\ngputally:x:{USER}:{USER}:gputally:/:/none\n",
}
LINKS: Final = {
    "usr/bin/python3": "python3.11",
    "usr/lib/ssl/cert.pem": f"/{BUNDLE}",  # OpenSSL's default path
}


def unpack(folder: Path) -> None:
    """Extract the packages into `folder`, in the versions known to this machine's apt. Raises: ImageFailed."""
    with TemporaryDirectory() as scratch:
        for package in _download(Path(scratch)):
            run("dpkg-deb", "--extract", package, folder)
            _record(package, folder)
    for pattern in UNUSED:
        remove(folder.glob(pattern))
    _bundle_authorities(folder)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    for name, target in LINKS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(target)


def _download(folder: Path) -> list[Path]:
    """Download the packages, and return their paths sorted by name."""
    # Download as the current user, because the _apt user cannot write here. Ignore the packages installed on this
    # machine, which may be newer.
    options = ("--option=APT::Sandbox::User=", "--option=Dir::State::status=/dev/null")
    command = ("apt-get", "--quiet", *options, "download", *PACKAGES)
    try:
        run(*command, folder=folder)
    except ImageFailed:  # the package lists may be missing (fresh container) or outdated
        run("apt-get", "--quiet", "update")
        run(*command, folder=folder)
    return sorted(folder.glob("*.deb"))


def _record(package: Path, folder: Path) -> None:
    """Write the package metadata where scanners look in images without dpkg."""
    status = folder / "var/lib/dpkg/status.d"
    status.mkdir(parents=True, exist_ok=True)
    (status / package.name.partition("_")[0]).write_text(run("dpkg-deb", "--field", package))


def _bundle_authorities(folder: Path) -> None:
    """Concatenate all CA certificates into one file, as Debian's postinst script does."""
    authorities = sorted((folder / AUTHORITIES).rglob("*.crt"))
    (folder / BUNDLE).write_text("".join(each.read_text() for each in authorities))
    shutil.rmtree(folder / AUTHORITIES)


def remove(paths: Iterable[Path]) -> None:
    """Remove files, and folders recursively."""
    for path in [*paths]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)  # a doc folder may be a link to another
