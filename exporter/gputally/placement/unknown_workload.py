"""Objects of unknown kinds with templates of pods: an answer names them instead of ignoring them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gputally.model.printable import printable
from gputally.model.rules import Rules
from gputally.shares.schemes import rule_of


def group_of(api_version: str) -> str:
    """The API group: `apps` of `apps/v1`, "" of `v1`."""
    return api_version.rpartition("/")[0]


class UnknownWorkload(NamedTuple):
    """An object as plain values."""

    value: dict[str, Any]

    @property
    def kind(self) -> str:
        """With the API group, unless that has no domain, as those of Kubernetes' own workloads: `RayJob.ray.io`."""
        group = group_of(str(self.value.get("apiVersion", "")))
        return f"{self.value['kind']}.{group}" if "." in group else str(self.value["kind"])

    @property
    def name(self) -> str:
        """The kind and name of the workload: `RayJob.ray.io ml/train`."""
        metadata = self.value.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
        return printable(f"{self.kind} {place}{metadata.get('name') or 'unnamed'}")

    @property
    def has_pods(self) -> bool:
        """Whether it has containers, or resources that name GPUs."""
        return any(isinstance(each.get("containers"), list) or _gpu_like(each) for each in _mappings(self.value))

    def may_have_gpus(self, rules: Rules) -> bool:
        """Whether its pods request GPUs by the rules, resources that are named so, or devices by claims."""
        found = list(_mappings(self.value))
        return any(
            _gpu_like(each) or each.get("resourceClaims") or any(rule_of(name, rules) for name in _requested(each))
            for each in found
        )


def _mappings(value: object) -> Iterator[dict[str, Any]]:
    """All mappings inside; without recursion, since anyone may nest them."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            yield each
            rest += each.values()
        elif isinstance(each, list):
            rest += each


def _requested(value: dict[str, Any]) -> Iterator[str]:
    """The names of what its `resources` request."""
    resources = value.get("resources")
    for amounts in ("limits", "requests"):
        found = resources.get(amounts) if isinstance(resources, dict) else None
        yield from map(str, found) if isinstance(found, dict) else ()


def _gpu_like(value: dict[str, Any]) -> bool:
    return any("gpu" in name.rpartition("/")[2] or "nvidia.com/" in name for name in _requested(value))
