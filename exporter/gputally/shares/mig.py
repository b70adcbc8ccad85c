"""MIG: GPUs partitioned into slices of fixed profiles, such as 1g.10gb."""

import re
from typing import Final

from gputally.model.rules import MigBasis, Rules
from gputally.model.units import GPU
from gputally.shares import gfd
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
        return key in (gfd.PRODUCT, gfd.MEMORY, gfd.STRATEGY)

    def unit(self, requested: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        one = slice_of(requested.resource.partition("mig-")[2], node, rules.mig_basis)
        return one // (gfd.replicas(requested.resource, node) or 1)


def slice_of(profile: str, node: Labels, basis: MigBasis) -> int:
    """µGPU of a slice, by compute slices or eighths of memory; a whole GPU for an invalid profile, never 0."""
    match = _PROFILE.match(profile)
    if match is None:
        return GPU
    if basis is MigBasis.MEMORY:
        return GPU * _memory_slices(match, node) // _MEMORY_SLICES
    slices = _compute_slices(node)
    return GPU * min(int(match["compute"] or match["slices"]), slices) // slices


def slices_per_gpu(node: Labels) -> int:
    """The number of slices of the single MIG strategy's profile that fit on one GPU, by compute and by memory."""
    return min(GPU // slice_of(gfd.single_profile(node), node, basis) for basis in MigBasis)


def _compute_slices(node: Labels) -> int:
    """The compute slices of a whole GPU."""
    return _FOUR if any(model in gfd.product(node) for model in _FOUR_SLICES) else 7


def _memory_slices(match: re.Match[str], node: Labels) -> int:
    """Eighths of the GPU's memory; if that is unknown, the default for the number of compute slices.

    A `1g` slice may have two eighths, which is not part of its name.

    Source: NVIDIA's MIG user guide, supported profiles.
    """
    if memory_mib := gfd.memory_mib(node):
        eighths = round(_MEMORY_SLICES * int(match["memory"]) * _MIB_PER_GB / memory_mib)
    else:
        slices = int(match["slices"])
        eighths = 2 * slices if _compute_slices(node) == _FOUR else _EIGHTHS.get(slices, _MEMORY_SLICES)
    return min(max(eighths, 1), _MEMORY_SLICES)
