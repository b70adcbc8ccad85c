"""UIDs of this node's pods, from the names of their log folders: the PodResources API does not report them."""

import os
from typing import TypeAlias

from msgspec.structs import replace

from gputally.model.devices import PartAllocation, PartAllocations

Name: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


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
