"""UIDs of the pods of this node, which the kubelet's PodResources do not tell, by the folders it keeps logs in."""

import os
from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from gputally.model.device import Allocations, Held

Name: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


class PodUids:
    """Looks into `folder` (`/var/log/pods`), where each pod has a folder `<namespace>_<name>_<uid>`.

    Source: k8s.io/kubernetes pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[Name, str] = {}
        self._asked: frozenset[Name] = frozenset()

    def name(self, allocations: Allocations) -> Allocations:
        """The same with the UIDs of the pods, "" for those that cannot be told. It reads the folder at a change."""
        pods = frozenset((held.namespace, held.pod) for held in allocations.held)
        if pods != self._asked or not all(self._known.get(pod) for pod in pods):
            self._known, self._asked = self._uids(pods), pods
        return replace(allocations, held=tuple(self._named(held) for held in allocations.held))

    def _named(self, held: Held) -> Held:
        uid = self._known.get((held.namespace, held.pod), "")
        return replace(held, pod_uid=uid) if uid else held

    def _uids(self, pods: Iterable[Name]) -> dict[Name, str]:
        """Of pods that had one name one after the other, the one whose folder came last."""
        wanted = set(pods)
        newest: dict[Name, tuple[float, str]] = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    namespace, _, rest = entry.name.partition("_")
                    pod, _, uid = rest.partition("_")
                    if uid and (namespace, pod) in wanted:
                        found = (entry.stat().st_ctime, uid)
                        newest[namespace, pod] = max(found, newest.get((namespace, pod), found))
        except OSError:
            return {}
        return {pod: uid for pod, (_, uid) in newest.items()}
