"""Find the UIDs of this node's pods: by the names of their log folders, and of a process by its control group.

The PodResources API does not report them. Paths of control groups:

kubepods-burstable-pod<uid>.slice   systemd, with _ instead of - in the UID
kubepods/burstable/pod<uid>         cgroupfs

A static pod's UID is the hash of its manifest, 32 hexadecimal digits. In a control group namespace of its own, the
agent sees paths that start with `/../..` and may lack the part `kubepods`.
Source: k8s.io/kubernetes pkg/kubelet/cm, GetPodContainerName and ToSystemd.
"""

import os
import re
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from gputally.model.devices import PartAllocation, PartAllocations

Name: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""
_POD: Final = re.compile(
    r"[/-]pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:/|$)",
    re.MULTILINE,
)
_MAX_CACHED: Final = 4096


class PodUids:
    """Reads `folder` (`/var/log/pods`), where each pod has a folder `<namespace>_<name>_<uid>`.

    The kubelet reports a pod before it creates that folder, and pod names are reused: the folder of an earlier pod
    does not count for a new pod of the same name.

    Source: k8s.io/kubernetes pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[Name, str] = {}
        self._former: dict[Name, str] = {}
        """UIDs of former pods whose names are now unused, or whose successors have no folder yet."""
        self._folders: dict[Name, list[str]] = {}
        self._changed_ns: int | None = None

    def name(self, allocations: PartAllocations) -> PartAllocations:
        """`allocations` with pod UIDs, "" where unknown. Rereads the folder if it changed."""
        self._read()
        pods = {(held.namespace, held.pod) for held in allocations.held}
        self._former |= {pod: uid for pod, uid in self._known.items() if pod not in pods and uid}
        self._former = {pod: uid for pod, uid in self._former.items() if pod in self._folders}
        self._known = {pod: self._uid(pod) for pod in pods}
        return replace(allocations, held=tuple(self._with_uid(held) for held in allocations.held))

    def _with_uid(self, held: PartAllocation) -> PartAllocation:
        uid = self._known[held.namespace, held.pod]
        return replace(held, pod_uid=uid) if uid else held

    def _uid(self, pod: Name) -> str:
        """The UID of the newest folder, ignoring the former pod's."""
        former = self._former.get(pod)
        return next((uid for uid in self._folders.get(pod, ()) if uid != former), "")

    def _read(self) -> None:
        """Read the UIDs of each pod name, newest folder first."""
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - consistent with scandir; the path may be ""
            if changed_ns == self._changed_ns:
                return
            with os.scandir(self._folder) as entries:
                found = [(entry.stat().st_ctime_ns, entry.name.split("_", 2)) for entry in entries]
        except OSError:
            found, changed_ns = [], None
        self._folders = {}
        for _, parts in sorted(found, reverse=True):
            if len(parts) == 3:  # noqa: PLR2004 - namespace, name and UID
                self._folders.setdefault((parts[0], parts[1]), []).append(parts[2])
        self._changed_ns = changed_ns


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
