"""Whole GPUs, or any fixed share of one that the configuration names."""

from gputally.model.rules import FIXED, Rules
from gputally.shares.scheme import Labels, ResourceAmount, Scheme


class Whole(Scheme):
    """A unit is the `weight` of its rule, whatever the node says."""

    name = FIXED
    patterns = ("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
    is_configurable = True

    def unit(self, asked: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        return asked.rule.weight
