"""Who loses work when one pod of a group is preempted: the whole group where it restarts, else that pod alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.accounting.lost_work.groups import PATIENCE_US
from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import NodeForm, PodForm, instant
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import loss

LWS = {"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "0"}
JOBSET = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "7"}
PYTORCH = {"training.kubeflow.org/job-name": "train"}
VOLCANO = {"volcano.sh/job-name": "train"}
JOB = {"batch.kubernetes.io/job-name": "train", "batch.kubernetes.io/controller-uid": "9"}
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
NODES = (NodeForm(name="n1", gpus=8), NodeForm(name="n2", gpus=8))
START, REQUESTED, VICTIM_END, GROUP_END = 100, 1000, 1030, 1040
PATIENCE = PATIENCE_US // US_PER_SECOND
LOW = "low", "ml"
RAN_VICTIM, RAN_MEMBER = VICTIM_END - START, GROUP_END - START


def gang(labels: dict[str, str], size: int = 8) -> list[PodForm]:
    form = PodForm(tier="low", created=90, node="n1", scheduled=95, started=START, labels=labels)
    return [replace(form, name=f"w{i}") for i in range(size)]


def cluster(forms: Sequence[PodForm]) -> Replay:
    replay = Replay()
    replay.see(*NODES, at=1)
    replay.see(*forms, at=START)
    return replay


def marked(form: PodForm, at: int = REQUESTED) -> PodForm:
    return replace(form, marked=at, deleted=at, version=2)


def ended(form: PodForm, at: int = VICTIM_END) -> PodForm:
    return replace(form, phase="Failed", finished=at, exit_code=143, version=3)


def asked(form: PodForm, at: int = REQUESTED + 2) -> PodForm:
    return replace(form, deleted=at, version=2)


def successor(form: PodForm, *, at: int = REQUESTED + 60, started: int | None = None, attempt: str = "") -> PodForm:
    labels = {**form.labels} | ({ATTEMPT: attempt} if attempt else {})
    new = replace(form, uid=f"new-{form.name}", created=at, labels=labels, version=9)
    return replace(new, node="n2", scheduled=at, started=started) if started else replace(new, node="", started=None)


def preempt(replay: Replay, victim: PodForm) -> None:
    replay.see(marked(victim), at=REQUESTED)
    replay.lose(ended(marked(victim)), at=VICTIM_END + 1)


def stop(replay: Replay, *members: PodForm) -> None:
    for each in members:
        replay.see(asked(each), at=REQUESTED + 3)
    for each in members:
        replay.lose(ended(asked(each), GROUP_END), at=GROUP_END + 1)


def lost(replay: Replay, at: int) -> Fraction | int:
    replay.scrape(at)
    return sum(replay.gpu_seconds(at, Total.LOST).values())


def stalled(replay: Replay, at: int) -> dict[tuple[str, ...], Fraction]:
    replay.scrape(at)
    return replay.gpu_seconds(at, Total.STALLED)


@pytest.mark.parametrize("labels", [LWS, JOBSET, {"kueue.x-k8s.io/pod-group-name": "g"}])
def test_a_gang_of_eight_that_restarts_as_a_whole_loses_eight_times_the_work(labels: dict[str, str]) -> None:
    victim, *others = gang(labels)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    stop(replay, *others)

    assert lost(replay, GROUP_END + 10) == RAN_VICTIM + 7 * RAN_MEMBER
    assert loss(replay, "uid-w0").members == 8
    assert loss(replay, "uid-w0").is_final
    assert stalled(replay, GROUP_END + 20) == {}


def test_a_pytorchjob_loses_the_work_of_one_and_seven_stall_until_its_successor_runs() -> None:
    victim, *others = gang(PYTORCH)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    replay.see(successor(victim), at=REQUESTED + 60)
    replay.scrape(REQUESTED + 80)
    assert not loss(replay, "uid-w0").is_final

    replay.see(successor(victim, started=1200), at=1200)

    assert lost(replay, 1210) == RAN_VICTIM
    assert stalled(replay, 1220) == {LOW: 7 * (1200 - VICTIM_END)}
    assert loss(replay, "uid-w0").members == 1
    assert loss(replay, "uid-w0").is_final


def test_pods_of_a_job_go_on_while_one_is_replaced() -> None:
    victim, *others = gang(JOB)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    replay.see(successor(victim, started=1200), at=1200)

    assert lost(replay, 1210) == RAN_VICTIM
    assert stalled(replay, 1220) == {}


def test_a_group_that_waits_by_default_lost_all_work_once_every_pod_has_a_successor() -> None:
    """A vcjob with the policy RestartJob, or a PyTorchJob whose pods all failed with the lost one."""
    victim, *others = gang(VOLCANO, 3)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    stop(replay, *others)
    replay.see(successor(victim), successor(others[0]), at=REQUESTED + 60)
    assert lost(replay, REQUESTED + 70) == RAN_VICTIM

    replay.see(successor(others[1]), at=REQUESTED + 75)
    assert lost(replay, REQUESTED + 80) == RAN_VICTIM + 2 * RAN_MEMBER


def test_members_that_fail_because_of_the_lost_one_count_as_restarted() -> None:
    victim, *others = gang(PYTORCH, 3)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    for each in others:
        replay.lose(replace(each, phase="Failed", finished=GROUP_END, exit_code=1, version=3), at=GROUP_END + 1)
    replay.see(*(successor(each) for each in (victim, *others)), at=REQUESTED + 60)

    assert lost(replay, REQUESTED + 70) == RAN_VICTIM + 2 * RAN_MEMBER


def test_a_restart_that_the_controller_counts_is_enough() -> None:
    victim, *others = gang(JOBSET | {ATTEMPT: "0"}, 3)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    replay.see(asked(others[0]), at=REQUESTED + 2)
    replay.lose(ended(asked(others[0]), GROUP_END), at=GROUP_END + 1)
    replay.see(successor(victim, attempt="1"), at=REQUESTED + 60)

    assert lost(replay, REQUESTED + 70) == RAN_VICTIM + RAN_MEMBER
    assert not loss(replay, "uid-w0").is_final

    replay.lose(ended(asked(others[1]), GROUP_END + 30), at=REQUESTED + 80)
    assert lost(replay, REQUESTED + 90) == RAN_VICTIM + 2 * RAN_MEMBER + 30
    assert loss(replay, "uid-w0").is_final


def test_a_whole_group_that_is_preempted_loses_its_work_once() -> None:
    pods = gang(LWS, 4)
    replay = cluster(pods)
    for each in pods:
        replay.see(marked(each), at=REQUESTED)
    for each in pods:
        replay.lose(ended(marked(each)), at=VICTIM_END + 1)

    assert lost(replay, VICTIM_END + 10) == 4 * RAN_VICTIM
    assert [loss(replay, f"uid-w{i}").members for i in range(4)] == [1, 1, 1, 1]


def test_members_that_had_completed_or_were_leaving_before_lost_nothing_to_it() -> None:
    victim, done, leaving, other = gang(LWS, 4)
    replay = cluster([victim, done, leaving, other])
    replay.lose(replace(done, phase="Succeeded", finished=900, version=2), at=901)
    replay.see(asked(leaving, 950), at=950)
    preempt(replay, victim)
    replay.lose(ended(asked(leaving, 950), GROUP_END), at=GROUP_END + 1)
    stop(replay, other)

    assert lost(replay, GROUP_END + 10) == RAN_VICTIM + RAN_MEMBER


def test_the_checkpoint_that_one_of_the_group_states_counts_for_all() -> None:
    victim, *others = gang(LWS, 3)
    replay = cluster([victim, *others])
    replay.see(replace(others[0], annotations={LAST_CHECKPOINT: instant(900)}, version=2), at=901)
    preempt(replay, victim)
    stop(replay, replace(others[0], annotations={LAST_CHECKPOINT: instant(900)}), others[1])

    assert lost(replay, GROUP_END + 10) == (VICTIM_END - 900) + 2 * (GROUP_END - 900)


def test_a_checkpoint_after_the_end_of_the_victim_does_not_save_its_work() -> None:
    victim, *others = gang(PYTORCH, 2)
    replay = cluster([victim, *others])
    replay.see(replace(others[0], annotations={LAST_CHECKPOINT: instant(900)}, version=2), at=901)
    preempt(replay, victim)
    replay.see(replace(others[0], annotations={LAST_CHECKPOINT: instant(1300)}, version=3), at=1300)
    replay.see(successor(victim, started=1200), at=1301)

    assert lost(replay, 1310) == VICTIM_END - 900


@pytest.mark.parametrize("order", ["others first", "at once"])
def test_the_order_of_news_does_not_matter(order: str) -> None:
    victim, *others = gang(LWS, 3)
    replay = cluster([victim, *others])
    if order == "others first":
        for each in others:
            replay.lose(ended(asked(each), GROUP_END), at=GROUP_END + 1)
        replay.scrape(GROUP_END + 10)
        replay.flush()
        replay.restart()
        replay.lose(ended(marked(victim)), at=GROUP_END + 100)
    else:
        replay.see(ended(marked(victim)), at=GROUP_END)
        for each in others:
            replay.see(ended(asked(each), GROUP_END), at=GROUP_END)
        replay.relist(Kind.PODS, at=GROUP_END + 60, since=GROUP_END)

    assert lost(replay, GROUP_END + 200) == RAN_VICTIM + 2 * RAN_MEMBER


def test_a_survivor_that_is_never_joined_by_a_successor_stalls_for_an_hour_at_most() -> None:
    victim, *others = gang(PYTORCH, 3)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    replay.scrape(VICTIM_END + PATIENCE - 10)
    assert not loss(replay, "uid-w0").is_final

    assert stalled(replay, VICTIM_END + PATIENCE + 10) == {LOW: 2 * PATIENCE}
    assert lost(replay, VICTIM_END + PATIENCE + 20) == RAN_VICTIM


def test_the_next_loss_of_a_group_stalls_it_only_after_the_first() -> None:
    first, second, other = gang(PYTORCH, 3)
    replay = cluster([first, second, other])
    preempt(replay, first)
    replay.see(successor(first, started=1200), at=1200)
    assert stalled(replay, 1210) == {LOW: 2 * (1200 - VICTIM_END)}

    late = marked(second, 1150)
    replay.lose(ended(late, 1180), at=1211)  # told late
    replay.see(successor(second, at=1212, started=1250), at=1250)

    replay.scrape(1260)
    assert stalled(replay, 1270) == {LOW: 2 * (1200 - VICTIM_END) + 2 * (1250 - 1200)}


def test_two_victims_at_once_stall_the_others_until_both_are_replaced() -> None:
    first, second, *others = gang(PYTORCH, 4)
    replay = cluster([first, second, *others])
    preempt(replay, first)
    preempt(replay, second)
    replay.see(successor(first, started=1100), at=1100)
    replay.scrape(1110)
    assert not loss(replay, "uid-w0").is_final
    replay.see(successor(second, started=1200), at=1200)

    assert stalled(replay, 1210) == {LOW: 2 * (1200 - VICTIM_END)}
    assert lost(replay, 1220) == 2 * RAN_VICTIM


def test_restarts_in_any_state_change_nothing() -> None:
    victim, *others = gang(LWS, 3)
    replay = cluster([victim, *others])
    steps: list[tuple[int, Callable[[], None]]] = [
        (1000, lambda: replay.see(marked(victim), at=1000)),
        (1003, lambda: replay.see(*(asked(each) for each in others), at=1003)),
        (1031, lambda: replay.lose(ended(marked(victim)), at=1031)),
        (1041, lambda: replay.lose(ended(asked(others[0]), GROUP_END), at=1041)),
        (1055, lambda: replay.lose(ended(asked(others[1]), GROUP_END), at=1055)),
    ]
    for at, step in steps:
        step()
        replay.scrape(at + 1)
        replay.flush()
        replay.restart()
        replay.scrape(at + 8)

    assert lost(replay, 1100) == RAN_VICTIM + 2 * RAN_MEMBER
    assert loss(replay, "uid-w0").members == 3


def failed(form: PodForm, at: int) -> PodForm:
    return replace(form, phase="Failed", finished=at, exit_code=1, version=2)


@pytest.mark.parametrize("at", [REQUESTED, REQUESTED + 5, VICTIM_END + 20, REQUESTED + 600])
def test_a_pod_of_a_job_that_fails_by_itself_is_not_charged_to_the_preemption_of_another(at: int) -> None:
    victim, sibling = gang(JOB, size=2)
    replay = cluster([victim, sibling])
    replay.see(marked(victim), at=REQUESTED)
    if at <= VICTIM_END:
        replay.see(failed(sibling, at), at=at)
    replay.lose(ended(marked(victim)), at=VICTIM_END + 1)
    replay.scrape(VICTIM_END + 2)
    if at > VICTIM_END:
        replay.see(failed(sibling, at), at=at)
    for each in (victim, sibling):
        replay.see(successor(each, at=REQUESTED + 700, started=REQUESTED + 710), at=REQUESTED + 710)

    assert lost(replay, REQUESTED + 720) == RAN_VICTIM
    assert (loss(replay, "uid-w0").members, loss(replay, "uid-w0").is_final) == (1, True)


@pytest.mark.parametrize("labels", [LWS, JOBSET, PYTORCH, VOLCANO])
@pytest.mark.parametrize(
    ("at", "is_lost"),
    [(REQUESTED, False), (REQUESTED + 1, True), (VICTIM_END + 300, True), (REQUESTED + 750, False)],
)
def test_a_pod_of_a_gang_may_fail_because_another_is_gone_until_its_successor_runs(
    labels: dict[str, str], at: int, *, is_lost: bool
) -> None:
    victim, sibling = gang(labels, size=2)
    replay = cluster([victim, sibling])
    forms = [
        (REQUESTED, marked(victim)),
        (VICTIM_END, ended(marked(victim))),
        (at, failed(sibling, at)),
        (REQUESTED + 710, successor(victim, at=REQUESTED + 700, started=REQUESTED + 710)),
        (REQUESTED + 770, successor(sibling, at=REQUESTED + 760, started=REQUESTED + 770)),
    ]
    for when, form in sorted(forms, key=lambda each: each[0]):
        replay.see(form, at=when)  # without an `advance` in between, as for a process that was not there

    assert lost(replay, REQUESTED + 780) == RAN_VICTIM + is_lost * (at - START)


def test_a_pod_lost_with_its_node_that_proves_to_have_failed_before_its_preemption_cost_its_group_nothing() -> None:
    """Its end and its deletion are told at once: it has a cause still, a preemption that cost it nothing."""
    victim, sibling = gang(LWS, size=2)
    replay = cluster([victim, replace(sibling, node="n2")])
    replay.lose(NODES[0], at=VICTIM_END)
    replay.see(failed(replace(sibling, node="n2"), GROUP_END), at=GROUP_END)
    replay.scrape(GROUP_END + 10)
    assert replay.gpu_seconds(GROUP_END + 10, Total.DISRUPTION_LOST) == {(*LOW, "node_lost"): RAN_VICTIM + RAN_MEMBER}

    late = replace(failed(victim, VICTIM_END - 1), marked=START)
    replay.see(late, at=GROUP_END + 20)
    replay.lose(replace(late, deleted=GROUP_END + 20, version=3), at=GROUP_END + 20)

    replay.scrape(GROUP_END + 30)
    assert replay.gpu_seconds(GROUP_END + 30, Total.DISRUPTION_LOST) == {}
    assert replay.memory.history["lost_work"] == {}


def node_losses(replay: Replay, at: int) -> Fraction:
    replay.scrape(at)
    return sum(replay.gpu_seconds(at, Total.DISRUPTION_LOST).values(), Fraction(0))


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(
    ("spared", "failed_at", "next_victim", "work", "members"),
    [
        (0, VICTIM_END - 1, "uid-w1", RAN_VICTIM + RAN_MEMBER, 2),
        (0, VICTIM_END + 5, "uid-w1", RAN_VICTIM + RAN_MEMBER + RAN_VICTIM + 5, 3),
        (1, VICTIM_END - 1, "uid-w0", RAN_VICTIM + RAN_MEMBER, 2),
        (1, VICTIM_END + 5, "uid-w0", RAN_VICTIM + RAN_MEMBER + RAN_VICTIM + 5, 3),
    ],
)
def test_a_group_is_charged_to_its_other_victim_if_one_proves_to_be_none(
    spared: int, failed_at: int, next_victim: str, work: int, members: int, *, is_restarted: bool
) -> None:
    """Two pods seem lost with their nodes; then the kubelet of one reports that it had failed by itself."""
    first, second, other = gang(LWS, 3)
    victims = [replace(first, node="n2"), replace(second, node="n3")]
    replay = cluster([*victims, other])
    replay.see(NodeForm(name="n3", gpus=8), at=2)
    for node in ("n2", "n3"):
        replay.lose(NodeForm(name=node, gpus=8), at=VICTIM_END)
    replay.see(failed(other, GROUP_END), at=GROUP_END)
    assert node_losses(replay, GROUP_END + 10) == 2 * RAN_VICTIM + RAN_MEMBER
    if is_restarted:
        replay.restart()

    replay.see(failed(victims[spared], failed_at), at=GROUP_END + 20)

    assert node_losses(replay, GROUP_END + 30) == work
    assert (loss(replay, next_victim).members, loss(replay, next_victim).is_final) == (members, True)
    assert set(replay.memory.history["lost_work"]) == {next_victim}


def test_a_group_goes_on_with_its_other_victim_if_the_node_of_the_first_returns() -> None:
    first, second, *others = gang(PYTORCH, 4)
    first, second = replace(first, node="n3"), replace(second, node="n4")
    nodes = [NodeForm(name=each, gpus=8, machine=each) for each in ("n3", "n4")]
    replay = Replay()
    replay.see(*NODES, *nodes, at=1)
    replay.see(first, second, *others, at=START)
    for each in nodes:
        replay.lose(each, at=VICTIM_END)
    assert node_losses(replay, VICTIM_END + 10) == 2 * RAN_VICTIM

    replay.see(replace(nodes[0], uid="uid-again", created=VICTIM_END + 20), at=VICTIM_END + 20)
    assert node_losses(replay, VICTIM_END + 30) == RAN_VICTIM
    replay.see(successor(second, started=1200), at=1200)

    assert node_losses(replay, 1210) == RAN_VICTIM
    assert (loss(replay, "uid-w1").members, loss(replay, "uid-w1").is_final) == (1, True)


def later(form: PodForm, at: int) -> PodForm:
    """The successor of a pod in the next life of its group, which runs from then on."""
    return replace(form, uid=f"{form.name}-{at}", created=at, scheduled=at + 1, started=at + 5, version=9)


def lose_with_node(replay: Replay, form: PodForm, *, at: int) -> None:
    replay.lose(NodeForm(name=form.node, gpus=8), at=at)


def on_own_nodes(replay: Replay, forms: Sequence[PodForm]) -> list[PodForm]:
    found = [replace(each, node=f"own-{each.uid or each.name}") for each in forms]
    replay.see(*(NodeForm(name=each.node, gpus=8) for each in found), at=1)
    return found


@pytest.mark.parametrize("spared", [0, 1])
def test_an_earlier_loss_of_a_group_stays_if_one_of_its_later_victims_proves_to_be_none(spared: int) -> None:
    replay = cluster([])
    first, *others = on_own_nodes(replay, gang(LWS, 3))
    replay.see(first, *others, at=START)
    lose_with_node(replay, first, at=VICTIM_END)
    replay.see(*(failed(each, GROUP_END) for each in others), at=GROUP_END)
    before = RAN_VICTIM + 2 * RAN_MEMBER
    assert node_losses(replay, GROUP_END + 10) == before

    replay.see(NodeForm(name="n1", gpus=8), at=GROUP_END + 20)
    again = on_own_nodes(replay, [later(each, 1100) for each in gang(LWS, 3)])
    replay.see(*again, at=1105)
    for each in again[:2]:
        lose_with_node(replay, each, at=2000)
    replay.see(failed(again[2], 2010), at=2010)
    assert node_losses(replay, 2020) == before + 2 * (2000 - 1105) + (2010 - 1105)

    replay.see(failed(again[spared], 1999), at=2030)

    assert node_losses(replay, 2040) == before + (2000 - 1105) + (2010 - 1105)
    assert loss(replay, first.uid or "uid-w0").members == 3


@pytest.mark.parametrize("spared", [0, 1])
def test_pods_that_waited_for_a_victim_waited_though_another_proves_to_be_none(spared: int) -> None:
    """Also if the group lost, and awaited, another pod since then."""
    replay = cluster([])
    first, second, *others = on_own_nodes(replay, gang(PYTORCH, 4))
    replay.see(first, second, *others, at=START)
    for each in (first, second):
        lose_with_node(replay, each, at=1000)
    successors = on_own_nodes(replay, [replace(later(each, 1060), started=1100) for each in (first, second)])
    replay.see(*successors, at=1100)
    waited = stalled_for_nodes(replay, 1110)
    lose_with_node(replay, successors[0], at=2000)
    replay.see(*on_own_nodes(replay, [replace(later(first, 2060), started=2100)]), at=2100)
    assert stalled_for_nodes(replay, 2110) > waited
    more = stalled_for_nodes(replay, 2111) - waited

    replay.see(failed((first, second)[spared], 995), at=2120)

    assert stalled_for_nodes(replay, 2130) == waited + more


def stalled_for_nodes(replay: Replay, at: int) -> Fraction:
    """The GPU-seconds for which members waited, by the ledger: no counter has those of lost nodes."""
    replay.scrape(at)
    victims = {uid for uid in replay.memory.history["lost_work"] if isinstance(uid, str)}
    return sum((Fraction(loss(replay, uid).stalled_gpu_time) for uid in victims), Fraction())
