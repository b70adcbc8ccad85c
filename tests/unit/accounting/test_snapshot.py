from dataclasses import replace

from gputally.accounting.fleet.snapshot import PendingPods, publish
from gputally.accounting.totals.total import Total
from gputally.model.rules import Limits, Rules
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_fleet import book

NODE = NodeForm(labels={"nvidia.com/gpu.product": "A100", "karpenter.sh/nodepool": "train"})
PENDING = PodForm(tier="gold", created=5, gpus=2)
RUNNING = replace(PENDING, name="b", node="n1", scheduled=10, started=12)


def test_pending_pods_are_counted_by_tier_and_tenant_with_what_they_ask_for_and_the_oldest() -> None:
    replay = Replay()
    replay.see(PENDING, replace(PENDING, name="c", created=3, gpus=1), replace(PENDING, name="d", tier=""), at=6)

    assert replay.scrape(7).waiting == {
        ("gold", "ml"): PendingPods(pods=2, quantity=3_000_000, oldest_us=us(3)),
        ("none", "ml"): PendingPods(pods=1, quantity=2_000_000, oldest_us=us(5)),
    }


def test_what_pending_pods_request_is_summed_by_the_model_that_they_require() -> None:
    replay, model = Replay(), "nvidia.com/gpu.product"
    h100 = replace(PENDING, name="h", node_selector={model: "H100"})
    replay.see(NODE, PENDING, h100, replace(PENDING, name="a100", node_selector={model: "A100"}), at=6)
    assert replay.scrape(7).wanted == {"A100": 2_000_000, "any": 2_000_000, "other": 2_000_000}

    replay.lose(h100, at=8)
    assert replay.scrape(9).wanted == {"A100": 2_000_000, "any": 2_000_000}


def test_a_pod_that_is_bound_or_over_does_not_wait() -> None:
    replay = Replay()
    replay.see(PENDING, at=6)
    replay.see(replace(PENDING, phase="Failed", version=2), at=7)

    assert replay.scrape(8).waiting == {}


def test_existing_gpus_without_a_price_are_told_by_model_and_pool() -> None:
    replay = Replay(book=book((100, "2")))
    replay.see(NODE, NodeForm(name="n2", gpus=4), at=1)
    assert replay.scrape(2).inventory.unpriced == {("A100", "train"): 8_000_000, ("unknown", "none"): 4_000_000}
    assert replay.scrape(100).inventory.unpriced == {("A100", "train"): 0, ("unknown", "none"): 4_000_000}

    replay.lose(NodeForm(name="n2", gpus=4), at=101)
    assert replay.scrape(102).inventory.unpriced == {("A100", "train"): 0}


def test_pods_nodes_and_what_is_wrong_with_them_are_counted() -> None:
    replay = Replay()
    contradiction = {"karpenter.sh/capacity-type": "spot", "eks.amazonaws.com/capacityType": "ON_DEMAND"}
    replay.see(NODE, NodeForm(name="cpu", gpus=0), NodeForm(name="n3", labels=contradiction), at=1)
    replay.see(RUNNING, replace(PENDING, tier=""), at=13)
    snapshot = replay.scrape(14)

    assert (snapshot.inventory.nodes, snapshot.pods, snapshot.without_tier, snapshot.inventory.purchase_conflicts) == (
        2,
        2,
        1,
        1,
    )


def test_residuals_are_zero_and_show_what_is_lost() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, at=13)
    assert publish(replay.fleet, now_us=us(20), ledger={Total.ALLOCATED: (0, 0)}).differences == {
        "allocated": 0,
        "capacity": 0,
        "ledger": 0,
    }

    replay.fleet.totals.accrue(Total.ALLOCATED, ("gold", "ml", "A100", "running"), 1, (us(0), us(1)), at_us=us(20))
    replay.fleet.totals.accrue(Total.PHYSICAL, (), 1, (us(0), us(2)), at_us=us(20))
    differences = publish(replay.fleet, now_us=us(21), ledger={Total.ALLOCATED: (5 - us(21), 1)}).differences

    assert differences == {"allocated": 1_000_000, "capacity": 2_000_000, "ledger": 5}


def test_a_snapshot_is_of_the_last_evaluation_when_the_clock_stepped_back() -> None:
    replay = Replay()
    replay.scrape(100)

    assert replay.scrape(50).now_us == us(100) + 1


def test_refused_tiers_are_shown_as_other_once_pods_of_them_were_bound() -> None:
    replay = Replay(rules=Rules(limits=Limits(tiers=1)))
    replay.see(NODE, RUNNING, at=13)
    assert replay.scrape(14).tiers == ("gold",)

    replay.see(replace(RUNNING, name="c", tier="lead"), at=15)
    snapshot = replay.scrape(16)

    assert snapshot.tiers == ("gold", "other")
    assert snapshot.refusals["tier"] > 0


def test_the_cost_of_capacity_is_compared_with_that_of_the_nodes_facts() -> None:
    replay = Replay(book=book((0, "2"), (50, "3")))
    replay.see(NODE, RUNNING, at=13)
    replay.see(replace(RUNNING, name="more", gpus=9), at=20)  # more than the node has
    assert replay.scrape(100).cost_differences == {"capacity": 0}
    replay.restart()
    replay.see(replace(NODE, ready="False"), at=120)
    assert replay.scrape(200).cost_differences == {"capacity": 0}

    replay.fleet.totals.count(Total.CAPACITY_COST, ("A100", "train", "free", "EUR"), 7, at_us=us(200))
    assert publish(replay.fleet, now_us=us(201), ledger={}).cost_differences == {"capacity": -7}
