import re
from typing import Any

import pytest

from gputally_sim.control.fit import NodeState, PodNeeds, needs_of
from gputally_sim.control.preemption import Budget, Candidate, candidate_on, choose
from gputally_sim.instants import rfc3339
from gputally_sim.node.pods import GPU
from gputally_sim.scenarios import workloads
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import (
    NAMESPACE,
    START_US,
    add,
    condition,
    exists,
    node_of,
    pod,
    read,
    recorded,
    seconds,
    small_world,
)


def contested(**victim: int) -> Simulation:
    """One GPU, held by `victim` of tier low for 100 s, then wanted by `preemptor` of tier high."""
    world = small_world(nodes=1)
    add(world, pod("victim", "low", **victim))
    world.run_for(seconds(100))
    add(world, pod("preemptor", "high"))
    return world


def test_the_victim_gets_its_condition_then_its_deletion_then_its_event() -> None:
    world = contested(grace_seconds=50, stops_after_us=seconds(10))
    changes = recorded(world, "pods", "events")

    world.run_for(seconds(1))

    told = [(change.plural, change.verb, change.key[1]) for change in changes[:3]]
    assert told[:2] == [("pods", "MODIFIED", "victim"), ("pods", "MODIFIED", "victim")]
    assert told[2][:2] == ("events", "ADDED")
    marked, deleted = changes[0].now.doc, changes[1].now.doc
    assert condition(marked, "DisruptionTarget") == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(START_US + seconds(100)),
    }
    assert "deletionTimestamp" not in marked["metadata"]
    assert deleted["metadata"]["deletionTimestamp"] == rfc3339(START_US + seconds(100 + 50))
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 50


def test_the_event_is_about_the_victim_and_names_the_preemptor() -> None:
    world = contested()
    world.run_for(seconds(1))

    (event,) = world.store.docs("events")

    preemptor = read(world, "preemptor")["metadata"]
    assert event["metadata"]["namespace"] == NAMESPACE
    assert re.fullmatch(r"victim\.[0-9a-f]{16}", event["metadata"]["name"])
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Preempted", "Preempting")
    assert event["message"] == f"Preempted by pod {preemptor['uid']} on node n0"
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Pod", "victim")
    assert (event["related"]["name"], event["related"]["uid"]) == ("preemptor", preemptor["uid"])
    assert event["eventTime"] == "2026-03-02T06:01:40.010000Z"
    assert event["reportingComponent"] == "default-scheduler"


def test_the_preemptor_is_nominated_and_waits_until_the_victim_is_gone() -> None:
    world = contested(stops_after_us=seconds(10))

    world.run_for(seconds(9))
    waiting = read(world, "preemptor")
    assert waiting["status"]["nominatedNodeName"] == "n0"
    assert condition(waiting, "PodScheduled")["status"] == "False"
    assert exists(world, "victim")

    world.run_for(seconds(2))
    bound = read(world, "preemptor")
    assert bound["spec"]["nodeName"] == "n0"
    assert "nominatedNodeName" not in bound["status"]
    assert not exists(world, "victim")


def test_while_a_victim_stops_no_second_one_is_chosen() -> None:
    world = small_world(nodes=2)
    add(world, pod("one", "low", stops_after_us=seconds(20)), pod("two", "low", stops_after_us=seconds(20)))
    world.run_for(seconds(1))
    add(world, pod("preemptor", "high"))
    world.run_for(seconds(1))

    world.registry.patch("nodes", ("", "n0"), {"metadata": {"labels": {"touched": "yes"}}})
    world.run_for(seconds(1))

    assert len(world.store.docs("events")) == 1
    assert (
        "not eligible due to a terminating pod on the nominated node."
        in (condition(read(world, "preemptor"), "PodScheduled")["message"])
    )


def test_two_preemptors_do_not_count_on_the_same_victim() -> None:
    world = small_world(nodes=2)
    add(world, pod("one", "low", stops_after_us=seconds(20)), pod("two", "low", stops_after_us=seconds(20)))
    world.run_for(seconds(1))

    add(world, pod("first", "high"), pod("second", "high"))
    world.run_for(seconds(1))

    nominated = {read(world, name)["status"]["nominatedNodeName"] for name in ("first", "second")}
    assert nominated == {"n0", "n1"}


def test_room_made_for_a_preemptor_is_not_taken_by_a_lesser_pod() -> None:
    world = contested(stops_after_us=seconds(10))
    world.run_for(seconds(5))

    add(world, pod("sneaky", "medium"))
    world.run_for(seconds(60))

    assert node_of(world, "preemptor") == "n0"
    assert not node_of(world, "sneaky")


def test_a_class_that_never_preempts_waits() -> None:
    world = small_world(nodes=1)
    add(world, pod("holder", "low"))
    world.run_for(seconds(1))
    add(world, pod("modest", "modest"))

    world.run_for(seconds(1))

    assert condition(read(world, "modest"), "PodScheduled")["message"] == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert "deletionTimestamp" not in read(world, "holder")["metadata"]


@pytest.mark.parametrize("tier", ["high", "medium"])
def test_equal_or_higher_priority_is_never_a_victim(tier: str) -> None:
    world = small_world(nodes=1)
    add(world, pod("holder", tier))
    world.run_for(seconds(1))
    add(world, pod("wanting", "medium"))

    world.run_for(seconds(1))

    assert condition(read(world, "wanting"), "PodScheduled")["message"].endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_lost_events_leave_condition_and_deletion() -> None:
    world = contested(stops_after_us=seconds(10))
    world.faults.lose_events = True

    world.run_for(seconds(1))

    assert world.store.docs("events") == []
    assert condition(read(world, "victim"), "DisruptionTarget")["status"] == "True"


def test_an_event_is_forgotten_after_an_hour() -> None:
    world = contested()
    world.run_for(seconds(1))
    assert world.store.docs("events")

    world.run_for(seconds(3600))

    assert world.store.docs("events") == []


def needs(
    name: str, priority: int, *, gpus: int = 1, started: str = "2026-03-02T06:00:00Z", **spec: object
) -> PodNeeds:
    limits = {"resources": {"requests": {GPU: str(gpus)}}}
    doc = {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "creationTimestamp": started,
            "labels": {"app": name},
        },
        "spec": {"priority": priority, "containers": [{"name": "c", **limits}], **spec},
        "status": {"phase": "Running", "startTime": started},
    }
    return needs_of(doc)


def assignment(*pods: PodNeeds, name: str = "n0", gpus: int = 4) -> NodeState:
    ready = {"type": "Ready", "status": "True"}
    doc: dict[str, Any] = {
        "metadata": {"name": name},
        "status": {"allocatable": {GPU: str(gpus)}, "conditions": [ready]},
    }
    return NodeState(doc, {pod.uid: pod for pod in pods})


def victims(found: object) -> list[str]:
    assert isinstance(found, Candidate)
    return [victim.uid for victim in found.victims]


def test_only_as_many_go_as_must_and_the_most_important_stay() -> None:
    older = needs("older", 100, started="2026-03-02T05:00:00Z")
    full = assignment(needs("medium", 500), needs("young", 100), older, needs("low", 1))

    assert victims(candidate_on(needs("p", 1000, gpus=2), full, [])) == ["young", "low"]


def test_a_pod_under_a_budget_that_allows_nothing_goes_last() -> None:
    full = assignment(needs("guarded", 1), needs("bare", 500), gpus=2)
    budget = Budget(NAMESPACE, {"app": "guarded"}, allowed=0)

    found = candidate_on(needs("p", 1000), full, [budget])

    assert victims(found) == ["bare"]
    assert isinstance(found, Candidate)
    assert found.violations == 0


def test_a_budget_that_must_be_violated_is_counted() -> None:
    found = candidate_on(
        needs("p", 1000), assignment(needs("a", 1), gpus=1), [Budget(NAMESPACE, {"app": "a"}, allowed=0)]
    )

    assert isinstance(found, Candidate)
    assert found.violations == 1


def candidate(name: str, *pods: PodNeeds, violations: int = 0) -> Candidate:
    return Candidate(assignment(*pods, name=name), pods, violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (candidate("x", needs("a", 900)), candidate("y", needs("b", 1), violations=1)),
        (candidate("x", needs("a", 100), needs("b", 100)), candidate("y", needs("c", 500))),
        (candidate("x", needs("a", 500), needs("b", 1)), candidate("y", needs("c", 500), needs("d", 100))),
        (candidate("x", needs("a", -5)), candidate("y", needs("b", -5), needs("c", -5))),
        (
            candidate("x", needs("a", 1, started="2026-03-02T07:00:00Z")),
            candidate("y", needs("b", 1, started="2026-03-02T06:00:00Z")),
        ),
    ],
    ids=["violations", "highest priority", "sum of priorities", "number", "latest start"],
)
def test_the_node_whose_victims_are_missed_least_is_chosen(better: Candidate, worse: Candidate) -> None:
    assert choose([worse, better]) is better
    assert choose([better, worse]) is better


def test_the_budget_of_a_deployment_spares_its_pods_while_others_can_go() -> None:
    world = small_world(nodes=2)
    guarded = workloads.Work(app="guarded", kind="test", tier="low")
    world.registry.create("poddisruptionbudgets", workloads.budget("guarded", 1), NAMESPACE)
    world.registry.create("deployments", workloads.deployment(guarded, 1), NAMESPACE)
    world.run_for(seconds(1))
    add(world, pod("bare", "medium"))
    world.run_for(seconds(1))

    add(world, pod("preemptor", "high"))
    world.run_for(seconds(10))

    assert not exists(world, "bare")
    assert node_of(world, "preemptor")
