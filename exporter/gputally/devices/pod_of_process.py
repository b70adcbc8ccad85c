"""Find the pod of a process by its control group.

kubepods-burstable-pod<uid>.slice   systemd, with _ instead of - in the UID
kubepods/burstable/pod<uid>         cgroupfs
A static pod's UID is the hash of its manifest, 32 hexadecimal digits. In a control group namespace of its own, the
agent sees paths that start with `/../..` and may lack the part `kubepods`.
Source: k8s.io/kubernetes pkg/kubelet/cm, GetPodContainerName and ToSystemd.
"""

import re
from pathlib import Path
from typing import Final

_POD: Final = re.compile(
    r"[/-]pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:/|$)",
    re.MULTILINE,
)
_MAX_CACHED: Final = 4096


class PodOfProcess:
    """Maps a PID to its pod UID: "" for a process outside any pod, None if the process is not visible.

    Processes of the whole node are visible only with `hostPID: true`. `root` is the mount point of proc.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = str(root)
        self._known: dict[int, tuple[int, str]] = {}

    def __call__(self, pid: int) -> str | None:
        """Results are cached. Safe to call from several threads."""
        folder = Path(f"{self._root}/{pid}")
        try:
            started_ns = folder.stat().st_ctime_ns
            known = self._known.get(pid)
            if known is None or known[0] != started_ns:
                known = self._known[pid] = (started_ns, pod_in((folder / "cgroup").read_text(encoding="utf-8")))
        except OSError:  # it exited, or is in another PID namespace
            self._known.pop(pid, None)
            return None
        if len(self._known) > _MAX_CACHED:
            self._known.clear()
        return known[1]


def pod_in(cgroup: str) -> str:
    """The pod UID in the text of /proc/<pid>/cgroup (cgroup v1 or v2); "" if there is none."""
    found = _POD.search(cgroup)
    return found[1].replace("_", "-") if found else ""
