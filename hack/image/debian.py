"""The lower layer: Python 3.11 of Debian 12, the libraries that it loads, and no program besides."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hack.image.commands import ImageFailed, run

PACKAGES: Final = (
    "base-files",  # says that this is Debian: to scanners, and to NVIDIA's runtime, which then knows where libraries go
    "ca-certificates",
    "gcc-12-base",  # the licence of the two libraries of GCC
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
    "usr/lib/*-linux-gnu/gconv",  # character sets that Python does not read in this way
    "usr/share/doc/*/[!c]*",
    "usr/share/doc/*/changelog*",
    "usr/sbin/*",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/lintian",
    "usr/share/man",
    "var/local",  # of another group
    # Modules of what is not there:
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
    "usr/lib/ssl/cert.pem": f"/{BUNDLE}",  # where OpenSSL looks
}


def unpack(folder: Path) -> None:
    """Fill `folder` with the packages, in the versions that this machine's apt knows. Raises: ImageFailed."""
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
    """The packages, in the order of their names."""
    # By whoever runs this, as apt's own user may not write here, and whatever is installed here, perhaps more recently.
    options = ("--option=APT::Sandbox::User=", "--option=Dir::State::status=/dev/null")
    command = ("apt-get", "--quiet", *options, "download", *PACKAGES)
    try:
        run(*command, folder=folder)
    except ImageFailed:  # the lists may be missing, as in a fresh container, or older than the server's packages
        run("apt-get", "--quiet", "update")
        run(*command, folder=folder)
    return sorted(folder.glob("*.deb"))


def _record(package: Path, folder: Path) -> None:
    """Leave what the package says of itself where scanners look in images without dpkg."""
    status = folder / "var/lib/dpkg/status.d"
    status.mkdir(parents=True, exist_ok=True)
    (status / package.name.partition("_")[0]).write_text(run("dpkg-deb", "--field", package))


def _bundle_authorities(folder: Path) -> None:
    """One file of them all, as Debian's own script would make it at the installation."""
    authorities = sorted((folder / AUTHORITIES).rglob("*.crt"))
    (folder / BUNDLE).write_text("".join(each.read_text() for each in authorities))
    shutil.rmtree(folder / AUTHORITIES)


def remove(paths: Iterable[Path]) -> None:
    """Files, and folders with all that is in them."""
    for path in [*paths]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)  # one folder of papers may lead to another
