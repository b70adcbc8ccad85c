"""The purchase option of a node, from its labels."""

from collections.abc import Iterator, Mapping

from gputally.model.price import Purchase

_CLAIMS = {
    "eks.amazonaws.com/capacityType": {
        "SPOT": Purchase.SPOT,
        "ON_DEMAND": Purchase.ON_DEMAND,
        "CAPACITY_BLOCK": Purchase.RESERVED,
    },
    "cloud.google.com/gke-spot": {"true": Purchase.SPOT},
    "cloud.google.com/gke-preemptible": {"true": Purchase.SPOT},
    "kubernetes.azure.com/scalesetpriority": {"spot": Purchase.SPOT, "regular": Purchase.ON_DEMAND},
    "karpenter.sh/capacity-type": {
        "spot": Purchase.SPOT,
        "on-demand": Purchase.ON_DEMAND,
        "reserved": Purchase.RESERVED,
    },
    "gputally.io/purchase": {option.value: option for option in Purchase},
}
"""What each label says, the surest first: the cloud's own, then Karpenter's, then the operator's."""
LABELS = frozenset(_CLAIMS)


def purchase_of(node_labels: Mapping[str, str]) -> tuple[Purchase, bool]:
    """The purchase option, and whether labels conflict; on-demand without any.

    The most reliable label decides between spot and other options. Reserved does not conflict with on-demand: a
    commitment pays for instances that the cloud labels as on-demand.

    Source: aws/karpenter-provider-aws#6244 (ON_DEMAND and spot on one node).
    """
    claims = list(_claims(node_labels))
    conflict = len({claim is Purchase.SPOT for claim in claims}) > 1
    if claims and claims[0] is Purchase.SPOT:
        return Purchase.SPOT, conflict
    return (Purchase.RESERVED if Purchase.RESERVED in claims else Purchase.ON_DEMAND), conflict


def _claims(node_labels: Mapping[str, str]) -> Iterator[Purchase]:
    for key, meanings in _CLAIMS.items():
        claim = meanings.get(node_labels.get(key, ""))
        if claim is not None:
            yield claim
