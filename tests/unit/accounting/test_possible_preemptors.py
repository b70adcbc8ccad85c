"""The Workloads of Kueue that are kept since it may preempt others for them."""

from dataclasses import replace

import pytest

from gputally.accounting.disruptions.kueue_preemptors import QueuePreemptors
from gputally.model.kube.kinds import Limit
from gputally.model.rules import Rules, TierRule
from tests.core.kueue import evicted, kueue_workload, preempted_for, unreserved
from tests.core.manifests import Json, NodeForm
from tests.core.replay import Replay
from tests.unit.accounting.test_preemptions import counted
from tests.unit.accounting.test_queue_preemptors import (
    ADMITTED,
    END,
    EVICTED,
    HIGH,
    HIGH_OWNER,
    HIGH_UID,
    LATER,
    OVERDUE,
    PREEMPTED,
    TAKER,
    UNKNOWN,
    VICTIM,
    WAITING,
    WORKLOADS,
    found,
    running,
    says,
    stop,
)


def test_a_preemptor_that_is_deleted_meanwhile_has_its_tier() -> None:
    replay = running()
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    replay.lose_object(WORKLOADS, WAITING, at=EVICTED + 1)
    stop(replay)

    assert counted(replay, LATER) == HIGH


def test_a_preemptor_without_gpus_has_its_tier() -> None:
    replay = running()
    cpu = kueue_workload(
        unreserved(900), name="wl-high", uid=HIGH_UID, owner=HIGH_OWNER, tier="high", gpus={"worker": 0}
    )
    says(replay, cpu, PREEMPTED, at=EVICTED)
    stop(replay)

    assert counted(replay, LATER) == HIGH


def test_workloads_that_wait_no_longer_are_forgotten_after_an_hour() -> None:
    replay = running()
    says(replay, WAITING, at=901)
    says(replay, ADMITTED, at=END)
    known = replay.fleet.disrupted.preemptions._workloads.known
    replay.scrape(END + 3500)
    assert HIGH_UID in known

    replay.scrape(END + 3700)

    assert HIGH_UID not in known
    says(replay, ADMITTED, at=END + 4000)
    assert HIGH_UID not in known, "an old one is listed"


def test_a_namespace_with_many_workloads_displaces_only_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueuePreemptors, "document_limit", Limit(None, 3))
    replay = running()
    says(replay, *(kueue_workload(unreserved(900), name=f"w{n}", uid=f"uid-{n}") for n in range(4)), at=901)

    assert list(replay.fleet.disrupted.preemptions._workloads.known) == ["uid-1", "uid-2", "uid-3"]


POD_CLASS: Json = {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}}
OLD_POD_CLASS: Json = {"priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass"}
OWN_CLASS: Json = {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}
OLD_OWN_CLASS: Json = {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}
BY_LABEL = TierRule(tier="{value}", label="kueue.x-k8s.io/priority-class")
UNREAD = Rules(watched=(WORKLOADS,))


@pytest.mark.parametrize(
    ("spec", "rules", "tier"),
    [
        (POD_CLASS, UNREAD, "high"),
        (OLD_POD_CLASS, UNREAD, "high"),
        (POD_CLASS | {"tier": "template"}, UNREAD, "template"),
        (OWN_CLASS, UNREAD, "none"),
        (OWN_CLASS, Rules(watched=(WORKLOADS,), tiers=(BY_LABEL,)), "high"),
        (OLD_OWN_CLASS, Rules(watched=(WORKLOADS,), tiers=(BY_LABEL,)), "high"),
    ],
)
def test_a_workload_whose_pods_name_no_class_has_the_tier_of_its_own(spec: Json, rules: Rules, tier: str) -> None:
    replay = Replay(rules=rules)
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    replay.see(VICTIM, at=100)
    own: Json = {"tier": ""} | spec
    preemptor = kueue_workload(unreserved(900), name="wl-high", uid=HIGH_UID, owner=HIGH_OWNER, **own)
    says(replay, preemptor, PREEMPTED, at=EVICTED)
    stop(replay)

    [(_, by)] = counted(replay, LATER)
    assert by == tier


@pytest.mark.parametrize(("stated", "stored"), [(200, 200), (None, 0), (2**40, 2**31 - 1), (-(2**40), -(2**31))])
def test_the_priorities_in_the_queue_are_those_of_both_workloads(stated: int | None, stored: int) -> None:
    replay = running()
    high = kueue_workload(unreserved(900), name="wl-high", uid=HIGH_UID, owner=HIGH_OWNER, tier="high", priority=stated)
    says(replay, high, kueue_workload(evicted(EVICTED, message=preempted_for(HIGH_UID)), priority=7), at=EVICTED)
    stop(replay)
    says(replay, kueue_workload(evicted(END + 9, message=preempted_for(HIGH_UID)), priority=8), at=END + 9)
    replay.see(replace(VICTIM, name="again", created=END + 10, scheduled=END + 11, started=END + 12), at=END + 12)

    assert counted(replay, LATER) == HIGH
    preemption = found(replay)
    assert preemption.preemptor
    assert (preemption.preemptor.priority, preemption.victim_priority, preemption.is_permitted) == (stored, 7, None)


JOB_UID = "a9a30077-4b0c-4b1f-8f2f-5f3f0ea6e3c1"


@pytest.mark.parametrize("job_uid", [JOB_UID, "UNKNOWN", HIGH_UID])
def test_a_preemptor_whose_workload_is_not_known_is_the_job_that_controls_pods_on_the_node(job_uid: str) -> None:
    replay = running()
    message = preempted_for(HIGH_UID, job_uid=job_uid)
    says(replay, kueue_workload(evicted(EVICTED, message=message)), at=EVICTED)
    stop(replay)
    assert counted(replay, OVERDUE) == UNKNOWN

    replay.see(replace(TAKER, owners=(HIGH_OWNER | {"uid": JOB_UID},)), at=OVERDUE + 1)

    is_known = job_uid == JOB_UID
    assert counted(replay, OVERDUE + 10) == (HIGH if is_known else UNKNOWN)
    by = found(replay).preemptor
    assert by
    known = by.uid, by.namespace, by.kind, by.name, by.tenant, by.quantity
    assert known == ((HIGH_UID, "ml", "PyTorchJob", "serve", "ml", None) if is_known else (HIGH_UID, "", "", "", "", 0))
    assert found(replay).preemptor_pods == (("uid-b",) if is_known else ())
