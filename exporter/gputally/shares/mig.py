"""MIG: GPUs partitioned into slices of fixed profiles, such as 1g.10gb."""

import re
from typing import Final

from gputally.model.rules import MigBasis, Rules
from gputally.model.units import GPU
from gputally.shares import gfd, gke
from gputally.shares.scheme import Labels, ResourceAmount, Scheme

_PROFILE: Final = re.compile(r"(?:(?P<compute>\d+)c\.)?(?P<slices>\d+)g\.(?P<memory>\d+)gb")
_MEMORY_SLICES: Final = 8
_FOUR_SLICES: Final = ("A30", "RTX-PRO-6000")
"""GPU models with four compute slices; all others have seven."""
_FOUR: Final = 4
_EIGHTHS: Final = {1: 1, 2: 2, 3: 4, 4: 4}
"""Eighths of the memory by number of compute slices, for GPUs with seven."""
_MIB_PER_GB: Final = 1024


class Mig(Scheme):
    """A unit is a slice of the profile in the resource's name, or a replica of such a slice."""

    name = "mig"
    patterns = ("nvidia.com/mig-*",)
    is_configurable = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`: the GPU model and memory, and the MIG strategy."""
        return key in (gfd.PRODUCT, gfd.MEMORY, gfd.STRATEGY, gke.ACCELERATOR)

    def parts(self, resource: str, node: Labels) -> int:
        """See `Scheme.parts`."""
        return slices_per_gpu(_profile(resource), node)

    def replicas(self, resource: str, node: Labels) -> int:
        """See `Scheme.replicas`."""
        return gfd.replicas(resource, node) or 1

    def unit(self, requested: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        one = slice_of(_profile(requested.resource), node, rules.mig_basis)
        return one // self.replicas(requested.resource, node)


def _profile(resource: str) -> str:
    return resource.partition("mig-")[2]


def profile_of_gpus(node: Labels) -> str:
    """The profile of the slices that the node offers as `nvidia.com/gpu`; "" for whole GPUs."""
    return gfd.single_profile(node) or gke.partition(node)


def slice_of(profile: str, node: Labels, basis: MigBasis) -> int:
    """µGPU of a slice, by compute slices or eighths of memory; a whole GPU for an invalid profile, never 0."""
    match = _PROFILE.match(profile)
    if match is None:
        return GPU
    whole, part = _instance(match)
    if basis is MigBasis.MEMORY:
        return GPU * _memory_slices(match, node) * part // (_MEMORY_SLICES * whole)
    slices = _compute_slices(node)
    return GPU * min(part, slices) // slices


def slices_per_gpu(profile: str, node: Labels) -> int:
    """The number of slices of that profile that fit on one GPU: by compute, and by the memory of the GPU instances."""
    match = _PROFILE.match(profile)
    if match is None:
        return 1
    whole, part = _instance(match)
    instances = min(max(_compute_slices(node) // whole, 1), _MEMORY_SLICES // _memory_slices(match, node))
    return instances * (whole // part)


def _instance(match: re.Match[str]) -> tuple[int, int]:
    """The compute slices of a GPU instance, and those of one of its compute instances, which share its memory."""
    whole = max(int(match["slices"]), 1)
    return whole, min(max(int(match["compute"] or whole), 1), whole)


def _compute_slices(node: Labels) -> int:
    """The compute slices of a whole GPU."""
    model = gfd.product(node) or node.get(gke.ACCELERATOR, "").upper()
    return _FOUR if any(named in model for named in _FOUR_SLICES) else 7


def _memory_slices(match: re.Match[str], node: Labels) -> int:
    """Eighths of the GPU's memory; if that is unknown, the default for the number of compute slices.

    A `1g` slice may have two eighths, which is not part of its name.

    Source: NVIDIA's MIG user guide, supported profiles.
    """
    if memory_mib := gfd.memory_mib(node) or gke.memory_mib(node):
        eighths = round(_MEMORY_SLICES * int(match["memory"]) * _MIB_PER_GB / memory_mib)
    else:
        slices = int(match["slices"])
        eighths = 2 * slices if _compute_slices(node) == _FOUR else _EIGHTHS.get(slices, _MEMORY_SLICES)
    return min(max(eighths, 1), _MEMORY_SLICES)
