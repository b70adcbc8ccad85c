"""A ledger that was evaluated in the future goes on in the present: nothing falls, and what is too much is stated."""

from dataclasses import replace

from gputally.accounting.changes import Saved
from gputally.accounting.fleet.restore import WAITED_US, at_present
from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Victim
from gputally.model.kube.kinds import Kind
from gputally.model.node_record import LostLabel, NodeRecord
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU_SECOND
from tests.core.manifests import PodForm, us
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay

DAY = 86_400
LABELS = ("gold", "ml", "A100", "running")


def deceived() -> Replay:
    """The pod runs since 12; at 137 it is held to be a day later, and that is published."""
    replay = Replay()
    replay.see(NODE, RUNNING, at=13)
    replay.scrape(20)
    replay.scrape(137 + DAY)
    return replay


def allocated(snapshot: Snapshot) -> tuple[float, float]:
    """The GPU-seconds published, and of these ahead of the truth, of the pod as it runs."""
    points = {row.labels: (row.value / GPU_SECOND, row.ahead / GPU_SECOND) for row in snapshot.totals[Total.ALLOCATED]}
    return points[LABELS]


def test_what_was_published_stands_still_and_is_stated_as_ahead_until_the_truth_reaches_it() -> None:
    replay = deceived()

    replay.restart(at=140)
    shown = [allocated(replay.scrape(at)) for at in (141, 1012, 200 + DAY)]

    assert shown == [(125 + DAY, 125 + DAY - 129), (125 + DAY, 125 + DAY - 1000), (188 + DAY, 0)]


def test_it_stays_so_over_another_restart() -> None:
    replay = deceived()
    replay.restart(at=140)
    replay.flush()
    replay.restart(at=141)

    assert replay.memory.evaluated_us == us(140)
    assert allocated(replay.scrape(142)) == (125 + DAY, 125 + DAY - 130)


def test_what_happens_then_is_accounted_in_the_present() -> None:
    replay = deceived()
    replay.restart(at=140)
    replay.lose(replace(RUNNING, version=4), at=150)
    replay.see(replace(RUNNING, name="b", scheduled=160, started=160), at=161)
    snapshot = replay.scrape(172)

    assert replay.spans() == [("starting", 10, 12), ("running", 12, 150)]
    assert replay.by_state(172) == {"starting": 2, "running": 150}
    assert replay.capacity(172)["allocated"] == 152
    assert sum(replay.capacity(172).values()) == 8 * 172
    assert snapshot.differences == {"allocated": 0, "capacity": 0}


def test_what_was_observed_at_such_a_time_was_observed_by_now() -> None:
    replay = deceived()
    replay.see(NODE, at=138 + DAY)
    relabelled: PodForm = replace(RUNNING, gpus=1, phase="Failed", version=4)
    replay.see(relabelled, at=139 + DAY)
    replay.lose(NODE, at=139 + DAY)
    replay.flush()

    replay.restart(at=140)
    replay.scrape(141)

    assert replay.spans() == [("starting", 10, 12), ("running", 12, 140)]
    assert replay.fleet.nodes.accounts["uid-n1"].record.gone_us == us(140)


def test_a_finish_by_a_node_that_is_ahead_is_no_time_of_the_future() -> None:
    replay = Replay()
    running = replace(RUNNING, clock=500, accepted=10)
    done = replace(running, phase="Succeeded", finished=130, version=2)
    replay.see(NODE, running, at=13)
    replay.see(done, at=131)
    replay.scrape(137 + DAY)

    replay.restart(at=140)
    replay.see_namespace({"metadata": {"name": "ml", "uid": "uid-ml"}}, at=141)

    assert replay.spans() == [("starting", 10, 12), ("running", 12, 130)]


def test_a_little_ahead_is_waited_for() -> None:
    replay = Replay()
    replay.see(NODE, RUNNING, at=13)
    replay.scrape(20)
    saved = replay.memory.saved()

    assert at_present(saved, now_us=us(20) - WAITED_US) is saved
    assert at_present(saved, now_us=us(20) - WAITED_US - 1).evaluated_us == us(20) - WAITED_US - 1


def test_where_the_watch_had_come_to_in_the_future_says_nothing_of_the_time() -> None:
    replay = deceived()
    replay.relist(Kind.PODS, RUNNING, at=138 + DAY, since=100)
    replay.flush()
    saved = at_present(replay.memory.saved(), now_us=us(140))

    assert saved.resumes[Kind.PODS].at_us == us(138 + DAY)
    assert saved.at_us == saved.evaluated_us == us(140)


def test_nothing_that_is_kept_of_the_future_stays_there() -> None:
    later, now = us(138 + DAY), us(140)
    node = NodeRecord(
        uid="n",
        name="n",
        created_us=us(0),
        lost=(LostLabel(key="k", value="v", since_us=later),),
        looked_at=(("karpenter.sh/nodepool", later),),
    )
    pod = PodRecord(uid="p", namespace="ml", name="p", units=(), created_us=0, left_us=later, remembered_us=later)
    saved = Saved(accounting_start_us=us(0), evaluated_us=later, at_us=later, nodes=(node,), pods=(pod,))
    found = at_present(saved, now_us=now)

    assert (found.nodes[0].lost[0].since_us, found.nodes[0].looked_at[0][1]) == (now, now)
    assert (found.pods[0].left_us, found.pods[0].remembered_us) == (now, now)


def test_what_was_brought_back_is_written_so() -> None:
    """The next process reads it again, and no more in the future."""
    replay = deceived()
    replay.see(replace(RUNNING, deleted=138 + DAY, marked=138 + DAY, version=4), at=138 + DAY)
    replay.lose(replace(RUNNING, deleted=138 + DAY, marked=138 + DAY, version=5), at=139 + DAY)
    replay.flush()
    replay.restart(at=140)
    replay.flush()
    saved = replay.memory.saved()

    [found] = saved.documents["victim"]
    assert isinstance(found, Victim)
    assert found.by
    assert {found.decided_us, found.requested_us, found.released_us, found.noticed_us} == {us(140)}
    assert found.by.noticed_us == us(140)
    assert {each.remembered_us for each in saved.departed} <= {us(140)}
