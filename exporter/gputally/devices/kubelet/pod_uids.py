"""UIDs of the pods of this node, which the kubelet's PodResources do not tell, by the folders it keeps logs in."""

import os
from typing import TypeAlias

from msgspec.structs import replace

from gputally.model.measured.device import PartAllocation, PartAllocations

Name: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


class PodUids:
    """Looks into `folder` (`/var/log/pods`), where each pod has a folder `<namespace>_<name>_<uid>`.

    The kubelet tells of a pod before it makes that folder, and names are used again: a folder that belonged to the pod
    which had the name before is not the new one's.

    Source: k8s.io/kubernetes pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[Name, str] = {}
        self._former: dict[Name, str] = {}
        """The UID of who last had a name that nobody has now, or whose successor has no folder yet."""
        self._folders: dict[Name, list[str]] = {}
        self._changed_ns: int | None = None

    def name(self, allocations: PartAllocations) -> PartAllocations:
        """The same with the UIDs of the pods, "" for those that cannot be told. It reads the folder when it changed."""
        self._read()
        pods = {(held.namespace, held.pod) for held in allocations.held}
        self._former |= {pod: uid for pod, uid in self._known.items() if pod not in pods and uid}
        self._former = {pod: uid for pod, uid in self._former.items() if pod in self._folders}
        self._known = {pod: self._uid(pod) for pod in pods}
        return replace(allocations, held=tuple(self._named(held) for held in allocations.held))

    def _named(self, held: PartAllocation) -> PartAllocation:
        uid = self._known[held.namespace, held.pod]
        return replace(held, pod_uid=uid) if uid else held

    def _uid(self, pod: Name) -> str:
        """That of the folder which came last, but not the former pod's."""
        former = self._former.get(pod)
        return next((uid for uid in self._folders.get(pod, ()) if uid != former), "")

    def _read(self) -> None:
        """The UIDs of each name, those whose folder came last first."""
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - with scandir, of a path that may be ""
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
