"""The work that a preemption of all running pods would destroy now, and checkpoints that are overdue."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from gputally.accounting.fleet.work_at_risk import read_risk
from gputally.accounting.jobs.checkpoints import CHECKPOINT_INTERVAL, LAST_CHECKPOINT
from gputally.model.rules import CheckpointRule, Rules
from gputally.model.units import COST_UNIT, GPU_SECOND, US_PER_SECOND
from tests.core.manifests import PodForm, instant, us
from tests.core.one_pod import BY_LABEL
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import BOOK, NODE

RUNNING = PodForm(name="a", tier="low", created=90, node="n1", scheduled=95, started=100, gpus=2)
LOW = "low", "ml"
WORKER = {"training.kubeflow.org/job-name": "train"}


def cluster(rules: Rules = Rules()) -> Replay:  # noqa: B008 - frozen
    replay = Replay(rules=rules, book=BOOK)
    replay.see(NODE, at=1)
    return replay


def at_risk(replay: Replay, at: int) -> dict[tuple[str, ...], Fraction]:
    found = replay.scrape(at).at_risk.gpu_time
    return {labels: Fraction(value, GPU_SECOND) for labels, value in found.items()}


def overdue(replay: Replay, at: int) -> Mapping[tuple[str, ...], int]:
    replay.scrape(at - 30)
    return replay.scrape(at).at_risk.overdue


def test_the_work_of_a_running_pod_is_at_risk_since_its_start_and_grows_by_itself() -> None:
    replay = cluster()
    replay.see(RUNNING, at=101)

    assert at_risk(replay, 110) == {LOW: 2 * 10}
    assert at_risk(replay, 111) == {LOW: 2 * 11}
    assert replay.scrape(112).at_risk.cost == {(*LOW, "EUR"): 2 * 12 * COST_UNIT}


def test_work_before_the_accounting_start_is_not_at_risk_as_it_would_not_count_as_lost() -> None:
    replay = Replay(book=BOOK, opened=150)
    replay.see(NODE, at=151)
    replay.see(RUNNING, replace(RUNNING, name="b", annotations={LAST_CHECKPOINT: instant(120)}), at=152)

    assert at_risk(replay, 160) == {LOW: 2 * 2 * 10}
    assert replay.scrape(170).at_risk.cost == {(*LOW, "EUR"): 2 * 2 * 20 * COST_UNIT}
    assert [each.from_us for each in read_risk(replay.fleet, now_us=us(180)).running.at_risk()] == [us(150)] * 2


def test_pods_that_serve_users_lose_no_work() -> None:
    replay = cluster(Rules(serving=("front",)))
    replay.see(RUNNING, replace(RUNNING, name="b", tier="front"), at=101)
    replay.scrape(110)

    assert [each.record.name for each in read_risk(replay.fleet, now_us=us(110)).running.at_risk()] == ["a"]


def test_a_stated_checkpoint_saves_the_work_before_it() -> None:
    replay = cluster()
    replay.see(RUNNING, at=101)
    replay.see(replace(RUNNING, version=2, annotations={LAST_CHECKPOINT: instant(150)}), at=152)

    assert at_risk(replay, 160) == {LOW: 2 * 10}


def test_an_assumed_interval_saves_it_again_and_again() -> None:
    replay = cluster(Rules(checkpoints=(CheckpointRule(tier="low", interval_us=600 * US_PER_SECOND),)))
    replay.see(RUNNING, replace(RUNNING, name="b", started=130), at=131)

    assert at_risk(replay, 699) == {LOW: 2 * (599 + 569)}
    assert at_risk(replay, 705) == {LOW: 2 * (5 + 575)}
    assert at_risk(replay, 735) == {LOW: 2 * (35 + 5)}
    assert at_risk(replay, 100 + 36_000) == {LOW: 2 * (0 + 570)}


def test_a_pod_that_changes_often_is_planned_once() -> None:
    replay = cluster()
    for version in range(50):
        form = replace(RUNNING, version=version + 1, labels={"team": str(version)})
        replay.see(replace(form, annotations={CHECKPOINT_INTERVAL: "10m"}), at=101 + 6 * version)
        replay.scrape(105 + 6 * version)

    assert len(replay.fleet.disrupted.lost_work.at_risk._steps) == 1


def test_pending_starting_and_terminating_pods_and_those_that_are_gone_have_none_at_risk() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, started=None), replace(RUNNING, name="b", node="", scheduled=None, started=None), at=96)
    assert at_risk(replay, 100) == {}

    replay.see(RUNNING, at=101)
    assert at_risk(replay, 110) == {LOW: 20}

    replay.see(replace(RUNNING, deleted=110, version=2), at=111)
    assert at_risk(replay, 120) == {}

    replay.see(replace(RUNNING, name="c"), at=121)
    assert at_risk(replay, 130) == {LOW: 60}
    replay.lose(replace(RUNNING, name="c", phase="Failed", finished=131, version=3), at=131)
    assert at_risk(replay, 132) == {}


def test_each_tenant_has_its_own_part_of_a_relabelled_pod_at_risk() -> None:
    replay = cluster(BY_LABEL)
    replay.see(replace(RUNNING, labels={"team": "red"}), at=101)
    replay.see(replace(RUNNING, labels={"team": "blue"}, version=2), at=150)

    assert at_risk(replay, 160) == {("low", "red"): 2 * 50, ("low", "blue"): 2 * 10}


def test_a_group_shares_the_checkpoint_that_one_of_its_pods_states() -> None:
    replay = cluster()
    for name in "abc":
        replay.see(replace(RUNNING, name=name, labels=WORKER), at=101)
    replay.scrape(120)
    stated = replace(RUNNING, name="b", labels=WORKER, version=2, annotations={LAST_CHECKPOINT: instant(150)})
    replay.see(stated, at=151)
    assert at_risk(replay, 160) == {LOW: 3 * 2 * 10}

    replay.restart()
    assert at_risk(replay, 170) == {LOW: 3 * 2 * 20}


def test_pods_of_a_job_work_each_for_itself() -> None:
    replay = cluster()
    labels = {"batch.kubernetes.io/job-name": "train"}
    replay.see(replace(RUNNING, labels=labels, annotations={LAST_CHECKPOINT: instant(140)}), at=150)
    replay.see(replace(RUNNING, name="b", labels=labels), at=150)

    assert at_risk(replay, 160) == {LOW: 2 * (20 + 60)}


def test_what_a_node_or_a_namespace_changes_is_taken_up() -> None:
    """No event of the pod says so."""
    replay = cluster()
    replay.see(RUNNING, at=101)
    replay.scrape(110)
    replay.lose(NODE, at=120)
    replay.scrape(125)

    assert at_risk(replay, 130) == {}


def test_a_checkpoint_is_overdue_after_one_and_a_half_intervals() -> None:
    replay = cluster()
    declared = {CHECKPOINT_INTERVAL: "10m"}
    replay.see(replace(RUNNING, annotations=declared), replace(RUNNING, name="b"), at=101)
    assert overdue(replay, 960) == {LOW: 0}
    assert overdue(replay, 1040) == {LOW: 1}

    stated = replace(RUNNING, version=2, annotations=declared | {LAST_CHECKPOINT: instant(1050)})
    replay.see(stated, at=1051)
    assert overdue(replay, 1900) == {LOW: 0}
    assert overdue(replay, 2000) == {LOW: 1}


def test_an_interval_of_the_configuration_makes_no_checkpoint_overdue() -> None:
    replay = cluster(Rules(checkpoints=(CheckpointRule(interval_us=60 * US_PER_SECOND),)))
    replay.see(RUNNING, at=101)

    assert overdue(replay, 3000) == {}
