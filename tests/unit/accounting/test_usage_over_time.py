"""What becomes of usage when pods, agents or we ourselves are gone for a while."""

from dataclasses import replace

import msgspec
import pytest

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.usage import UsageCursor
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.measured import POD, STRANGER, complete, started, tell
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay
from tests.core.usage import assignment, gpu, hour


@pytest.fixture
def replay() -> Replay:
    """One pod, running since 12 with one GPU of n1."""
    return started(Replay())


def test_after_a_restart_nothing_is_counted_twice_and_nothing_is_lost(replay: Replay) -> None:
    undecided = assignment(hour(22, 25, measured=3), since=22, pod="b", device="GPU-1")
    tell(replay, assignment(hour(12, 20, measured=8), since=12), undecided, at=25, gpus=(gpu(joules=5, watermark=25),))
    replay.lose(RUNNING, at=26)
    replay.flush()

    replay.restart()
    complete(replay, at=40)
    later = assignment(hour(12, 26, measured=14), since=12, until=26)
    tell(replay, later, undecided, at=41, gpus=(gpu(joules=7, watermark=41),))

    assert replay.gpu_seconds(41, Total.MEASURED) == {POD: 14, STRANGER: 3}
    assert replay.true(Total.UNALLOCATED_ENERGY, 41) == {("A100", "none"): 7_000}


def test_an_agents_restart_beside_ours_is_noticed(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20)
    replay.flush()
    replay.restart()
    tell(replay, at=30, epoch="e2")

    assert replay.scrape(31).agent_restarts == 1


def test_what_an_agent_tells_no_more_is_kept_in_the_ledger_alone(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12, until=20), at=20, gpus=(gpu(joules=5, watermark=20),))
    replay.flush()
    tell(replay, at=60)
    replay.flush()

    assert [(row.open, row.assignment.pod_uid) for row in replay.memory.assignment_usage.values()] == [(False, "uid-a")]
    assert [row.open for row in replay.memory.unallocated_usage.values()] == [False]
    assert replay.memory.saved().assignment_usage == ()
    assert replay.memory.saved().unallocated_usage == ()


def test_the_ledger_learns_whose_it_was_and_when_it_ended(replay: Replay) -> None:
    first = assignment(hour(21, 25, measured=4), since=21)
    tell(replay, first, at=25)
    replay.flush()
    [(key, row)] = replay.memory.assignment_usage.items()
    assert row.assignment.pod_uid is None

    complete(replay, at=26)
    tell(replay, assignment(hour(21, 25, measured=4), since=21, until=25), at=27)
    replay.flush()
    row = replay.memory.assignment_usage[key]
    assert (row.assignment.pod_uid, row.assignment.until_us) == ("uid-a", us(25))


def vanished(replay: Replay) -> None:
    """The pod was there at 40, and is not in a listing at 100."""
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20)
    replay.relist(Kind.PODS, at=100, since=40)


def test_a_pod_that_vanished_is_charged_up_to_when_its_agent_saw_it_last(replay: Replay) -> None:
    vanished(replay)
    assert replay.gpu_seconds(100) == {(*POD, "starting"): 2, (*POD, "running"): 28}
    assert replay.gpu_seconds(100, Total.UNOBSERVED) == {POD: 60}

    tell(replay, assignment(hour(12, 70, measured=58), since=12, until=71, seen=70), at=101)
    assert replay.gpu_seconds(101) == {(*POD, "starting"): 2, (*POD, "running"): 58}
    assert replay.gpu_seconds(101, Total.UNOBSERVED) == {POD: 1}
    assert replay.spans() == [("starting", 10, 12), ("running", 12, 70)]
    assert replay.scrape(102).differences == {"allocated": 0, "capacity": 0}


def test_what_narrows_a_blind_interval_may_come_after_a_restart(replay: Replay) -> None:
    vanished(replay)
    replay.flush()
    replay.restart()
    replay.see(NODE, at=102)
    tell(replay, assignment(hour(12, 70, measured=58), since=12, until=71, seen=70), at=103)

    assert replay.gpu_seconds(103, Total.UNOBSERVED) == {POD: 1}
    assert replay.spans() == [("starting", 10, 12), ("running", 12, 70)]
    assert replay.scrape(104).differences == {"allocated": 0, "capacity": 0}


def test_a_pod_whose_node_is_forgotten_keeps_its_blind_interval(replay: Replay) -> None:
    vanished(replay)
    replay.lose(NODE, at=101)
    replay.fleet.advance(us(3 * 3600))
    tell(replay, assignment(hour(12, 70, measured=58), since=12, until=71, seen=70), at=3 * 3600 + 1)

    assert replay.gpu_seconds(4 * 3600, Total.UNOBSERVED) == {POD: 60}


def test_both_sides_are_compared_pool_by_pool(replay: Replay) -> None:
    complete(replay, at=40)
    ghost = assignment(since=13, pod="ghost", device="GPU-1")
    tell(replay, ghost, at=41)
    assert replay.scrape(42).allocation_differences == {
        ("none", "api_only"): 1_000_000,
        ("none", "device_only"): 1_000_000,
    }

    tell(replay, assignment(since=12), at=51)
    assert replay.scrape(52).allocation_differences == {("none", "api_only"): 0, ("none", "device_only"): 0}


def test_a_comparison_that_is_old_is_not_shown(replay: Replay) -> None:
    tell(replay, at=41)
    assert replay.scrape(102).allocation_differences == {}

    tell(replay, at=110, allocations_us=us(49))
    assert replay.scrape(111).allocation_differences == {}

    tell(replay, at=120, allocations_us=None)
    assert replay.scrape(121).allocation_differences == {}


def test_a_statefulset_pod_of_the_same_name_pays_for_its_own_time_alone() -> None:
    replay = Replay()
    old = PodForm(name="db-0", uid="old", tier="gold", node="n1", scheduled=10, started=12)
    new = replace(old, uid="new", tier="low", created=30, scheduled=31, started=33)
    replay.see(NodeForm(labels={"nvidia.com/gpu.product": "A100"}), old, at=13)
    tell(replay, at=14)
    replay.lose(old, at=30)
    replay.see(new, at=34)
    complete(replay, at=50)
    first = assignment(hour(12, 29, measured=17), pod="db-0", since=12, until=29)
    second = assignment(hour(33, 50, measured=17, used=1), pod="db-0", since=33)
    tell(replay, first, second, at=50)

    assert replay.gpu_seconds(50, Total.USED) == {("low", "ml", "A100"): 1}
    assert replay.gpu_seconds(50, Total.MEASURED) == {POD: 17, ("low", "ml", "A100"): 17}


def since(revision: int, *, now: int, journal_start: float = 0) -> dict[str, int]:
    """What a report of revision `now` says that has only what changed after `revision`."""
    return {"since": revision, "revision": now, "journal_start_us": us(journal_start)}


def test_a_report_of_what_changed_leaves_the_rest_as_it_was(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12, until=20), at=20, gpus=(gpu(joules=5),), revision=2)
    assert replay.fleet.usage.cursor("n1") == UsageCursor("e1", 2)
    tell(replay, at=60, **since(2, now=3))
    tell(replay, assignment(hour(12, 20, measured=8, used=6), since=12, until=20), at=61, **since(3, now=4))
    replay.flush()

    assert replay.gpu_seconds(61, Total.USED) == {POD: 6}
    assert replay.fleet.usage.cursor("n1") == UsageCursor("e1", 4)
    assert [row.open for row in replay.memory.assignment_usage.values()] == [True]
    assert [row.open for row in replay.memory.unallocated_usage.values()] == [True]


def test_what_the_journal_has_no_more_is_kept_in_the_ledger_alone(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12, until=20), at=20, gpus=(gpu(joules=5),), revision=2)
    tell(replay, at=60, **since(2, now=3, journal_start=19.9))
    replay.flush()
    assert [row.open for row in replay.memory.assignment_usage.values()] == [True]

    tell(replay, at=61, **since(3, now=3, journal_start=20))
    replay.flush()
    assert [row.open for row in replay.memory.assignment_usage.values()] == [False]
    assert [row.open for row in replay.memory.unallocated_usage.values()] == [True]

    tell(replay, at=3700, **since(3, now=3, journal_start=3600))
    replay.flush()
    assert [row.open for row in replay.memory.unallocated_usage.values()] == [False]


def test_an_hour_that_the_journal_has_no_more_is_closed_while_its_container_runs(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20, revision=2)
    tell(replay, assignment(since=12, seen=3700), at=3700, **since(2, now=3, journal_start=3600))
    replay.flush()

    assert [row.open for row in replay.memory.assignment_usage.values()] == [False]

    tell(
        replay,
        assignment(msgspec.structs.replace(hour(3650, 3700, measured=50), start_us=us(3600)), since=12),
        at=3700,
        **since(3, now=4),
    )
    assert replay.gpu_seconds(3700, Total.MEASURED) == {POD: 58}


def test_a_container_that_left_the_journal_between_two_reports_is_closed(replay: Replay) -> None:
    """It was current, and would be reported as long as it is; when it ended nobody will say."""
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20, revision=2)
    tell(replay, at=60, **since(2, now=9))
    replay.flush()

    assert [row.open for row in replay.memory.assignment_usage.values()] == [False]
    assert replay.gpu_seconds(60, Total.MEASURED) == {POD: 8}


def test_after_a_restart_of_either_and_after_a_fault_everything_is_asked_for(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20, revision=2)
    replay.flush()
    replay.restart()
    assert replay.fleet.usage.cursor("n1") is None

    wrong = assignment(hour(12, 25, measured=4_000_000), since=12)
    tell(replay, wrong, at=25, revision=3)
    assert replay.fleet.usage.cursor("n1") is None
    tell(replay, assignment(hour(12, 30, measured=18), since=12), at=30, revision=4)
    assert replay.fleet.usage.cursor("n1") == UsageCursor("e1", 4)
    tell(replay, wrong, at=35, **since(4, now=5))
    assert replay.fleet.usage.cursor("n1") == UsageCursor("e1", 4), "it may become possible"
    tell(replay, wrong, at=36, epoch="e2", revision=4)
    assert replay.fleet.usage.cursor("n1") is None, "nothing of this epoch is accounted"

    tell(replay, assignment(since=36), at=36, epoch="e3")
    assert replay.fleet.usage.cursor("n1") is None, "an agent without revisions"


def test_changes_since_a_report_that_is_not_accounted_are_ignored(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20, revision=2)
    tell(replay, assignment(hour(12, 30, measured=18), since=12), at=30, **since(3, now=4))
    tell(replay, assignment(hour(12, 30, measured=18), since=12), at=30, epoch="e2", **since(2, now=4))

    assert replay.gpu_seconds(30, Total.MEASURED) == {POD: 8}
    assert replay.fleet.usage.cursor("n1") == UsageCursor("e1", 2)
