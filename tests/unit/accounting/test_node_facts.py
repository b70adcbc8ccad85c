from dataclasses import replace

import pytest

from gputally.accounting.nodes.facts import observed, pool_of
from gputally.errors import MalformedObject
from gputally.model.kube.nodes import Node
from gputally.model.node_record import NodeFacts, NodeRecord
from gputally.model.price import Purchase
from gputally.model.rules import MigBasis, ResourceRule, Rules
from gputally.shares.schemes import quantities_on
from tests.core.manifests import NodeForm, as_node, us

COUNT = "nvidia.com/gpu.count"
PRODUCT = "nvidia.com/gpu.product"
NODE = NodeForm(created=5, gpus=8)
RECORD = NodeRecord(uid="uid-n1", name="n1", created_us=us(5))


def facts(form: NodeForm, rules: Rules = Rules()) -> NodeFacts:  # noqa: B008 - frozen
    return facts_of(as_node(form), rules, frozenset({"zone"}))


def facts_of(node: Node, rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    """What the first form of a node says."""
    record = NodeRecord(uid="u", name="n", created_us=us(1))
    return observed(record, node, rules=rules, price_labels=price_labels, at_us=us(5), since_us=us(5)).facts[-1][1]


def history(*forms: tuple[NodeForm, float]) -> list[tuple[int, NodeFacts]]:
    record = RECORD
    for form, at in forms:
        keys = frozenset({"zone"})
        record = observed(record, as_node(form), rules=Rules(), price_labels=keys, at_us=us(at), since_us=us(at))
    return [((from_us - us(0)) // 1_000_000, known) for from_us, known in record.facts]


def test_a_node_has_as_many_gpus_as_it_offers() -> None:
    found = facts(NODE)

    assert (found.physical, found.covered, found.allocatable) == (8_000_000, 8_000_000, 8_000_000)


def test_a_labelled_count_tells_of_gpus_that_are_not_offered() -> None:
    found = facts(replace(NODE, gpus=7, labels={COUNT: "8"}))

    assert (found.physical, found.covered) == (8_000_000, 7_000_000)


def test_a_label_behind_the_offer_does_not_hide_gpus() -> None:
    assert facts(replace(NODE, labels={COUNT: "7"})).physical == 8_000_000


@pytest.mark.parametrize("label", ["", "many", "-8", "²"])
def test_a_broken_count_is_none(label: str) -> None:
    assert facts(replace(NODE, labels={COUNT: label})).physical == 8_000_000


def test_shared_gpus_are_counted_once() -> None:
    labels = {COUNT: "2", "nvidia.com/gpu.replicas": "3", PRODUCT: "Tesla-T4-SHARED"}
    found = facts(replace(NODE, labels=labels, capacity={"nvidia.com/gpu.shared": 6, "nvidia.com/gpu": 0}))

    assert (found.physical, found.covered, found.divided) == (2_000_000, 1_999_998, True)
    assert found.gpu_model == "Tesla-T4"


def test_without_a_count_a_divided_node_has_as_many_gpus_as_its_parts_need() -> None:
    assert facts(replace(NODE, capacity={"nvidia.com/mig-3g.40gb": 4})).physical == 2_000_000


@pytest.mark.parametrize(("profile", "slices"), [("1g.10gb", 56), ("3g.40gb", 16), ("1g.20gb", 32), ("7g.80gb", 8)])
@pytest.mark.parametrize("basis", MigBasis)
def test_under_the_single_strategy_the_label_counts_slices(profile: str, slices: int, basis: MigBasis) -> None:
    labels = {COUNT: str(slices), PRODUCT: f"NVIDIA-A100-SXM4-80GB-MIG-{profile}", "nvidia.com/mig.strategy": "single"}

    assert facts(replace(NODE, gpus=slices, labels=labels), Rules(mig_basis=basis)).physical == 8_000_000


def test_what_is_not_allocatable_is_known() -> None:
    assert facts(replace(NODE, allocatable={"nvidia.com/gpu": 6})).allocatable == 6_000_000


def test_an_allocatable_above_the_capacity_is_held_to_it() -> None:
    assert facts(replace(NODE, gpus=0, allocatable={"nvidia.com/gpu": 8})).allocatable == 0


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_is_ready_only_if_it_says_so(ready: str) -> None:
    assert facts(NODE).ready
    assert not facts(replace(NODE, ready=ready)).ready


def test_a_node_without_conditions_is_not_ready() -> None:
    assert not facts_of(as_node({"metadata": {"uid": "u"}}), Rules(), frozenset()).ready


def test_a_configured_resource_counts_by_its_weight() -> None:
    rules = Rules(resources=(ResourceRule(pattern="acme.io/half", weight=500_000),))

    assert facts(replace(NODE, capacity={"acme.io/half": 3}), rules).covered == 1_500_000


def test_the_asset_is_what_prices_are_looked_up_by() -> None:
    labels = {
        PRODUCT: "NVIDIA-H100-80GB-HBM3",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "karpenter.sh/nodepool": "train",
        "karpenter.sh/capacity-type": "spot",
        "zone": "a",
        "other": "b",
    }
    asset = facts(replace(NODE, labels=labels)).asset

    assert (asset.instance_type, asset.gpu_model, asset.pool) == ("p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "train")
    assert (asset.purchase, asset.labels) == (Purchase.SPOT, (("zone", "a"),))


def test_the_first_pool_label_decides_and_none_is_none() -> None:
    rules = Rules(pool_labels=("first", "second"))

    assert pool_of({"second": "b", "first": "a"}, rules) == "a"
    assert pool_of({"second": "b", "first": ""}, rules) == "b"
    assert pool_of({}, rules) == "none"


def test_a_broken_capacity_is_malformed() -> None:
    with pytest.raises(MalformedObject, match="uid-n1"):
        facts_of(
            as_node({"metadata": {"uid": "uid-n1"}, "status": {"capacity": {"nvidia.com/gpu": "0.5"}}}),
            Rules(),
            frozenset(),
        )


def test_the_first_facts_hold_from_the_creation_on() -> None:
    assert [from_s for from_s, _ in history((NODE, 60))] == [5]


def test_facts_seen_again_change_nothing() -> None:
    assert len(history((NODE, 60), (replace(NODE, version=2), 70))) == 1


def test_a_change_holds_from_its_observation() -> None:
    assert [(at, known.cordoned) for at, known in history((NODE, 60), (replace(NODE, cordoned=True), 70))] == [
        (5, False),
        (70, True),
    ]


def test_readiness_holds_from_its_own_time() -> None:
    lost = replace(NODE, ready="Unknown", ready_since=64)

    assert [(at, known.ready) for at, known in history((NODE, 60), (lost, 70))] == [(5, True), (64, False)]


def test_readiness_and_other_changes_of_one_form_hold_each_from_their_time() -> None:
    lost = replace(NODE, ready="Unknown", ready_since=64, cordoned=True)
    found = [(at, known.ready, known.cordoned) for at, known in history((NODE, 60), (lost, 70))]

    assert found == [(5, True, False), (64, False, False), (70, False, True)]


def test_readiness_holds_from_its_own_time_under_whatever_else_changed_since() -> None:
    lost = replace(NODE, ready="Unknown", ready_since=64, cordoned=True)
    found = history((NODE, 60), (replace(NODE, cordoned=True), 66), (lost, 70))

    assert [(at, known.ready, known.cordoned) for at, known in found] == [
        (5, True, False),
        (64, False, False),
        (66, False, True),
    ]


def test_readiness_does_not_precede_the_node() -> None:
    assert [
        (at, known.ready) for at, known in history((NODE, 60), (replace(NODE, ready="False", ready_since=1), 70))
    ] == [(5, False)]


def test_a_clock_that_steps_back_does_not_reorder_the_history() -> None:
    found = history((NODE, 60), (replace(NODE, cordoned=True), 66), (NODE, 70), (replace(NODE, gpus=4), 62))

    assert [at for at, _ in found] == [5, 66, 70]
    assert [known.physical for _, known in found] == [8_000_000, 8_000_000, 4_000_000]


def test_two_changes_in_one_instant_leave_the_last() -> None:
    found = history((NODE, 60), (replace(NODE, cordoned=True), 66), (replace(NODE, gpus=4), 66))

    assert [(at, known.physical, known.cordoned) for at, known in found] == [
        (5, 8_000_000, False),
        (66, 4_000_000, False),
    ]


def test_readiness_ahead_of_our_clock_is_held_to_the_observation() -> None:
    lost = replace(NODE, ready="Unknown", ready_since=90)

    assert [at for at, _ in history((NODE, 60), (lost, 70))] == [5, 70]


def test_what_a_pod_has_depends_on_how_its_node_shares() -> None:
    units = (("nvidia.com/gpu", 2), ("nvidia.com/mig-1g.10gb", 1))
    replicas = (("nvidia.com/gpu.replicas", "4"), ("nvidia.com/mig-1g.10gb.replicas", "4"))

    assert quantities_on(units, replicas, Rules()) == (
        ("nvidia.com/gpu", 500_000),
        ("nvidia.com/mig-1g.10gb", 35_714),
    )
