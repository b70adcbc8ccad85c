"""Time-slicing and MPS: replicas of each GPU, as in the node labels of GPU Feature Discovery or of GKE."""

from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares import gfd, gke, mig
from gputally.shares.scheme import GPUS, Labels, ResourceAmount, Scheme


class Replica(Scheme):
    """A unit is a replica of a GPU, or of the slice that the single MIG strategy or GKE offers as a GPU."""

    name = "replica"
    patterns = ("nvidia.com/gpu.shared", GPUS)
    is_configurable = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`: the number of replicas of any resource, and GKE's clients and partitions."""
        return key in (gke.CLIENTS, gke.PARTITION) or (key.startswith(gfd.PREFIX) and key.endswith(gfd.REPLICAS))

    def parts(self, resource: str, node: Labels) -> int:
        """See `Scheme.parts`."""
        profile = mig.profile_of_gpus(node)
        return mig.slices_per_gpu(profile, node) if profile else 1

    def replicas(self, resource: str, node: Labels) -> int:
        """See `Scheme.replicas`."""
        return gfd.replicas(resource, node) or gfd.replicas(GPUS, node) or gke.clients(node) or 1

    def unit(self, requested: ResourceAmount, node: Labels, rules: Rules) -> int:
        """See `Scheme.unit`."""
        profile = mig.profile_of_gpus(node)
        whole = mig.slice_of(profile, node, rules.mig_basis) if profile else GPU
        return whole // self.replicas(requested.resource, node)
