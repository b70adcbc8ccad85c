"""MIG: GPUs cut into slices of fixed profiles, such as 1g.10gb."""

import re
from typing import Final

from gputally.model.rules import MigBasis, Rules
from gputally.model.units import GPU
from gputally.shares import gfd
from gputally.shares.scheme import Labels, ResourceAmount, Scheme

_PROFILE: Final = re.compile(r"(?:(?P<compute>\d+)c\.)?(?P<slices>\d+)g\.(?P<memory>\d+)gb")
_MEMORY_SLICES: Final = 8
_FOUR_SLICES: Final = ("A30", "RTX-PRO-6000")
"""GPU models that MIG cuts into four compute slices; all others have seven."""
_FEW: Final = 4
_EIGHTHS: Final = {1: 1, 2: 2, 3: 4, 4: 4}
"""Of the memory, by compute slices of seven."""
_MIB_PER_GB: Final = 1024


class Mig(Scheme):
    """A unit is a slice of the profile that the resource's name tells, or one of the slice's replicas."""

    name = "mig"
    patterns = ("nvidia.com/mig-*",)
    is_configurable = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`: what the GPUs are, and whether all are cut alike."""
        return key in (gfd.PRODUCT, gfd.MEMORY, gfd.STRATEGY)

    def unit(self, asked: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        one = slice_of(asked.resource.partition("mig-")[2], node, rules.mig_basis)
        return one // (gfd.replicas(asked.resource, node) or 1)


def slice_of(profile: str, node: Labels, basis: MigBasis) -> int:
    """µGPU of a slice, by compute slices or eighths of memory; of an unreadable profile a whole GPU, never nothing."""
    match = _PROFILE.match(profile)
    if match is None:
        return GPU
    if basis is MigBasis.MEMORY:
        return GPU * _memory_slices(match, node) // _MEMORY_SLICES
    slices = _compute_slices(node)
    return GPU * min(int(match["compute"] or match["slices"]), slices) // slices


def slices_per_gpu(node: Labels) -> int:
    """How many slices of the single MIG strategy's profile one GPU has room for, by compute and by memory."""
    return min(GPU // slice_of(gfd.single_profile(node), node, basis) for basis in MigBasis)


def _compute_slices(node: Labels) -> int:
    """Those of a whole GPU."""
    return _FEW if any(model in gfd.product(node) for model in _FOUR_SLICES) else 7


def _memory_slices(match: re.Match[str], node: Labels) -> int:
    """Eighths of the GPU's memory; where that is unknown, what a profile of so many compute slices has.

    A `1g` may have two eighths, which its name alone does not tell.

    Source: NVIDIA's MIG user guide, supported profiles.
    """
    if memory_mib := gfd.memory_mib(node):
        eighths = round(_MEMORY_SLICES * int(match["memory"]) * _MIB_PER_GB / memory_mib)
    else:
        slices = int(match["slices"])
        eighths = 2 * slices if _compute_slices(node) == _FEW else _EIGHTHS.get(slices, _MEMORY_SLICES)
    return min(max(eighths, 1), _MEMORY_SLICES)
