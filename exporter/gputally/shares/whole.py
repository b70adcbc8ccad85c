"""Whole GPUs, or a fixed share of one from the configuration."""

from gputally.model.rules import FIXED, Rules
from gputally.shares.scheme import Labels, ResourceAmount, Scheme


class Whole(Scheme):
    """A unit is the `weight` of its rule, independent of the node."""

    name = FIXED
    patterns = ("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
    is_configurable = True

    def unit(self, requested: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        return requested.rule.weight
