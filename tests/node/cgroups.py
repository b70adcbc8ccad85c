"""The only thing that a kubelet leaves in the kernel when all its processes are gone."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.component import ComponentFailed

HIERARCHIES = Path("/sys/fs/cgroup")
POD_CGROUPS = ("kubepods", "*/kubepods")  # version 2, and each hierarchy of version 1


@contextmanager
def pod_cgroups() -> Iterator[None]:
    """One kubelet at a time may have them: gone before, an earlier run's too, and gone afterwards."""
    with only_node():
        remove()
        try:
            yield
        finally:
            remove()


@contextmanager
def only_node() -> Iterator[None]:
    descriptor = os.open(HIERARCHIES, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ComponentFailed("another node of such tests lives on this machine") from None
    finally:
        os.close(descriptor)


def remove(*, within: float = 5) -> None:
    """Raises ComponentFailed if processes live in them: another kubelet's pods."""
    deadline = time.monotonic() + within
    while left := [folder for pattern in POD_CGROUPS for folder in HIERARCHIES.glob(pattern) if not removed(folder)]:
        if time.monotonic() > deadline:
            raise ComponentFailed(f"pods of another kubelet live on this machine: {left[0]} is in use")
        time.sleep(0.1)


def removed(root: Path) -> bool:
    """Children first; True if nothing is left."""
    try:
        for folder, _, _ in os.walk(root, topdown=False):
            Path(folder).rmdir()  # succeeds although there are files: the kernel's
    except OSError:
        return False
    return True
