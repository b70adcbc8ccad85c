"""Bound pods that ask for GPUs which are not accounted are counted by reason, until they end."""

from dataclasses import replace
from typing import Any

import pytest

from gputally.accounting.facts.release import ACCEPTANCE_US
from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.watched.unaccounted_pods import UnaccountedDays, UnaccountedPods
from gputally.kube.watched import is_watched
from gputally.model.kube.kinds import Kind, Limit
from gputally.model.rules import ResourceRule, Rules
from gputally.model.unaccounted import Unaccounted, UnaccountedDay
from gputally.model.units import US_PER_DAY, US_PER_SECOND
from tests.core.manifests import NodeForm, PodForm, as_pod, us
from tests.core.replay import Replay

NODE = NodeForm(name="n1", gpus=2)
BARE = NodeForm(name="n1", gpus=0)
CLASS = "deviceclass.resource.kubernetes.io/gpu"
SLICE = "nvidia.com/mig-1g.5gb"
CHIP = "nvidia.com/GA102GL_A10"


def pod(name: str = "pod-1", **form: Any) -> PodForm:  # noqa: ANN401 - any field of a form
    fields: dict[str, Any] = {"node": "n1", "created": 1, "scheduled": 2, "started": 3}
    return PodForm(name=name, **fields | form)


def told(*pods: PodForm, node: NodeForm = NODE, rules: Rules | None = None) -> Replay:
    replay = Replay(rules=rules or Rules())
    replay.see(node, at=1)
    for each in pods:
        replay.see(each, at=5)
    return replay


def counted(replay: Replay) -> dict[str, int]:
    replay.fleet.reconcile()
    return {reason.value: pods for reason, pods in replay.fleet.unaccounted.read().pods.items() if pods}


def gpus(replay: Replay) -> dict[str, float]:
    quantities = publish(replay.fleet, now_us=us(10), ledger={}).unaccounted.quantities
    return {reason.value: quantity / 10**6 for reason, quantity in quantities.items() if quantity}


@pytest.mark.parametrize(
    ("form", "node", "reasons"),
    [
        (pod(), NODE, {}),
        (pod(gpus=0), NODE, {}),
        (pod(gpus=2), BARE, {"not_offered": 1}),
        (pod(gpus=4), NODE, {"not_offered": 1}),  # its node has ever offered 2
        (pod(gpus=2, by_claim=("nvidia.com/gpu",)), BARE, {"dra_extended_resource": 1}),
        (pod(gpus=2, by_claim=("nvidia.com/gpu",)), NODE, {}),  # accounted, as its node had offered them before
        (pod(gpus=1, resource=CLASS), BARE, {"dra_extended_resource": 1}),
        (pod(gpus=1, resource=CLASS, by_claim=(CLASS,)), BARE, {"dra_extended_resource": 1}),
        (pod(gpus=1, resource="example.com/gpu", by_claim=("example.com/gpu",)), BARE, {"dra_extended_resource": 1}),
        (pod(gpus=1, resource="example.com/nic", by_claim=("example.com/nic",)), BARE, {}),
        (pod(gpus=0, claims=("gpu",)), NODE, {"claim": 1}),
        (pod(claims=("nic",)), NODE, {"claim": 1}),  # beside an accounted GPU
        (pod(gpus=1, resource=CHIP), BARE, {"unknown_device": 1}),
        (pod(more={CHIP: 1}), NODE, {"unknown_device": 1}),
        (pod(gpus=0, more={CHIP: 0}), NODE, {}),
        (pod(gpus=1, resource="nvidia.com/rdma_shared_device"), BARE, {}),
        (pod(gpus=1, claims=("gpu",), more={CHIP: 1}), BARE, {"not_offered": 1, "claim": 1, "unknown_device": 1}),
        (pod(gpus=1, by_claim=("nvidia.com/gpu",), more={"amd.com/gpu": 1}), BARE,
         {"dra_extended_resource": 1, "not_offered": 1}),
    ],
)  # fmt: skip
def test_a_bound_pod_is_counted_once_for_each_reason(form: PodForm, node: NodeForm, reasons: dict[str, int]) -> None:
    assert counted(told(form, node=node)) == reasons


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "Succeeded", "finished": 4},
        {"phase": "Failed", "lost": True},
        {"phase": "Failed", "reason": "UnexpectedAdmissionError", "started": None, "accepted": 3},
    ],
)
def test_pods_that_have_ended_are_not_counted(change: dict[str, Any]) -> None:
    forms = (pod("a", gpus=2), pod("b", gpus=0, claims=("gpu",)), pod("c", gpus=1, resource=CHIP))
    replay = told(*forms, node=BARE)
    assert counted(replay) == {"not_offered": 1, "claim": 1, "unknown_device": 1}

    replay.see(*(replace(each, **change) for each in forms), at=6)

    assert counted(replay) == {}


def test_pods_that_are_not_bound_are_not_counted() -> None:
    waiting: dict[str, Any] = {"node": "", "scheduled": None, "started": None}
    forms = (
        pod("a", gpus=2, **waiting),
        pod("b", gpus=0, claims=("gpu",), **waiting),
        pod("c", more={CHIP: 1}, **waiting),
    )

    assert counted(told(*forms, node=BARE)) == {}


def test_a_pod_that_no_kubelet_accepts_counts_as_long_as_it_would_hold_gpus() -> None:
    replay = told(pod(gpus=4, started=None), node=BARE)
    assert counted(replay) == {"not_offered": 1}

    replay.fleet.advance(us(2) + ACCEPTANCE_US)

    assert counted(replay) == {}


def test_the_gpus_are_what_the_pod_requests_beyond_what_is_accounted() -> None:
    by_claim = pod("b", gpus=3, by_claim=("nvidia.com/gpu",), node="n2")
    replay = told(pod("a", gpus=5), by_claim)
    replay.see(NodeForm(name="n2", gpus=0), at=6)

    assert gpus(replay) == {"not_offered": 3, "dra_extended_resource": 3}


def test_a_pod_is_accounted_once_its_node_offers_its_gpus() -> None:
    replay = told(pod(gpus=2), node=BARE)
    replay.see(NODE, at=7)

    assert counted(replay) == {}


def test_a_node_that_offers_none_for_a_while_changes_nothing() -> None:
    replay = told(pod(gpus=2))
    replay.see(BARE, at=7)

    assert counted(replay) == {}


def test_a_share_that_is_rounded_to_nothing_is_counted() -> None:
    slices = NodeForm(name="n1", capacity={SLICE: 7}, labels={f"{SLICE}.replicas": "999999"})
    replay = told(pod(gpus=1, resource=SLICE), node=slices)

    assert counted(replay) == {"no_share": 1}


def test_a_configured_rule_weighs_a_device() -> None:
    rules = Rules(resources=(ResourceRule(pattern="nvidia.com/GA102*"),))
    node = NodeForm(name="n1", capacity={CHIP: 2})

    assert counted(told(pod(gpus=1, resource=CHIP), node=node, rules=rules)) == {}


def test_deleted_and_unlisted_pods_are_counted_no_more() -> None:
    claiming = [pod(name, gpus=0, claims=("gpu",)) for name in ("a", "b", "c")]
    replay = told(*claiming, pod("d", gpus=4), node=BARE)
    replay.lose(claiming[0], at=6)
    replay.relist(Kind.PODS, claiming[1], at=7, since=6)

    assert counted(replay) == {"claim": 1}
    assert replay.fleet.unaccounted.entries.keys() == {"uid-b"}


def test_the_next_process_knows_them() -> None:
    replay = told(pod("a", gpus=0, claims=("gpu",)), pod("b", gpus=4), pod("c", gpus=1, resource=CHIP))
    before = counted(replay)

    replay.flush()
    replay.restart(at=9)

    assert counted(replay) == before == {"claim": 1, "not_offered": 1, "unknown_device": 1}


def test_each_reason_is_exported_from_the_start() -> None:
    found = publish(Replay().fleet, now_us=us(10), ledger={}).unaccounted

    assert found.pods == dict.fromkeys(Unaccounted, 0)
    assert found.quantities == {Unaccounted.NOT_OFFERED: 0, Unaccounted.DRA_EXTENDED_RESOURCE: 0}


def test_the_most_pods_of_a_day_are_kept_also_of_short_ones() -> None:
    part = UnaccountedPods(Rules())
    days = UnaccountedDays(part)
    for name in ("a", "b"):
        part.seen(as_pod(pod(name, gpus=0, claims=("gpu",))), at_us=us(5))
    part.gone("uid-a", at_us=us(6))
    days.advance(us(7))
    part.gone("uid-b", at_us=us(8))
    days.advance(us(9))
    midnight = us(0) + 86_400 * US_PER_SECOND
    days.advance(midnight)

    kept = days.drain()
    day = next(iter(kept)).split()[0]
    assert kept == {f"{day} claim": UnaccountedDay(day=day, reason=Unaccounted.CLAIM, pods=2, quantity=0)}


def test_beyond_the_most_days_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnaccountedDays, "document_limit", Limit(None, 3))
    part = UnaccountedPods(Rules())
    days = UnaccountedDays(part)
    part.seen(as_pod(pod("a", gpus=0, claims=("gpu",))), at_us=us(5))
    for number in range(5):
        days.advance(us(7) + number * US_PER_DAY)
        days.drain()
    latest = sorted(days.known)
    part.seen(as_pod(pod("b", gpus=0, claims=("gpu",))), at_us=us(5))
    days.advance(us(7) + 5 * US_PER_DAY)

    assert len(latest) == 3
    assert sorted(days.known)[:2] == latest[1:]
    assert days.drain()[latest[0]] is None


def test_an_example_of_a_reason_has_its_name() -> None:
    replay = told(pod("a", gpus=0, claims=("gpu",)), pod("b", gpus=4))
    replay.fleet.reconcile()
    part, records = replay.fleet.unaccounted, replay.fleet.pods.records

    assert part.example(Unaccounted.CLAIM, records) == "ml/a"
    assert part.example(Unaccounted.NOT_OFFERED, records) == "ml/b"
    assert part.example(Unaccounted.NO_SHARE, records) == ""


@pytest.mark.parametrize("change", [{}, {"phase": "Succeeded"}])
@pytest.mark.parametrize("form", [pod(gpus=0, claims=("gpu",)), pod(resource=CHIP), pod(resource=CLASS), pod()])
def test_such_pods_are_watched(form: PodForm, change: dict[str, Any]) -> None:
    assert is_watched(as_pod(replace(form, **change)), Rules())


@pytest.mark.parametrize("form", [pod(gpus=0), pod(resource="nvidia.com/hostdev"), pod(resource="cpu")])
def test_no_other_pods_are_watched(form: PodForm) -> None:
    assert not is_watched(as_pod(form), Rules())
