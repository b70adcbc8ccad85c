"""The physical GPUs of a node by its labels, and what a unit is where labels and offered units contradict each other.

GPU Feature Discovery writes one replica for a node that offers 50 of one GPU, if only the device plugin was configured
to share it; and it counts one GPU less for a node whose GPU has failed, while the kubelet still offers it. So more
units than the labels explain are shares where a label says that GPUs are shared, or where they are a multiple of the
GPUs; otherwise, and where the labels once explained the same offer, a GPU has failed, and a unit is what it was.
"""

from typing import Final, NamedTuple

from gputally.model.node_record import LabelConflict
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares import gfd, gke, mig
from gputally.shares.scheme import GPUS, Labels, number
from gputally.shares.schemes import SCHEMES, NodeLabels, Units, covered, rule_of, scheme_of, sharing_of

_INSTANCE_COUNTS: Final = (
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
)
COUNTS: Final = (gfd.COUNT, gke.COUNT, *_INSTANCE_COUNTS)
"""Labels with the number of physical GPUs."""


class Sharing(NamedTuple):
    """The labels that quantities depend on, and how they contradict the offered units.

    The labels count `gpus` physical GPUs, 0 if unknown; as they are, the offered units need `needed` GPUs.
    """

    labels: NodeLabels
    conflict: LabelConflict | None
    gpus: int
    needed: int

    @property
    def explained(self) -> int:
        """The labelled number of GPUs if it is the one that the units need; 0 if it differs."""
        return self.gpus if self.gpus == self.needed else 0


def gpus_counted(node: Labels) -> int:
    """Physical GPUs by the label that counts the most; 0 if unknown.

    GPU Feature Discovery counts slices under the single MIG strategy, and no GPU that has failed; clouds count those of
    the machine.
    """
    discovered, profile = number(node.get(gfd.COUNT)), gfd.single_profile(node)
    if profile:
        discovered = -(-discovered // mig.slices_per_gpu(profile, node))
    return max(discovered, gke.count(node), *(number(node.get(key)) for key in _INSTANCE_COUNTS))


def sharing(offer: Units, labels: NodeLabels, rules: Rules, *, known_gpus: int = 0) -> Sharing:
    """How the units of a node that offers `offer` share its GPUs.

    Of nodes without a labelled number of GPUs, and of units that an annotation or a configured weight defines, nothing
    is corrected. `known_gpus` is the number of GPUs that the labels once had beside the same offer.
    """
    node = dict(labels)
    units = _shareable(offer, node, rules)
    counted, needed = gpus_counted(node), _needed(units, node, rules)
    gpus, conflict = max(counted, known_gpus), None
    if counted and needed > gpus and (needed % gpus == 0 or _says_shared(units, node)):
        conflict = LabelConflict.MORE_UNITS
    elif counted and _has_too_few(units, node, rules):
        conflict = LabelConflict.FEWER_UNITS
    elif 0 < counted < needed:
        return Sharing(sharing_of(labels), LabelConflict.FEWER_GPUS, counted, needed)
    corrected = _corrected(units, node, rules, gpus=gpus) if conflict else labels
    return Sharing(sharing_of(corrected), conflict, counted, needed)


def _shareable(offer: Units, node: Labels, rules: Rules) -> Units:
    """NVIDIA's units whose weight depends on labels; none if an annotation describes the GPUs."""
    if any(scheme.governs((), node) for scheme in SCHEMES):
        return ()
    return tuple([(name, amount) for name, amount in offer if amount and _depends(name, node, rules)])


def _depends(resource: str, node: Labels, rules: Rules) -> bool:
    known = resource.startswith(gfd.PREFIX) and rule_of(resource, rules)
    return bool(known) and scheme_of(resource, rules).parts(resource, node) > 0


def _needed(units: Units, node: Labels, rules: Rules) -> int:
    """Physical GPUs that the units need by the labels."""
    if len(units) == 1:
        resource, amount = units[0]
        scheme = scheme_of(resource, rules)
        return -(-amount // (scheme.parts(resource, node) * scheme.replicas(resource, node)))
    return -(-covered(units, tuple(node.items()), rules) // GPU)


def _says_shared(units: Units, node: Labels) -> bool:
    """Whether any label, or the name of a resource, says that GPUs are shared."""
    return (
        gke.clients(node) > 1
        or node.get(gfd.PRODUCT, "").endswith(gfd.SHARED)
        or any(name.endswith(gfd.RENAMED) or gfd.replicas(name, node) for name in (*dict(units), GPUS))
    )


def _has_too_few(units: Units, node: Labels, rules: Rules) -> bool:
    """Whether a single resource has fewer units than one GPU has replicas."""
    if len(units) != 1:
        return False
    resource, amount = units[0]
    return amount < scheme_of(resource, rules).replicas(resource, node)


def _corrected(units: Units, node: Labels, rules: Rules, *, gpus: int) -> NodeLabels:
    """The labels with as many replicas as it takes for the units to fit on the GPUs."""
    found = {key: value for key, value in node.items() if key != gke.CLIENTS}
    more = -(-_needed(units, node, rules) // gpus)
    for resource, amount in units:
        scheme = scheme_of(resource, rules)
        alone = -(-amount // (gpus * scheme.parts(resource, node)))
        replicas = alone if len(units) == 1 else more * scheme.replicas(resource, node)
        found[gfd.replicas_label(resource)] = str(replicas)
    return tuple(sorted(found.items()))
