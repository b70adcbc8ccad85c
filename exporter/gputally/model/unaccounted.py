"""Pods that ask for GPUs which are not accounted: why, and what is kept of them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Unaccounted(StrEnum):
    """Why a bound pod has, or may have, GPUs that no GPU-second counts. A pod may have several reasons."""

    NOT_OFFERED = "not_offered"
    """The node has never offered, as resources, all the GPUs that the pod requests."""
    DRA_EXTENDED_RESOURCE = "dra_extended_resource"
    """A ResourceClaim serves an extended resource that it requests, or it requests a DeviceClass as a resource."""
    CLAIM = "claim"
    """The pod has a ResourceClaim, which may be for another device than a GPU: claims are not read."""
    UNKNOWN_DEVICE = "unknown_device"
    """The pod requests a device that looks like a GPU, and that no rule weighs."""
    NO_SHARE = "no_share"
    """The pod's request amounts to no share of a GPU on its node, rounded down."""


KNOWN_GPUS: Final = (Unaccounted.NOT_OFFERED, Unaccounted.DRA_EXTENDED_RESOURCE)
"""The reasons whose GPUs are known where a rule weighs the resource."""
WORDS: Final[Mapping[Unaccounted, str]] = {
    Unaccounted.NOT_OFFERED: "the node has never offered all the GPUs that are requested",
    Unaccounted.DRA_EXTENDED_RESOURCE: "Dynamic Resource Allocation serves the requested resource",
    Unaccounted.CLAIM: "the devices are from a ResourceClaim, and claims are not read",
    Unaccounted.UNKNOWN_DEVICE: "no rule weighs the requested device",
    Unaccounted.NO_SHARE: "the request amounts to no share of a GPU",
}
REMEDIES: Final[Mapping[Unaccounted, str]] = {
    Unaccounted.NOT_OFFERED: "check the device plugin of its node; delete a pod that its creator bound by nodeName",
    Unaccounted.DRA_EXTENDED_RESOURCE: "offer these GPUs through the device plugin, or bill them by other means",
    Unaccounted.CLAIM: "if these are GPUs, offer them through the device plugin, or bill them by other means",
    Unaccounted.UNKNOWN_DEVICE: "add a rule for the resource to resources in the configuration, if it is a GPU",
    Unaccounted.NO_SHARE: "check the labels of its node, such as nvidia.com/gpu.replicas, and its request",
}


class UnaccountedPod(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A bound, unfinished pod with devices that its record does not have.

    `by_claim` are the extended resources that a ResourceClaim serves, also DeviceClasses that are requested as
    resources. `unknown` are devices that look like GPUs, and that no rule weighs.
    """

    uid: str
    namespace: str = ""
    name: str = ""
    node: str = ""
    has_claim: bool = False
    by_claim: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class UnaccountedEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One reason of a pod, with the resources that it is about; `quantity` in µGPU, None if it is not known."""

    reason: Unaccounted
    resources: tuple[str, ...] = ()
    quantity: int | None = None


class UnaccountedDay(Struct, frozen=True, kw_only=True, gc=False):
    """The most pods and µGPU at a time that were unaccounted for `reason` on a `day` (UTC, as 2026-11-27)."""

    day: str
    reason: Unaccounted
    pods: int
    quantity: int
