"""The Debian packages that tests on a real node need."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.component import ComponentFailed

PACKAGES = {
    "containerd": Path("/usr/bin/containerd"),
    "runc": Path("/usr/sbin/runc"),
    "containernetworking-plugins": Path("/usr/lib/cni/ptp"),
    "busybox-static": Path("/bin/busybox"),
}
CNI_PLUGINS = PACKAGES["containernetworking-plugins"].parent
BUSYBOX = PACKAGES["busybox-static"]
CHROMIUM = {"chromium": Path("/usr/bin/chromium")}
BY_HAND = "apt-get install --no-install-recommends " + " ".join(PACKAGES)


def install_missing(packages: Mapping[str, Path] = PACKAGES) -> None:
    """Raises ComponentFailed with a line to type if it cannot."""
    missing = [package for package, file in packages.items() if not file.exists()]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise ComponentFailed(f"this is not Debian: install {', '.join(missing)}")
    if os.geteuid() != 0:
        raise ComponentFailed(f"{', '.join(missing)} not installed, and only root may; as root: {BY_HAND}")
    result = apt_get("install", "--no-install-recommends", *missing)
    if result.returncode:
        apt_get("update")
        result = apt_get("install", "--no-install-recommends", *missing)
    if result.returncode:
        raise ComponentFailed(f"{BY_HAND}\n{result.stdout.strip()}")


def apt_get(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "--yes", "--quiet", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
    )
