"""Reclaims of spot machines that only Events announce."""

from dataclasses import replace

import pytest

from gputally.accounting.disruptions.node_signals import SENDERS
from gputally.model.disruptions import Cause
from gputally.model.kube.kinds import Kind
from tests.core.manifests import Json, NodeForm, instant, us
from tests.core.replay import Replay
from tests.unit.accounting.test_disruptions import NODE, RUNNING, counted, ended, found, marked

KARPENTER: Json = {
    "metadata": {"name": "n1.17", "namespace": "default", "uid": "event"},
    "involvedObject": {"kind": "Node", "apiVersion": "v1", "name": "n1", "uid": "uid-n1"},
    "reason": "SpotInterrupted",
    "type": "Warning",
    "message": "Spot interruption warning was triggered",
    "source": {"component": "karpenter"},
    "reportingComponent": "karpenter",
    "firstTimestamp": instant(45),
    "lastTimestamp": instant(45),
    "count": 1,
}
HANDLER: Json = KARPENTER | {
    "involvedObject": {"kind": "Node", "namespace": "default", "name": "n1"},
    "reason": "SpotInterruption",
    "source": {"component": "aws-node-termination-handler", "host": "n1"},
    "reportingComponent": "",
}
"""On a node, the handler knows no UID; clients of before 1.27 write no reporting component."""
EVICTED = ended(marked("EvictionByEvictionAPI"), 55)
LOST = marked("DeletionByPodGC")


def observed(*events: Json, node: NodeForm = NODE) -> Replay:
    """A pod is evicted at 50 from a node that an Event named."""
    replay = Replay()
    replay.see(node, at=1)
    replay.see(RUNNING, at=20)
    for event in events:
        announce(replay, event, at=46)
    replay.see(EVICTED, at=60)
    return replay


def announce(replay: Replay, event: Json, *, at: float) -> None:
    kind = next((kind for kind, each in SENDERS.items() if each.reason == event["reason"]), Kind.KARPENTER_EVENTS)
    replay.see_event(event, at=at, kind=kind)


@pytest.mark.parametrize("event", [KARPENTER, HANDLER], ids=["karpenter", "handler"])
def test_an_event_on_the_node_before_the_end_of_its_pods_proves_a_reclaim(event: Json) -> None:
    replay = observed(event)

    assert counted(replay) == {"spot_reclaim": 1}
    assert (each := found(replay)) is not None
    assert each.is_certain


@pytest.mark.parametrize("event", [KARPENTER, HANDLER], ids=["karpenter", "handler"])
def test_a_late_event_corrects_the_cause_by_the_time_that_it_states(event: Json) -> None:
    replay = observed()
    assert counted(replay) == {"eviction": 1}
    replay.lose(NODE, at=70)

    announce(replay, event, at=90)

    assert counted(replay) == {"spot_reclaim": 1}


def test_an_event_after_the_end_of_a_pod_is_not_its_cause() -> None:
    replay = observed()

    announce(replay, KARPENTER | {"firstTimestamp": instant(56), "lastTimestamp": instant(56)}, at=60)

    assert counted(replay) == {"eviction": 1}


def test_a_repeated_event_counts_from_its_first_time_and_only_once() -> None:
    replay = observed(KARPENTER | {"lastTimestamp": instant(70), "count": 9})
    announce(replay, KARPENTER | {"lastTimestamp": instant(80), "count": 10}, at=81)
    replay.scrape(90)
    replay.restart(at=100)
    announce(replay, KARPENTER | {"lastTimestamp": instant(80), "count": 10}, at=101)

    assert counted(replay) == {"spot_reclaim": 1}
    assert replay.fleet.disrupted.disruptions.signals.known["uid-n1"].reclaim_us == us(45)


def test_the_newer_form_of_an_event_has_other_times() -> None:
    newer = {key: value for key, value in KARPENTER.items() if key not in ("firstTimestamp", "lastTimestamp")}
    replay = observed(newer | {"eventTime": "2026-07-01T00:00:45.123456Z"})

    assert counted(replay) == {"spot_reclaim": 1}


@pytest.mark.parametrize("event", [KARPENTER, HANDLER], ids=["karpenter", "handler"])
def test_an_event_of_an_earlier_node_of_that_name_says_nothing_about_this_one(event: Json) -> None:
    replay = Replay()
    earlier = replace(NODE, uid="earlier", created=0)
    replay.see(earlier, at=1)
    replay.lose(earlier, at=8)
    replay.see(replace(NODE, created=9), at=9)
    replay.see(RUNNING, at=20)
    old = {"firstTimestamp": instant(5), "lastTimestamp": instant(5)}
    named = event["involvedObject"]
    announce(replay, event | old | {"involvedObject": named | ({"uid": "earlier"} if "uid" in named else {})}, at=46)
    replay.see(EVICTED, at=60)

    assert counted(replay) == {"eviction": 1}
    assert "uid-n1" not in replay.fleet.disrupted.disruptions.signals.known


def test_a_repetition_since_an_earlier_node_of_that_name_counts_from_the_last_time() -> None:
    replay = observed(HANDLER | {"firstTimestamp": instant(0)}, node=replace(NODE, created=1))

    assert replay.fleet.disrupted.disruptions.signals.known["uid-n1"].reclaim_us == us(45)


@pytest.mark.parametrize(
    "forged",
    [
        {"metadata": {"name": "n1.17", "namespace": "ml", "uid": "event"}},
        {"involvedObject": {"kind": "Pod", "name": "n1", "uid": "uid-n1"}},
        {"involvedObject": {"kind": "NodeClaim", "name": "n1", "uid": "uid-claim"}},
        {"involvedObject": {"kind": "Node", "name": "n2", "uid": "uid-n1"}},
        {"involvedObject": {"kind": "Node", "name": "n1", "uid": "uid-n2"}},
        {"involvedObject": {"kind": "Node", "name": "n1", "uid": "unknown/n1"}},
        {"involvedObject": {"kind": "Node", "name": "", "uid": ""}},
        {"reportingComponent": "mallory"},
        {"reason": "SpotRebalanceRecommendation"},
        {"reason": "SpotInterruption"},
        {"firstTimestamp": "0001-01-01T00:00:00Z", "lastTimestamp": "0001-01-01T00:00:00Z"},
    ],
)
def test_an_event_that_no_sender_would_write_changes_nothing(forged: Json) -> None:
    replay = observed(KARPENTER | forged, node=replace(NODE, created=1))

    assert counted(replay) == {"eviction": 1}
    assert replay.fleet.disrupted.disruptions.signals.known == {}


def test_an_event_from_the_future_counts_from_now() -> None:
    replay = observed(KARPENTER | {"firstTimestamp": instant(5000), "lastTimestamp": instant(5000)})

    assert replay.fleet.disrupted.disruptions.signals.known["uid-n1"].reclaim_us == us(46)


def test_an_announced_reclaim_of_a_lost_node_is_certain() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(RUNNING, at=20)
    announce(replay, KARPENTER, at=46)
    replay.see(LOST, at=60)

    assert (each := found(replay)) is not None
    assert (each.cause, each.is_certain) == (Cause.SPOT_RECLAIM, True)


def test_signals_of_deleted_nodes_are_forgotten_after_an_hour() -> None:
    replay = observed()
    replay.lose(NODE, at=70)
    announce(replay, KARPENTER, at=90)
    assert set(replay.fleet.disrupted.disruptions.signals.known) == {"uid-n1"}

    replay.scrape(70 + 3601)

    assert replay.fleet.disrupted.disruptions.signals.known == {}
