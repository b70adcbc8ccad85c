"""Resources that look like GPUs, or like parts of them, and that no rule weighs.

GPUs that KubeVirt passes through to virtual machines are named after their chip, such as `nvidia.com/GA102GL_A10`;
vGPUs after their type, such as `nvidia.com/NVIDIA_A10-12Q`. A device plugin may use any other name.
"""

import re
from functools import lru_cache
from typing import Final

from gputally.model.kube.pods import Pod
from gputally.model.rules import Rules
from gputally.shares.request import any_resource
from gputally.shares.schemes import rule_of

DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of a DeviceClass as an extended resource, which a ResourceClaim always serves.

Source: k8s.io/api resource/v1/types.go, ResourceDeviceClassPrefix.
"""
GPU_VENDORS: Final = ("nvidia.com", "amd.com", "gpu.intel.com")
"""Domains whose devices are GPUs, unless their name says otherwise: the vendors with built-in rules."""
_GPU: Final = "gpu"
"""Part of the names of GPUs in other domains."""
_OTHER: Final = re.compile(
    r"nic|rdma|roce|sriov|hostdev|hca|mlnx|mlx|connectx|cx\d|bluefield|bf\d|(?:^|[-_])ib"  # network cards
    r"|monitoring$|millicores$|memory\.max$|tiles$|^priority$"  # properties of a pod's access to a GPU
)
"""Part of the names, in lower case, of what these vendors offer besides GPUs."""


@lru_cache(maxsize=4096)
def is_unknown_device(resource: str, rules: Rules) -> bool:
    """Whether the extended resource looks like a GPU, or a part of one, and no rule weighs it."""
    domain, slash, name = resource.lower().partition("/")
    if not slash or domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or rule_of(resource, rules):
        return False
    return (domain in GPU_VENDORS or _GPU in name or _GPU in domain) and not _OTHER.search(name)


def names_device(pod: Pod, rules: Rules) -> bool:
    """Whether a container of `pod` names a GPU resource, a device that looks like one, or a DeviceClass."""
    return any_resource(pod, _is_device, rules)


def names_unknown_device(pod: Pod, rules: Rules) -> bool:
    """Whether a container of `pod` names a device that looks like a GPU and that no rule weighs, or a DeviceClass.

    Only limits are read, which extended resources must have; each event of a pod with GPUs asks this.

    Source: k8s.io/kubernetes pkg/apis/core/validation, ValidateContainerResourceRequirements.
    """
    containers = pod.spec.containers
    if pod.spec.init_containers:
        containers += pod.spec.init_containers
    for container in containers:
        if (resources := container.resources) and resources.limits:
            for name in resources.limits:
                if "/" in name and _is_beyond_rules(name, rules):
                    return True
    return False


@lru_cache(maxsize=4096)
def _is_device(resource: str, rules: Rules) -> bool:
    return rule_of(resource, rules) is not None or _is_beyond_rules(resource, rules)


@lru_cache(maxsize=4096)
def _is_beyond_rules(resource: str, rules: Rules) -> bool:
    return resource.startswith(DEVICE_CLASS) or is_unknown_device(resource, rules)
