"""Whole GPUs, or any fixed share of one that the configuration names."""

from gputally.model.rules import ResourceRule, Rules, Weighing
from gputally.shares.scheme import Labels, ResourceAmount, Scheme


class Whole(Scheme):
    """A unit is the `weight` of its rule, whatever the node says."""

    weighing = Weighing.FIXED
    resources = (
        ResourceRule(pattern="amd.com/gpu"),
        ResourceRule(pattern="gpu.intel.com/i915"),
        ResourceRule(pattern="gpu.intel.com/xe"),
    )

    def unit(self, asked: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        return asked.rule.weight
