"""Work lost to preemptions: what was running since the last checkpoint, counted once, whatever else happens."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.accounting.totals.total import Total
from gputally.frameworks.volcano import JOB_VERSION
from gputally.model.allocation import Outcome
from gputally.model.disruptions import PREEMPTIONS, Cause, Victim
from gputally.model.kube.meta import Labels
from gputally.model.lost_work import LostPod
from gputally.model.rules import Placeholders
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import instant, us
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, LATEST, OPENED, Draw
from tests.property.strategies import clusters
from tests.property.test_accounting import RULES, assert_laws
from tests.told import Json, Told
from tests.true_ends import seconds
from tests.true_nodes import by_uid, nodes_of
from tests.truth import Pod

Seconds = Counter[tuple[str, ...]]
"""Millionths of GPU-seconds by tier, tenant and how the checkpoint is known."""
STEPS = st.sampled_from(["", "", "", "scrape", "flush", "crash"])
PAUSE = "registry.k8s.io/pause:3.10"
SERVING = "lead"
WITHOUT_WORK = msgspec.structs.replace(RULES, serving=(SERVING,), placeholders=Placeholders(images=(".*/pause:.*",)))
GROUPS: Sequence[Labels] = (
    {"training.kubeflow.org/job-name": "t"},
    {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "0"},
    {"jobset.sigs.k8s.io/jobset-name": "j", "jobset.sigs.k8s.io/restart-attempt": "1"},
    {"batch.kubernetes.io/job-name": "b"},
    {"volcano.sh/job-name": "v"},
)


@dataclass(frozen=True, kw_only=True)
class Workload:
    log: tuple[Told, ...]


@st.composite
def workloads(draw: Draw, *, grouped: bool) -> Workload:
    """Any cluster whose pods may state checkpoints, and may be grouped."""
    cluster = draw(clusters(outages=True))
    return Workload(log=draw(with_losses(cluster.log, grouped=grouped)))


@st.composite
def with_losses(draw: Draw, log: Sequence[Told], *, grouped: bool) -> tuple[Told, ...]:
    """The same history, in which most pods are victims."""
    uids = dict.fromkeys(uid_of(told) for told in log if told.kind == "pod")
    stated = {uid: draw(st.lists(st.integers(0, LATEST), max_size=2)) for uid in uids}
    labels = {uid: draw(st.sampled_from(GROUPS)) if grouped else {} for uid in uids}
    restarts = {uid: {JOB_VERSION: str(draw(st.integers(0, 2)))} if grouped else {} for uid in uids}
    victims = {uid for uid in uids if draw(st.integers(0, 3))}
    idle = {uid for uid in uids if not draw(st.integers(0, 4))}
    marked = (preempted(told) if told.kind == "pod" and uid_of(told) in victims else told for told in log)
    pausing = (placeholder(told) if told.kind == "pod" and uid_of(told) in idle else told for told in marked)
    return tuple(stating(told, stated, labels, restarts) for told in pausing)


def placeholder(told: Told) -> Told:
    """A pod whose image does no work."""
    spec = told.manifest["spec"]
    containers = [each | {"image": PAUSE} for each in spec["containers"]]
    return replace(told, manifest={**told.manifest, "spec": {**spec, "containers": containers}})


def has_work(pod: Pod) -> bool:
    return pod.tier != SERVING and all(each.get("image") != PAUSE for each in pod.forms[0]["spec"]["containers"])


def preempted(told: Told) -> Told:
    """A pod that is marked all along: whenever it is deleted, it is a victim."""
    status = told.manifest["status"]
    others = [each for each in status["conditions"] if each["type"] != "DisruptionTarget"]
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    since = {"lastTransitionTime": told.manifest["metadata"]["creationTimestamp"]}
    return replace(told, manifest={**told.manifest, "status": {**status, "conditions": [*others, mark | since]}})


def stating(
    told: Told, stated: Mapping[str, list[int]], labels: Mapping[str, Labels], restarts: Mapping[str, Labels]
) -> Told:
    """A pod states the last of its checkpoints so far."""
    if told.kind != "pod":
        return told
    meta, uid = told.manifest["metadata"], uid_of(told)
    so_far = [at for at in stated[uid] if at <= told.since]
    annotations = restarts[uid] | ({LAST_CHECKPOINT: instant(max(so_far))} if so_far else {})
    meta = meta | {"annotations": annotations, "labels": {**meta["labels"], **labels[uid]}}
    return replace(told, manifest={**told.manifest, "metadata": meta})


def uid_of(told: Told) -> str:
    uid: str = told.manifest["metadata"]["uid"]
    return uid


def ran_since(pod: Pod, since: int, until: int) -> Counter[tuple[str, str]]:
    """Second by second, from the first start of a container on, by tier and tenant."""
    found = Counter[tuple[str, str]]()
    if pod.started is not None and has_work(pod):
        for second in range(max(OPENED, since, pod.started), until):
            if pod.holds(second):
                found[pod.tier, pod.tenant(second)] += pod.quantity(second)
    return found


def checkpoint_of(pod: Pod) -> int | None:
    """The latest that any form states, which a list shows as well."""
    return max(stated_by(pod.forms), default=None)


def stated_by(forms: Sequence[Json]) -> list[int]:
    texts = [form["metadata"]["annotations"].get(LAST_CHECKPOINT) for form in forms]
    return [seconds(text) for text in texts if text]


class Restart(NamedTuple):
    """A restart as one form of the pod shows it: the run lasted from `began` to `ended`, the next began at `again`.

    `again` is None until the container runs again. `began` is None for a restart of all containers: no form shows it.
    """

    began: int | None
    ended: int
    again: int | None
    is_lost: bool


def restart_in(form: Json) -> Restart | None:
    """The last restart in place that this form shows, by the clock of its node."""
    [status] = form["status"].get("containerStatuses") or [{"state": {}, "lastState": {}}]
    run: Json | None = status["lastState"].get("terminated")
    now = status["state"].get("running") or status["state"].get("terminated")
    if now and not now.get("startedAt"):  # the container was lost with its node
        return None
    all_of_them = [each for each in form["status"]["conditions"] if each["type"] == "AllContainersRestarting"]
    if all_of_them and all_of_them[0]["status"] == "True":
        stopped = status["state"].get("terminated") or {"finishedAt": all_of_them[0]["lastTransitionTime"]}
        return Restart(None, seconds(stopped["finishedAt"]), None, is_lost=True)
    again = seconds(now["startedAt"]) if now and is_time(now["startedAt"]) else None
    if run and run["reason"] == "RestartingAllContainers":
        return Restart(None, seconds(all_of_them[0]["lastTransitionTime"]), again, is_lost=True)
    if run and is_time(run["startedAt"]):
        began, ended = (seconds(run[name]) for name in ("startedAt", "finishedAt"))
        return Restart(began, ended, again, is_lost=run["exitCode"] != 0)
    return None


def is_time(text: str | None) -> bool:
    """1970 is no time at all."""
    return text is not None and seconds(text) > -86400


class Runs(NamedTuple):
    """The runs of a pod's container that are to be done again, from and to, and since when it has work to lose."""

    lost: list[tuple[int, int]]
    since: int


def runs_of(pod: Pod) -> Runs:
    """A run is lost since the last checkpoint stated by then."""
    lost, since, until = list[tuple[int, int]](), 0, 0
    for i, form in enumerate(pod.forms):
        if restart := restart_in(form):
            ended = restart.ended - pod.off
            began = since if restart.began is None else restart.began - pod.off
            if began < ended and until < ended:
                saved = max((at for at in stated_by(pod.forms[: i + 1]) if at <= ended), default=0)
                lost += [(max(began, until, saved), ended)] * restart.is_lost
                until = ended
            again = -1 if restart.again is None else restart.again - pod.off
            since = again if again >= until else HORIZON  # what ends while it waits reports the run before once more
    return Runs(lost, since)


def worked_since(pod: Pod) -> int:
    """Since when its container runs after its last restart: from then on it has work to lose."""
    return runs_of(pod).since


def lost_to_restarts(pod: Pod) -> Counter[tuple[str, str]]:
    """What the container did in the runs that are to be done again."""
    found = Counter[tuple[str, str]]()
    for began, ended in runs_of(pod).lost:
        found.update(ran_since(pod, began, ended))
    return found


def expected(log: Sequence[Told], replay: Replay) -> Seconds:
    """What victims ran since their last checkpoint, unless they had ended by themselves."""
    nodes, found = nodes_of(log), Seconds()
    for told in by_uid(log, "pod"):
        pod = Pod(told, nodes)
        if pod.is_preempted and pod.end is not None and pod.started is not None:
            stated, outcome = checkpoint_of(pod), outcome_of(replay.memory.revisions[uid_of(told[0])])
            if outcome not in (Outcome.SUCCEEDED, Outcome.FAILED):
                basis = "start" if stated is None else "annotation"
                for payer, amount in ran_since(pod, max(stated or 0, worked_since(pod)), pod.end).items():
                    found[(*payer, basis)] += amount
    return +found


def expected_of_others(log: Sequence[Told], replay: Replay) -> Seconds:
    """The same for pods that were disrupted for other reasons, by cause, and for containers that were restarted."""
    nodes, found = nodes_of(log), Seconds()
    for told in by_uid(log, "pod"):
        for payer, amount in lost_to_restarts(Pod(told, nodes)).items():
            found[(*payer, Cause.CONTAINER_RESTART.value)] += amount
        pod, disruption = Pod(told, nodes), replay.memory.history["victims"].get(uid_of(told[0]))
        if isinstance(disruption, Victim) and disruption.cause not in (Cause.PREEMPTION, Cause.DELETION):
            assert pod.end is not None
            for payer, amount in ran_since(pod, max(checkpoint_of(pod) or 0, worked_since(pod)), pod.end).items():
                found[(*payer, disruption.cause.value)] += amount
    return +found


def counted(replay: Replay, total: Total = Total.LOST) -> Seconds:
    """Once nothing is pending any more."""
    replay.scrape(HORIZON + 10)
    replay.scrape(HORIZON + 20)
    found = Seconds()
    for labels, amount in replay.true(total, HORIZON + 20).items():
        assert amount > 0
        assert amount % US_PER_SECOND == 0
        found[labels] = amount // US_PER_SECOND
    return found


def told_of(workload: Workload, steps: Sequence[str]) -> Replay:
    replay = Replay(rules=WITHOUT_WORK, opened=OPENED)
    for step, told in with_crashes(replay, workload.log, partial(next, cycle(steps))):
        if step == "scrape":
            publish(replay.fleet, now_us=us(told.at), ledger={})
    return replay


@given(workloads(grouped=False), st.lists(STEPS, min_size=1, max_size=40))
@examples(200)
def test_victims_lose_what_they_ran_since_their_last_checkpoint_once_over_crashes(
    workload: Workload, steps: list[str]
) -> None:
    replay = told_of(workload, steps)

    assert counted(replay) == expected(workload.log, replay)
    assert counted(replay, Total.STALLED) == {}
    by_cause = counted(replay, Total.DISRUPTION_LOST)
    preempted = {key: by_cause.pop(key) for key in tuple(by_cause) if key[-1] == "preemption"}
    assert sum(preempted.values()) == counted(replay).total()
    assert by_cause == expected_of_others(workload.log, replay)
    assert_pods_are_the_loss(replay)


def assert_pods_are_the_loss(replay: Replay) -> None:
    """What the ledger has of pods in their lost time adds up to each loss, and no pod is in two of them."""
    part = replay.fleet.disrupted.lost_work
    found = [lost for uid in part.losses if (lost := part.book.lost_work(uid))]
    found = [lost for lost in found if part.losses[lost.victim_uid].cause in PREEMPTIONS]
    for lost in found:
        assert lost.gpu_time == sum(map(partial(lost_of, replay), lost.pods))
    assert sum(lost.gpu_time for lost in found) == sum(replay.true(Total.LOST, HORIZON + 20).values())
    pods = [pod.uid for lost in found for pod in lost.pods]
    assert len(pods) == len(set(pods))


def lost_of(replay: Replay, lost: LostPod) -> int:
    """µs·µGPU of its segments in its lost time."""
    parts = replay.fleet.pods.records.get(lost.uid) or replay.memory.revisions[lost.uid]
    return sum(
        each.quantity * max(0, min(each.end_us or lost.to_us, lost.to_us) - max(each.start_us, lost.from_us))
        for each in parts.segments
    )


@given(workloads(grouped=True), st.lists(STEPS, min_size=1, max_size=40))
@examples(200)
def test_no_group_loses_more_than_it_ran_nor_less_than_its_victims_did(workload: Workload, steps: list[str]) -> None:
    replay = told_of(workload, steps)
    nodes = nodes_of(workload.log)
    ran = Counter[tuple[str, str]]()
    for told in by_uid(workload.log, "pod"):
        ran.update(ran_since(Pod(told, nodes), 0, HORIZON + 20))

    for total in (Total.LOST, Total.STALLED):
        found = Counter[tuple[str, str]]()
        for labels, amount in counted(replay, total).items():
            found[labels[0], labels[1]] += amount
        assert all(amount <= ran[payer] for payer, amount in found.items())
    assert_laws(replay)
    assert_pods_are_the_loss(replay)
