"""Which pod a process belongs to, by its control group.

kubepods-burstable-pod<uid>.slice   systemd, the UID with _ for -
kubepods/burstable/pod<uid>         cgroupfs
A static pod's UID is the hash of its manifest, 32 hexadecimal digits. Seen from a control group namespace of ours the
path begins with `/../..`, and the part `kubepods` may be missing.
Source: k8s.io/kubernetes pkg/kubelet/cm, GetPodContainerName and ToSystemd.
"""

import re
from pathlib import Path
from typing import Final

_POD: Final = re.compile(
    r"[/-]pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:/|$)",
    re.MULTILINE,
)
_MOST: Final = 4096


class PodOfProcess:
    """A function from a pid to the UID of its pod: "" for a process of no pod, None if it cannot be seen.

    It sees all processes of the node with `hostPID: true` alone. `root` is where proc is mounted.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = str(root)
        self._known: dict[int, tuple[int, str]] = {}

    def __call__(self, pid: int) -> str | None:
        """Cheap for a process that was asked for before; may be called by several threads."""
        folder = Path(f"{self._root}/{pid}")
        try:
            born = folder.stat().st_ctime_ns
            known = self._known.get(pid)
            if known is None or known[0] != born:
                known = self._known[pid] = (born, pod_in((folder / "cgroup").read_text(encoding="utf-8")))
        except OSError:  # it ended, or is not of our PID namespace
            self._known.pop(pid, None)
            return None
        if len(self._known) > _MOST:
            self._known.clear()
        return known[1]


def pod_in(cgroup: str) -> str:
    """The UID in the text of a file /proc/<pid>/cgroup, of version 1 or 2; "" if no pod is in it."""
    found = _POD.search(cgroup)
    return found[1].replace("_", "-") if found else ""
