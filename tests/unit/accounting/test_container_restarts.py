"""What the restart of a container destroys while its pod keeps its GPUs, by what kubelet 1.36 reports of it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.jobs.checkpoints import CHECKPOINT_INTERVAL, LAST_CHECKPOINT
from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Cause, Victim
from gputally.model.kube.kinds import Kind
from gputally.model.lost_work import LostWork
from gputally.model.rules import Rules, TenantRule, TenantSource
from tests.core.manifests import GPU_NAME, MIDNIGHT_S, Json, PodForm, as_pod, instant, us
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import BOOK, NODE

RUNNING = PodForm(name="a", tier="low", created=90, node="n1", scheduled=95, started=100, gpus=4)
WAITS = replace(RUNNING, version=2, finished=700, exit_code=1, waiting=True)
AGAIN = replace(RUNNING, version=3, started=720, before=(100, 700, 1))
LOW = "low", "ml"
KEY = f"uid-a/restart-{MIDNIGHT_S + 700}"


def cluster(rules: Rules = Rules(), *, opened: int = 0) -> Replay:  # noqa: B008 - frozen
    replay = Replay(rules=rules, book=BOOK, opened=opened)
    replay.see(NODE, at=opened + 1)
    return replay


def lost(replay: Replay, at: int, total: Total = Total.DISRUPTION_LOST) -> dict[tuple[str, ...], Fraction]:
    replay.scrape(at)
    return replay.gpu_seconds(at, total)


def restarts(seconds: float) -> dict[tuple[str, ...], float]:
    return {(*LOW, "container_restart"): seconds}


def written(replay: Replay) -> Mapping[str, Victim]:
    found = replay.memory.history["victims"]
    return {key: each for key, each in found.items() if isinstance(each, Victim)}


def loss(replay: Replay, key: str = KEY) -> LostWork:
    found = replay.fleet.disrupted.lost_work.book.lost_work(key)
    assert found
    return found


def test_a_container_that_fails_loses_its_run_once_however_often_it_is_reported() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(WAITS, at=700)
    replay.see(AGAIN, at=720)
    replay.see(replace(AGAIN, version=4, labels={"x": "y"}), at=900)

    assert lost(replay, 1000) == restarts(4 * 600)
    assert lost(replay, 1001, Total.LOST) == {}
    assert replay.money(1001, Total.DISRUPTION_LOST_COST) == {(*LOW, "container_restart", "EUR"): 4 * 600}
    assert replay.true(Total.DISRUPTIONS, 1001) == {(*LOW, "container_restart"): 1}
    assert loss(replay).is_upper_bound
    assert loss(replay).pods == ()
    row = written(replay)[KEY]
    assert (row.cause, row.decided_us, row.exit_code) == (Cause.CONTAINER_RESTART, us(700), 1)
    assert (row.victim_name, row.victim_tier, row.quantity) == ("a", "low", 4_000_000)


@pytest.mark.parametrize("drains", [True, False])
def test_a_restart_is_of_the_tenant_that_the_pod_had_whenever_it_is_written(*, drains: bool) -> None:
    replay = cluster(Rules(tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"),)))
    replay.see(replace(RUNNING, labels={"team": "blue"}), at=100)
    replay.see(replace(WAITS, labels={"team": "blue"}), at=700)
    if drains:
        replay.drain()
    replay.see(replace(AGAIN, labels={"team": "red"}), at=701)

    replay.flush()
    assert written(replay)[KEY].victim_tenant == "blue"
    assert replay.true(Total.DISRUPTIONS, 1001) == {("low", "blue", "container_restart"): 1}


def test_a_container_that_succeeds_and_runs_again_loses_nothing() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(replace(AGAIN, before=(100, 700, 0)), at=720)

    assert lost(replay, 1000) == {}
    assert written(replay) == {}


def test_each_of_several_runs_counts_and_those_that_nobody_saw_start_by_their_own_times() -> None:
    replay = cluster()
    replay.see(AGAIN, at=800)
    replay.see(replace(AGAIN, version=4, started=1500, before=(1000, 1400, 137)), at=1500)

    assert lost(replay, 1600) == restarts(4 * (600 + 400))
    assert replay.true(Total.DISRUPTIONS, 1601) == {(*LOW, "container_restart"): 2}


def looping(run: int, *, length: int, pause: int = 10, **more: str) -> PodForm:
    """A pod after so many runs of that length (s) that failed."""
    start = 100 + run * (length + pause)
    before = (start - length - pause, start - pause, 1)
    return replace(RUNNING, version=2 + run, started=start, before=before, labels=more)


def test_the_restarts_of_a_pod_within_an_hour_are_one_row_with_the_work_of_all_of_them() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    for run in range(1, 1001):  # 30 s apart, some eight hours
        replay.see(looping(run, length=20), at=100 + run * 30)
        if run % 7 == 0:
            replay.flush()
    replay.flush()

    rows, now = written(replay), 100 + 1001 * 30
    assert lost(replay, now) == restarts(4 * 20 * 1000)
    assert replay.true(Total.DISRUPTIONS, now) == {(*LOW, "container_restart"): 1000}
    assert [each.decided_us for each in rows.values()] == [us(120 + 3600 * hour) for hour in range(9)]
    losses = [each for each in replay.memory.history["lost_work"].values() if isinstance(each, LostWork)]
    assert {each.victim_uid for each in losses} == set(rows)
    assert [each.members for each in losses] == [*[120] * 8, 40]
    assert sum(each.gpu_time for each in losses) == 4 * 20 * 1000 * 10**12


def test_restarts_under_other_terms_or_after_a_start_of_the_process_have_another_row() -> None:
    replay = cluster(Rules(tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"),)))
    replay.see(replace(RUNNING, labels={"team": "red"}), at=100)
    for run, team in enumerate(("red", "red", "blue", "blue"), start=1):
        replay.see(looping(run, length=20, team=team), at=100 + run * 30)
    replay.flush()
    replay.restart()
    replay.see(looping(5, length=20, team="blue"), at=250)
    replay.see(looping(6, length=20, team="blue"), at=280)
    replay.flush()

    assert [each.victim_tenant for each in written(replay).values()] == ["red", "blue", "blue"]
    assert lost(replay, 300).keys() == {(*LOW[:1], team, "container_restart") for team in ("red", "blue")}
    losses = [each for each in replay.memory.history["lost_work"].values() if isinstance(each, LostWork)]
    assert [each.members for each in losses] == [2, 2, 2]
    assert sum(each.gpu_time for each in losses) == 4 * 20 * 6 * 10**12


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        ({LAST_CHECKPOINT: instant(650)}, 50),
        ({LAST_CHECKPOINT: instant(50)}, 600),
        ({LAST_CHECKPOINT: instant(710)}, 600),  # by the next run
        ({CHECKPOINT_INTERVAL: "7m"}, 180),
    ],
)
def test_only_the_work_since_the_last_checkpoint_of_the_run_is_lost(stated: Mapping[str, str], seconds: int) -> None:
    replay = cluster()
    replay.see(replace(RUNNING, annotations=stated), at=100)
    replay.see(replace(AGAIN, annotations=stated), at=720)

    assert lost(replay, 1000) == restarts(4 * seconds)


def test_a_preemption_after_a_restart_loses_only_what_was_done_since() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(AGAIN, at=720)
    replay.scrape(730)
    replay.restart()
    victim = replace(AGAIN, version=5, marked=1000, deleted=1000)
    replay.see(victim, at=1000)
    ended = replace(victim, version=6, phase="Failed", finished=1030, exit_code=143)
    replay.see(ended, at=1030)
    replay.lose(ended, at=1031)

    assert lost(replay, 1100, Total.LOST) == {(*LOW, "start"): 4 * 310}
    assert lost(replay, 1101) == restarts(4 * 600) | {(*LOW, "preemption"): 4 * 310}
    assert replay.gpu_seconds(1101, Total.LOST_AT_INTERVAL)[(*LOW, "10m")] == 4 * 310


def test_a_pod_that_is_preempted_between_two_runs_loses_nothing_more() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(WAITS, at=700)
    victim = replace(WAITS, version=5, marked=800, deleted=800, restart_policy="Always")
    replay.see(victim, at=800)
    ended = replace(victim, version=6, phase="Failed", waiting=False, exit_code=1)  # the last run once more
    replay.see(ended, at=801)
    replay.lose(ended, at=802)

    assert lost(replay, 900) == restarts(4 * 600)


def test_a_run_that_is_only_seen_as_its_pod_is_preempted_while_it_waits_is_lost_once() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    victim = replace(AGAIN, started=100, marked=800, deleted=800, restart_policy="Always")
    ended = replace(victim, phase="Failed", finished=700, exit_code=1)  # the last run once more
    replay.see(ended, at=801)
    replay.lose(ended, at=802)

    assert lost(replay, 900) == restarts(4 * 600)


def test_a_restart_that_is_reported_after_the_pod_ended_with_its_node_counts_its_time_once() -> None:
    replay = cluster()
    victim = replace(RUNNING, marked=600, deleted=600, restart_policy="Always")
    replay.see(victim, at=600)
    replay.lose(NODE, at=700)
    replay.scrape(710)
    replay.see(replace(victim, version=3, started=900, before=(100, 890, 1)), at=900)

    assert sum(lost(replay, 1000).values()) == 4 * 600
    assert lost(replay, 1001, Total.LOST) == {}


def test_a_restart_of_a_pod_that_seemed_to_have_ended_with_its_node_counts_once_its_end_is_known() -> None:
    replay = cluster()
    replay.lose(NODE, at=97)
    replay.see(WAITS, at=701)
    replay.see(replace(AGAIN, version=3, phase="Failed", finished=900, exit_code=1), at=901)

    assert lost(replay, 1000) == restarts(4 * 600)


def test_a_restart_that_is_the_first_sign_of_a_start_counts_in_a_pod_that_is_being_deleted() -> None:
    """Its start changes no segment: it is terminating before and after."""
    replay = cluster()
    asked = replace(RUNNING, started=None, accepted=96, deleted=99, grace=1000)
    replay.see(asked, at=99)
    replay.see(replace(asked, version=2, started=100, finished=700, exit_code=1, waiting=True), at=701)
    replay.flush()

    assert lost(replay, 1000) == restarts(4 * 600)


def test_at_risk_is_what_the_present_run_has_done() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(WAITS, at=700)
    replay.scrape(705)
    assert replay.scrape(710).at_risk.gpu_time == {}
    replay.see(AGAIN, at=720)
    replay.scrape(725)

    assert replay.scrape(730).at_risk.gpu_time == {LOW: 4 * 10 * 10**12}


def test_work_before_the_accounting_start_is_not_counted() -> None:
    replay = cluster(opened=500)
    replay.see(replace(AGAIN, version=1), at=720)
    replay.see(replace(AGAIN, name="b", version=2, before=(100, 400, 1)), at=720)

    assert lost(replay, 1000) == restarts(4 * 200)
    assert len(written(replay)) == 1


def test_a_serving_pod_has_no_work_to_lose() -> None:
    replay = cluster(Rules(serving=("low",)))
    replay.see(RUNNING, at=100)
    replay.see(AGAIN, at=720)

    assert lost(replay, 1000) == {}


def test_a_restart_that_is_only_seen_as_the_pod_is_deleted_counts() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.lose(replace(AGAIN, phase="Failed", finished=800, deleted=790, exit_code=143), at=801)

    assert lost(replay, 900) == restarts(4 * 600)


def test_a_restart_that_is_seen_with_the_first_start_as_the_pod_is_deleted_counts() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, started=None, accepted=96), at=96)
    replay.lose(replace(AGAIN, phase="Failed", finished=800, deleted=790, exit_code=143), at=801)

    assert lost(replay, 900) == restarts(4 * 600)


def test_a_restart_of_all_containers_that_is_seen_with_the_first_start_after_a_failed_one_counts() -> None:
    replay = cluster()
    failed = replace(RUNNING, started=None, start_failed=97, accepted=96)
    replay.see(failed, at=97)
    replay.see(replace(failed, version=2, started=100, finished=700, exit_code=42, restarting=700), at=700)

    assert lost(replay, 900) == restarts(4 * 600)


def test_a_restart_is_accounted_before_a_crash_or_again_after_it() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.flush()
    replay.see(AGAIN, at=720)
    replay.restart()  # nothing of it was written
    replay.see(AGAIN, at=720)
    replay.flush()
    replay.restart()
    replay.see(replace(AGAIN, version=4), at=725)

    assert lost(replay, 1000) == restarts(4 * 600)


@pytest.mark.parametrize(("ended", "seconds"), [(400, 0), (700, 600)])
def test_a_ledger_of_a_version_without_restarts_counts_those_since_its_last_write(ended: int, seconds: int) -> None:
    """The first look at a pod shows its last failed run, however old that is."""
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.scrape(500)
    replay.memory.documents.pop("container_restart", None)
    replay.restart()
    replay.see(replace(AGAIN, before=(100, ended, 1)), at=720)
    replay.flush()
    replay.restart()
    replay.see(replace(AGAIN, version=4, started=900, before=(720, 880, 1)), at=900)

    assert lost(replay, 1000) == restarts(4 * (seconds + 160))


def test_a_run_that_ended_while_nothing_was_watched_is_lost() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.flush()
    replay.restart(at=5000)
    replay.relist(Kind.PODS, replace(RUNNING, version=3, started=4000, before=(100, 3900, 1)), at=5000, since=100)

    assert lost(replay, 5001) == restarts(4 * 3800)


def test_the_restart_of_all_containers_ends_the_work_of_those_that_ran() -> None:
    """The exited container has no GPUs: the one that has them is killed, and its kubelet forgets its times."""
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(replace(RUNNING, version=2, restarting=700), at=700)
    replay.see(replace(RUNNING, version=3, restarting=700, started=None, phase="Running", removed=True), at=701)
    again = replace(RUNNING, version=4, started=703, restarting=702, restarting_status="False", removed=True)
    replay.see(again, at=703)
    replay.see(replace(again, version=5), at=800)

    assert lost(replay, 900) == restarts(4 * 600)
    assert [each.victim_uid for each in written(replay).values()] == [KEY]


def test_a_restart_of_all_containers_that_nobody_saw_begin_ends_when_they_were_removed() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    again = replace(RUNNING, version=4, started=703, restarting=702, restarting_status="False", removed=True)
    replay.see(again, at=900)
    replay.see(replace(again, version=5), at=950)

    assert lost(replay, 1000) == restarts(4 * 602)


def test_the_end_of_a_pod_whose_containers_were_all_restarted_is_no_restart() -> None:
    """The condition and the reason stay, as a real kubelet shows."""
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(replace(RUNNING, version=2, restarting=700), at=700)
    again = replace(RUNNING, version=3, started=703, restarting=702, restarting_status="False", removed=True)
    replay.see(again, at=703)
    ended = replace(again, version=4, deleted=1000, phase="Failed", finished=1001, exit_code=137)
    replay.see(ended, at=1001)
    replay.lose(ended, at=1002)

    assert lost(replay, 1100) == restarts(4 * 600)


def test_a_pod_that_is_lost_with_its_node_after_a_restart_of_all_containers_loses_what_it_did_since() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    again = replace(RUNNING, version=3, started=703, restarting=702, restarting_status="False", removed=True)
    replay.see(again, at=703)
    victim = replace(again, version=4, marked=800, deleted=800, restart_policy="Always")
    replay.see(victim, at=800)
    ended = replace(victim, version=5, phase="Failed", lost=True)  # its kubelet cannot find the container any more
    replay.see(ended, at=801)
    replay.lose(ended, at=802)

    found = lost(replay, 900)
    assert found == restarts(4 * 602) | {(*LOW, "preemption"): 4 * (801 - 703)}


def test_a_second_restart_of_all_containers_ends_the_run_since_the_first() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    replay.see(replace(RUNNING, version=2, restarting=700), at=700)
    again = replace(RUNNING, version=3, started=703, restarting=702, restarting_status="False", removed=True)
    replay.see(again, at=703)
    replay.see(replace(again, version=4, restarting=1000, restarting_status="True"), at=1000)

    assert lost(replay, 1100) == restarts(4 * (600 + 297))


def with_containers(form: PodForm, gpus: Mapping[str, int], states: Mapping[str, Json]) -> Json:
    """The pod with several main containers, which request so many GPUs and are in these states."""
    manifest = form.manifest()
    manifest["spec"]["containers"] = [
        {"name": name, "resources": {"limits": {GPU_NAME: str(count)} if count else {}}} for name, count in gpus.items()
    ]
    manifest["status"]["containerStatuses"] = [{"name": name, "lastState": {}} | each for name, each in states.items()]
    return manifest


def ran(started: int, finished: int, code: int = 1) -> Json:
    return {"terminated": {"startedAt": instant(started), "finishedAt": instant(finished), "exitCode": code}}


STEADY = {"state": {"running": {"startedAt": instant(100)}}}
RESTARTED = {"state": {"running": {"startedAt": instant(720)}}, "lastState": ran(100, 700)}


@pytest.mark.parametrize(
    ("gpus", "seconds"),
    [
        ({"steady": 4, "restarted": 0}, 0),  # a sidecar, say of logs
        ({"steady": 0, "restarted": 4}, 4 * 600),
        ({"steady": 2, "restarted": 2}, 0),  # of the others' work it says nothing
    ],
)
def test_the_restart_of_one_container_counts_if_it_alone_has_the_gpus(gpus: Mapping[str, int], seconds: int) -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    states = {"steady": STEADY, "restarted": RESTARTED}
    replay.see_pod(as_pod(with_containers(RUNNING, gpus, states)), at=720)

    assert lost(replay, 1000) == (restarts(seconds) if seconds else {})


def test_all_containers_with_gpus_lose_their_work_as_all_restart() -> None:
    """The exited one is known to have stopped a second before its kubelet noticed; the other one ran until then."""
    replay = cluster()
    replay.see(RUNNING, at=100)
    states = {"steady": STEADY, "exited": {"state": ran(100, 699, 42)}}
    form = replace(RUNNING, restarting=700)
    replay.see_pod(as_pod(with_containers(form, {"steady": 2, "exited": 2}, states)), at=700)

    assert lost(replay, 800) == restarts(4 * 600)


def test_after_a_restart_of_all_containers_one_that_waits_alone_leaves_the_work_of_the_others() -> None:
    replay = cluster()
    replay.see(RUNNING, at=100)
    gone: Json = {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers"}}
    again = {"state": {"running": {"startedAt": instant(703)}}, "lastState": gone}
    waits = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ran(703, 800)}
    form, gpus = replace(RUNNING, restarting=702, restarting_status="False"), {"steady": 2, "failing": 2}
    replay.see_pod(as_pod(with_containers(form, gpus, {"steady": again, "failing": again})), at=703)
    replay.see_pod(as_pod(with_containers(form, gpus, {"steady": again, "failing": waits})), at=800)
    replay.scrape(900)

    assert replay.scrape(903).at_risk.gpu_time == {LOW: 4 * 200 * 10**12}
