import pytest

from gputally.accounting.nodes.purchase import purchase_of
from gputally.model.price import Purchase

EKS = "eks.amazonaws.com/capacityType"
KARPENTER = "karpenter.sh/capacity-type"
OWN = "gputally.io/purchase"


@pytest.mark.parametrize(
    ("key", "value", "purchase"),
    [
        (EKS, "SPOT", Purchase.SPOT),
        (EKS, "ON_DEMAND", Purchase.ON_DEMAND),
        (EKS, "CAPACITY_BLOCK", Purchase.RESERVED),
        ("cloud.google.com/gke-spot", "true", Purchase.SPOT),
        ("cloud.google.com/gke-preemptible", "true", Purchase.SPOT),
        ("kubernetes.azure.com/scalesetpriority", "spot", Purchase.SPOT),
        (KARPENTER, "spot", Purchase.SPOT),
        (KARPENTER, "on-demand", Purchase.ON_DEMAND),
        (KARPENTER, "reserved", Purchase.RESERVED),
        (OWN, "reserved", Purchase.RESERVED),
    ],
)
def test_each_providers_label_tells_how_the_node_was_bought(key: str, value: str, purchase: Purchase) -> None:
    assert purchase_of({key: value}) == (purchase, False)


@pytest.mark.parametrize("labels", [{}, {EKS: "LEASED"}, {"cloud.google.com/gke-spot": "false"}])
def test_a_node_whose_labels_say_nothing_is_on_demand(labels: dict[str, str]) -> None:
    assert purchase_of(labels) == (Purchase.ON_DEMAND, False)


def test_of_contradicting_labels_the_clouds_own_wins_and_the_contradiction_is_reported() -> None:
    assert purchase_of({EKS: "ON_DEMAND", KARPENTER: "spot"}) == (Purchase.ON_DEMAND, True)
    assert purchase_of({EKS: "SPOT", KARPENTER: "on-demand"}) == (Purchase.SPOT, True)
    assert purchase_of({KARPENTER: "spot", OWN: "reserved"}) == (Purchase.SPOT, True)


def test_agreeing_labels_are_no_contradiction() -> None:
    assert purchase_of({EKS: "SPOT", KARPENTER: "spot"}) == (Purchase.SPOT, False)


def test_a_commitment_for_nodes_that_the_cloud_calls_on_demand_is_no_contradiction() -> None:
    assert purchase_of({EKS: "ON_DEMAND", OWN: "reserved"}) == (Purchase.RESERVED, False)
