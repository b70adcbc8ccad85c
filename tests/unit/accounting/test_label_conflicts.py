"""Labels of a node that contradict the units that it offers: bills follow the physical GPUs, and never a failure."""

from dataclasses import replace as replace_form

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.model.node_record import LabelConflict
from gputally.model.rules import ResourceRule, Rules
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

GPU = "nvidia.com/gpu"
COUNT = f"{GPU}.count"
REPLICAS = f"{GPU}.replicas"
POD = PodForm(created=1, node="n1", scheduled=2, started=2)
HOUR = 3600


def node(units: int, labels: dict[str, str], *, machine: str = "") -> NodeForm:
    return NodeForm(gpus=units, labels=labels, machine=machine)


def counted(gpus: int, replicas: int = 1) -> dict[str, str]:
    return {f"{GPU}.product": "T4", COUNT: str(gpus), REPLICAS: str(replicas)}


def weights(replay: Replay) -> list[int]:
    return [segment.quantity for segment in replay.segments()]


def physical(replay: Replay) -> list[int]:
    """Physical GPUs over time."""
    (*_, account) = replay.fleet.nodes.accounts.values()
    return [facts.physical // 10**6 for _, facts in account.record.facts]


def conflicts(replay: Replay) -> dict[LabelConflict, int]:
    found = publish(replay.fleet, now_us=replay.fleet.now_us, ledger={}).inventory.label_conflicts
    return {conflict: nodes for conflict, nodes in found.items() if nodes}


@pytest.mark.parametrize(
    ("units", "labels", "weight", "gpus", "conflict"),
    [
        (50, counted(1), 20_000, 1, LabelConflict.MORE_UNITS),
        (8, counted(4), 500_000, 4, LabelConflict.MORE_UNITS),
        (2, counted(1), 500_000, 1, LabelConflict.MORE_UNITS),
        (5, counted(2, 2), 333_333, 2, LabelConflict.MORE_UNITS),
        (8, counted(7), 1_000_000, 8, LabelConflict.FEWER_GPUS),
        (5, counted(2), 1_000_000, 5, LabelConflict.FEWER_GPUS),
        (10, counted(1, 50), 100_000, 1, LabelConflict.FEWER_UNITS),
        (20, counted(2, 10), 100_000, 2, None),
        (7, counted(8), 1_000_000, 8, None),
        (10, counted(2, 10), 100_000, 2, None),
        (50, {REPLICAS: "1"}, 1_000_000, 50, None),
        (50, {COUNT: "0"}, 1_000_000, 50, None),
        (8, {"karpenter.k8s.aws/instance-gpu-count": "1"}, 125_000, 1, LabelConflict.MORE_UNITS),
        (8, counted(1) | {"eks.amazonaws.com/instance-gpu-count": "8"}, 1_000_000, 8, None),
        (8, {"cloud.google.com/gke-accelerator-count": "1"}, 1_000_000, 8, None),
    ],
)
def test_at_first_sight_a_multiple_or_a_sharing_label_makes_units_shares(
    units: int, labels: dict[str, str], weight: int, gpus: int, conflict: LabelConflict | None
) -> None:
    """A count of accelerators without a GPU model is one of TPUs."""
    replay = Replay()
    replay.see(node(units, labels), POD, at=2)

    assert (weights(replay), physical(replay)) == ([weight], [gpus])
    assert conflicts(replay) == ({conflict: 1} if conflict else {})


@pytest.mark.parametrize(("units", "gpus", "replicas"), [(2, 2, 1), (8, 8, 1), (20, 2, 10)])
def test_a_gpu_that_fails_changes_neither_the_bill_nor_the_capacity(units: int, gpus: int, replicas: int) -> None:
    """Whatever comes between: its plugin restarts, and so does gputally; its labels go for hours; it registers anew."""
    replay = Replay()
    whole, failed = counted(gpus, replicas), counted(gpus // 2, replicas)
    replay.see(node(units, whole, machine="m"), POD, at=2)
    replay.see(node(units, failed, machine="m"), at=20)
    assert conflicts(replay) == {LabelConflict.FEWER_GPUS: 1}
    replay.see(node(0, failed, machine="m"), at=30)
    replay.flush()
    replay.restart()
    replay.see(node(units, failed, machine="m"), at=40)
    replay.lose(node(units, failed, machine="m"), at=45)
    replay.see(replace_form(node(units, failed, machine="m"), uid="again", created=50), at=50)
    replay.see(replace_form(node(units, whole, machine="m"), uid="again", created=50), at=60)

    assert weights(replay) == [10**6 // replicas]
    assert set(physical(replay)) == {gpus}
    assert conflicts(replay) == {}


def test_a_node_that_lost_its_labels_for_hours_remembers_what_they_said() -> None:
    replay = Replay()
    replay.see(node(2, counted(2)), POD, at=2)
    replay.see(node(2, {}), at=20)
    replay.see(node(2, {}), at=20 + 2 * HOUR)
    replay.see(node(2, counted(1)), at=30 + 2 * HOUR)

    assert weights(replay)[-1] == 10**6
    assert physical(replay)[-1] == 2


def test_another_offer_is_judged_anew() -> None:
    replay = Replay()
    replay.see(node(2, counted(2)), at=2)
    replay.see(node(2, counted(1)), at=10)
    replay.see(node(50, counted(1)), replace_form(POD, scheduled=30, started=30), at=30)

    assert weights(replay) == [20_000]
    assert physical(replay) == [2, 2, 1]


@pytest.mark.parametrize("labels_first", [True, False])
def test_the_order_of_labels_and_units_changes_nothing(*, labels_first: bool) -> None:
    """Labels that come late apply since the creation of the node."""
    replay = Replay()
    for form in (node(0, counted(1)), node(50, counted(1))) if labels_first else (node(50, {}), node(50, counted(1))):
        replay.see(form, at=3)
    replay.see(POD, at=5)

    assert weights(replay) == [20_000]
    assert physical(replay)[-1] == 1


def test_units_stay_shares_while_the_device_plugin_restarts_and_once_discovery_knows_of_them() -> None:
    replay = Replay()
    replay.see(node(50, counted(1)), POD, at=2)
    replay.see(node(0, counted(1)), at=10)
    replay.see(node(50, counted(1)), at=12)
    replay.see(node(50, counted(1, 50)), at=20)

    assert weights(replay) == [20_000]
    assert set(physical(replay)) == {1}
    assert conflicts(replay) == {}


def test_a_weight_that_is_configured_or_written_in_an_annotation_is_not_corrected() -> None:
    fixed = Rules(resources=(ResourceRule(pattern=GPU, weight=100_000),))
    replay = Replay(rules=fixed)
    replay.see(node(50, counted(1)), POD, at=2)
    hami = Replay()
    registered = {"hami.io/node-nvidia-register": "GPU-a,10,16384,100,T4,0,true:"}
    hami.see(replace_form(node(10, counted(1)), annotations=registered), POD, at=2)

    assert (weights(replay), conflicts(replay)) == ([100_000], {})
    assert (weights(hami), conflicts(hami)) == ([10**6], {})


def test_several_resources_fit_on_the_gpus_together() -> None:
    capacity = {GPU: 20, "nvidia.com/mig-1g.10gb": 28}
    replay = Replay()
    replay.see(NodeForm(labels=counted(3, 10), capacity=capacity), at=2)

    [facts] = [facts for _, facts in replay.fleet.nodes.accounts["uid-n1"].record.facts]
    assert (facts.physical, facts.conflict) == (3 * 10**6, LabelConflict.MORE_UNITS)
    assert facts.covered <= facts.physical


def test_a_cloud_label_that_comes_late_counts_since_the_creation_of_the_node() -> None:
    clients = {"cloud.google.com/gke-max-shared-clients-per-gpu": "8"}
    replay = Replay()
    replay.see(node(8, {}), POD, at=2)
    replay.see(node(8, clients), at=20)

    assert weights(replay) == [125_000]
