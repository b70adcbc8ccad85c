"""The workload that Kueue admits in place of one that it preempts: the preemptor of that one's pods."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gputally.accounting.totals.total import Total
from gputally.frameworks.kueue import KueueWorkload
from gputally.model.disruptions import CountedPreemption
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from gputally.model.units import GPU
from tests.core.kueue import PYTORCH, condition, evicted, kueue_workload, preempted_for, unreserved
from tests.core.manifests import Json, NodeForm, PodForm
from tests.core.replay import Replay
from tests.unit.accounting.test_preemptions import counted

if TYPE_CHECKING:
    from collections.abc import Callable

START, EVICTED, DELETED, END, LATER, OVERDUE = 100, 999, 1000, 1030, 1040, 1200
WORKLOADS = Kind.KUEUE_WORKLOADS
HIGH_UID = "22810b85-1c7d-45d0-8188-c148f574cb21"
HIGH_OWNER = PYTORCH | {"name": "serve", "uid": "uid-serve"}
VICTIM = PodForm(name="a", tier="low", created=90, node="n1", scheduled=95, started=START, gpus=2, owners=(PYTORCH,))
WAITING = kueue_workload(unreserved(900), name="wl-high", uid=HIGH_UID, owner=HIGH_OWNER, tier="high")
ADMITTED = kueue_workload(
    condition("Admitted", "True", at=END), name="wl-high", uid=HIGH_UID, owner=HIGH_OWNER, tier="high"
)
PREEMPTED = kueue_workload(evicted(EVICTED, message=preempted_for(HIGH_UID)))
TAKER = PodForm(
    name="b", tier="high", created=END, node="n1", scheduled=END + 2, started=END + 3, gpus=2, owners=(HIGH_OWNER,)
)
HIGH = {("low", "high"): 1}
UNKNOWN = {("low", "unknown"): 1}


def running() -> Replay:
    replay = Replay(rules=Rules(watched=(WORKLOADS,)))
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    replay.see(VICTIM, at=START)
    return replay


def says(replay: Replay, *workloads: KueueWorkload, at: float) -> None:
    for each in workloads:
        replay.see_object(WORKLOADS, each, at=at)


def stop(replay: Replay) -> None:
    replay.see(replace(VICTIM, deleted=DELETED, version=2), at=DELETED)
    last = replace(VICTIM, deleted=DELETED, phase="Failed", finished=END, exit_code=143, version=3)
    replay.see(last, at=END)
    replay.lose(last, at=END + 1)


def again(replay: Replay) -> None:
    replay.flush()
    replay.restart()


def found(replay: Replay) -> CountedPreemption:
    [uid] = replay.fleet.disrupted.preemptions.known
    return replay.preemption(uid)


@pytest.mark.parametrize("restarts", [False, True])
def test_the_workload_that_the_message_names_is_the_preemptor(restarts: bool) -> None:  # noqa: FBT001 - a parameter
    replay = running()
    steps: tuple[Callable[[], None], ...] = (
        lambda: says(replay, WAITING, at=901),
        lambda: says(replay, PREEMPTED, at=EVICTED),
        lambda: stop(replay),
        lambda: says(replay, ADMITTED, at=END + 1),
    )
    for step in steps:
        step()
        if restarts:
            again(replay)

    assert counted(replay, LATER) == HIGH
    by = found(replay).preemptor
    assert by
    assert (by.uid, by.namespace, by.kind, by.name) == (HIGH_UID, "ml", "PyTorchJob", "serve")
    assert (by.tier, by.tenant, by.quantity, by.is_inferred) == ("high", "ml", 8 * GPU, False)
    assert found(replay).queue_rule == "InClusterQueue"
    assert replay.true(Total.PREEMPTED, LATER) == {("low", "high"): 2 * GPU}
    assert replay.true(Total.TENANT_PREEMPTIONS, LATER) == {("low", "ml"): 1}
    assert replay.true(Total.FORBIDDEN, LATER) == {}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("first", [PREEMPTED, ADMITTED])
def test_a_list_tells_of_victim_and_preemptor_in_any_order_and_maybe_late(
    first: KueueWorkload,
    restarts: bool,  # noqa: FBT001 - a parameter
) -> None:
    replay = running()
    stop(replay)
    second = PREEMPTED if first is ADMITTED else ADMITTED
    says(replay, first, at=END + 2)
    if restarts:
        again(replay)
    says(replay, second, at=END + 3)

    assert counted(replay, LATER) == HIGH


def test_an_unknown_preemptor_has_its_uid_alone_until_its_workload_is_observed() -> None:
    replay = running()
    says(replay, PREEMPTED, at=EVICTED)
    stop(replay)
    assert counted(replay, LATER) == {}
    assert counted(replay, OVERDUE) == UNKNOWN
    by = found(replay).preemptor
    assert by
    assert (by.uid, by.tier, by.kind, by.name) == (HIGH_UID, "", "", "")

    again(replay)
    says(replay, ADMITTED, at=OVERDUE + 1)

    assert counted(replay, OVERDUE + 10) == HIGH
    assert replay.true(Total.TENANT_PREEMPTIONS, OVERDUE + 10) == {("low", "ml"): 1}


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Preempted",
        preempted_for("uid-wl"),
        preempted_for("UNKNOWN"),
        preempted_for(HIGH_UID.upper()),
        preempted_for(HIGH_UID + "0" * 1000),
        "Previously: " + preempted_for(HIGH_UID),
        " " * 2000 + preempted_for(HIGH_UID),
        f"Preempted to accommodate a workload (UID: {HIGH_UID}\n) due to x",
    ],
)
def test_a_message_of_another_form_names_nobody(message: str) -> None:
    replay = running()
    says(replay, WAITING, kueue_workload(evicted(EVICTED, message=message)), at=EVICTED)
    stop(replay)

    assert counted(replay, OVERDUE) == UNKNOWN
    assert found(replay).preemptor is None


def test_a_workload_does_not_preempt_itself() -> None:
    replay = running()
    own = kueue_workload(evicted(EVICTED, message=preempted_for(HIGH_UID)), uid=HIGH_UID)
    says(replay, own, at=EVICTED)
    stop(replay)

    assert counted(replay, OVERDUE) == UNKNOWN


@pytest.mark.parametrize(
    ("why", "rule"),
    [
        ("prioritization in the ClusterQueue", "InClusterQueue"),
        ("reclamation within the cohort", "InCohortReclamation"),
        ("Fair Sharing within the cohort", "InCohortFairSharing"),
        ("reclamation within the cohort while borrowing", "InCohortReclaimWhileBorrowing"),
        ("UNKNOWN", ""),
    ],
)
def test_the_rule_is_that_of_the_message(why: str, rule: str) -> None:
    replay = running()
    says(replay, WAITING, kueue_workload(evicted(EVICTED, message=preempted_for(HIGH_UID, why=why))), at=EVICTED)
    stop(replay)

    assert counted(replay, LATER) == HIGH
    assert found(replay).queue_rule == rule


def test_an_eviction_for_another_reason_has_no_preemptor_whatever_its_message() -> None:
    replay = running()
    other = evicted(EVICTED, reason="PodsReadyTimeout", message=preempted_for(HIGH_UID))
    says(replay, WAITING, kueue_workload(other), at=EVICTED)
    stop(replay)

    assert counted(replay, OVERDUE) == {}


def test_a_later_preemption_of_the_workload_does_not_change_who_preempted_earlier_pods() -> None:
    replay, other_uid = running(), HIGH_UID.replace("2", "3")
    other = kueue_workload(unreserved(900), name="wl-top", uid=other_uid, owner=HIGH_OWNER, tier="top")
    says(replay, WAITING, other, PREEMPTED, at=EVICTED)
    stop(replay)
    says(replay, kueue_workload(evicted(END + 100, message=preempted_for(other_uid))), at=END + 100)

    assert counted(replay, END + 200) == HIGH


def test_pods_that_kueue_manages_itself_say_for_whom() -> None:
    mark: Json = {"mark_type": "TerminationTarget", "mark": "WorkloadEvictedDueToPreempted"}
    form = replace(VICTIM, owners=(), marked=DELETED, mark_message=preempted_for(HIGH_UID), **mark)
    replay = running()
    says(replay, WAITING, at=901)
    replay.see(replace(form, deleted=DELETED, version=2), at=DELETED)
    assert counted(replay, DELETED + 5) == HIGH
    snapshot = replay.scrape(DELETED + 5)
    assert {tiers: each.pods for tiers, each in snapshot.preempting.items()} == HIGH

    replay.lose(replace(form, deleted=DELETED, phase="Failed", finished=END, exit_code=143, version=3), at=END + 1)

    assert counted(replay, LATER) == HIGH
    assert replay.scrape(LATER).preempting == {}


def test_a_pod_that_had_ended_before_it_was_marked_was_not_preempted() -> None:
    mark: Json = {"mark_type": "TerminationTarget", "mark": "WorkloadEvictedDueToPreempted"}
    form = replace(VICTIM, owners=(), marked=DELETED, mark_message=preempted_for(HIGH_UID), **mark)
    replay = running()
    says(replay, WAITING, at=901)
    replay.see(replace(form, deleted=DELETED, version=2), at=DELETED)
    assert counted(replay, DELETED + 5) == HIGH
    assert replay.fleet.drain().victims == {}

    ended = replace(form, deleted=DELETED, phase="Succeeded", finished=DELETED - 60, version=3)
    replay.see(ended, at=END)

    assert counted(replay, LATER) == {}
    assert replay.true(Total.PREEMPTED, LATER) == replay.true(Total.TENANT_PREEMPTIONS, LATER) == {}


@pytest.mark.parametrize("order", ["before", "after", "restart"])
def test_pods_of_the_preemptor_on_the_node_are_those_that_took_the_gpus(order: str) -> None:
    replay = running()
    says(replay, WAITING, at=901)
    elsewhere = replace(TAKER, name="c", node="n2")
    stranger = replace(TAKER, name="d", owners=(PYTORCH | {"name": "other", "uid": "uid-other"},))
    if order == "before":
        stop(replay)
        replay.see(TAKER, elsewhere, stranger, at=END + 5)
        says(replay, PREEMPTED, at=END + 6)
    else:
        says(replay, PREEMPTED, at=EVICTED)
        stop(replay)
        if order == "restart":
            again(replay)
        replay.see(TAKER, elsewhere, stranger, at=END + 5)

    assert counted(replay, LATER + 5) == HIGH
    again(replay)
    assert found(replay).preemptor_pods == ("uid-b",)
    assert replay.fleet.disrupted.preemptions.is_preemptor("uid-a", "uid-b")
    assert not replay.fleet.disrupted.preemptions.is_preemptor("uid-a", "uid-d")


def test_without_the_watch_a_preemption_by_a_queue_has_no_preemptor() -> None:
    mark: Json = {"mark_type": "TerminationTarget", "mark": "WorkloadEvictedDueToPreempted"}
    replay = Replay()
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    replay.see(VICTIM, at=START)
    form = replace(VICTIM, owners=(), marked=DELETED, mark_message=preempted_for(HIGH_UID), **mark)
    replay.see(replace(form, deleted=DELETED, version=2), at=DELETED)

    assert counted(replay, OVERDUE) == {}
