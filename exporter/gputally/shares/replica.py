"""Time-slicing and MPS: so many replicas of each GPU, as GPU Feature Discovery labels the node."""

from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares import gfd, mig
from gputally.shares.scheme import GPUS, Labels, ResourceAmount, Scheme


class Replica(Scheme):
    """A unit is a replica of a GPU, or of the slice that stands for one under the single MIG strategy."""

    name = "replica"
    patterns = ("nvidia.com/gpu.shared", GPUS)
    is_configurable = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`: how many replicas there are, of any resource."""
        return key.startswith(gfd.PREFIX) and key.endswith(gfd.REPLICAS)

    def unit(self, asked: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        profile = gfd.single_profile(node)
        whole = mig.slice_of(profile, node, rules.mig_basis) if profile else GPU
        return whole // (gfd.replicas(asked.resource, node) or gfd.replicas(GPUS, node) or 1)
