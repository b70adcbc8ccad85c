"""Time-slicing and MPS: replicas of each GPU, as in the node labels of GPU Feature Discovery."""

from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares import gfd, mig
from gputally.shares.scheme import GPUS, Labels, ResourceAmount, Scheme


class Replica(Scheme):
    """A unit is a replica of a GPU, or of the slice that the single MIG strategy exposes as a GPU."""

    name = "replica"
    patterns = ("nvidia.com/gpu.shared", GPUS)
    is_configurable = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`: the number of replicas of any resource."""
        return key.startswith(gfd.PREFIX) and key.endswith(gfd.REPLICAS)

    def unit(self, requested: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        profile = gfd.single_profile(node)
        whole = mig.slice_of(profile, node, rules.mig_basis) if profile else GPU
        return whole // (gfd.replicas(requested.resource, node) or gfd.replicas(GPUS, node) or 1)
