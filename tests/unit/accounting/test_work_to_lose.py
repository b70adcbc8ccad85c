"""Pods that serve users and declared placeholders lose no work: in losses, in groups, in counters and at risk."""

from dataclasses import replace

import pytest

from gputally.accounting.totals.total import Total
from gputally.model.lost_work import CheckpointSource
from gputally.model.rules import Placeholders, Rules
from tests.core.manifests import PodForm
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import (
    BOOK,
    END,
    ENDED,
    HOUR,
    NODE,
    START,
    changed,
    cluster,
    counted,
    loss,
    preempted,
)
from tests.unit.accounting.test_work_at_risk import RUNNING, at_risk

PAUSE = "registry.k8s.io/pause:3.10"
NO_WORK = [
    (Rules(serving=("low",)), {}),
    (Rules(), {"tier": "prod-serving"}),
    (Rules(placeholders=Placeholders(tiers=("lo.",))), {}),
    (Rules(placeholders=Placeholders(classes=("overprovisioning", "low"))), {}),
    (Rules(placeholders=Placeholders(images=(".*/pause:.*",))), {"image": PAUSE}),
]
WORK = [
    (Rules(serving=()), {"tier": "prod-serving"}),
    (Rules(placeholders=Placeholders(tiers=("lo",), classes=("ow",))), {}),
    (Rules(placeholders=Placeholders(images=("pause", ".*/pause"))), {"image": PAUSE}),
    (Rules(placeholders=Placeholders(images=(".*/pause:.*",))), {"image": "train:1"}),
]


@pytest.mark.parametrize(("rules", "change"), NO_WORK)
def test_the_preemption_of_a_pod_without_work_destroys_nothing(rules: Rules, change: dict[str, str]) -> None:
    replay = cluster(rules)
    preempted(replay, **change)

    assert counted(replay) == {}
    assert replay.gpu_seconds(END + 20, Total.LOST_AT_INTERVAL) == {}
    assert replay.gpu_seconds(END + 20, Total.DISRUPTION_LOST) == {}
    found = loss(replay)
    assert (found.gpu_time, found.costs, found.pods, found.members) == (0, (), (), 0)
    assert (found.basis, found.is_upper_bound, found.is_final) == (CheckpointSource.NO_WORK, False, True)
    assert [amount for _, amount in found.at_intervals] == [0] * 5


@pytest.mark.parametrize(("rules", "change"), WORK)
def test_a_pattern_must_match_the_whole_name(rules: Rules, change: dict[str, str]) -> None:
    replay = cluster(rules)
    preempted(replay, **change)

    assert sum(counted(replay).values()) == 4 * (6 * HOUR + 30)


@pytest.mark.parametrize(("rules", "change"), NO_WORK)
def test_a_pod_without_work_has_none_at_risk(rules: Rules, change: dict[str, str]) -> None:
    replay = cluster(rules)
    replay.see(replace(changed(RUNNING, change), name="b"), at=101)

    assert at_risk(replay, 110) == {}
    assert replay.fleet.disrupted.lost_work.at_risk.running().records == {}


def test_a_loss_stays_as_it_was_decided_when_the_rules_change_and_its_segments_are_corrected() -> None:
    replay = Replay(rules=Rules(placeholders=Placeholders(images=(".*/pause:.*",))), book=BOOK)
    replay.see(replace(NODE, labels={}), at=1)
    preempted(replay, image=PAUSE)
    assert counted(replay) == {}

    replay.flush()
    replay.restart(rules=Rules())
    replay.see(replace(NODE, version=2), at=END + 40)  # with the price of its pods

    assert counted(replay, END + 60) == {}
    assert sum(replay.money(END + 60).values()) == 4 * (END - 95)
    assert loss(replay).basis is CheckpointSource.NO_WORK


GROUP = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "0"}


def stopped(replay: Replay, *members: PodForm) -> None:
    for each in members:
        replay.see(replace(each, version=3, deleted=END - 30), at=END - 30)
    for each in members:
        replay.lose(replace(each, version=4, deleted=END - 30, phase="Failed", finished=END, exit_code=143), at=END + 1)


def test_a_group_loses_the_work_of_the_members_that_have_some() -> None:
    replay = cluster(Rules(serving=("front",)))
    router = changed(RUNNING, {"name": "router", "tier": "front", "labels": GROUP, "started": START})
    worker = replace(router, name="worker", tier="low", gpus=3)
    replay.see(router, worker, at=START + 1)
    preempted(replay, tier="front", labels=GROUP)
    stopped(replay, router, worker)

    assert counted(replay) == {("low", "ml", "start"): 3 * (END - START)}
    assert (loss(replay).basis, loss(replay).members, loss(replay).is_upper_bound) == (CheckpointSource.START, 1, True)


def test_a_pod_without_work_does_not_stall() -> None:
    training = {"training.kubeflow.org/job-name": "t"}
    replay = cluster(Rules(serving=("front",)))
    form = changed(RUNNING, {"started": START, "labels": training, "gpus": 1})
    replay.see(replace(form, name="worker"), replace(form, name="router", tier="front"), at=START + 1)
    preempted(replay, labels=training)
    successor = replace(ENDED, uid="new", created=END + 10, scheduled=END + 10, marked=None, deleted=None, phase="")
    replay.see(replace(successor, started=END + 20, finished=None, labels=training), at=END + 20)
    replay.scrape(END + 30)

    assert replay.gpu_seconds(END + 40, Total.STALLED) == {("low", "ml"): 20}
