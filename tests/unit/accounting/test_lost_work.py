"""What the preemption of a pod costs, by how its last checkpoint is known. See test_lost_groups.py for groups."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.jobs.checkpoints import CHECKPOINT_INTERVAL, LAST_CHECKPOINT, SAVES_ON_SIGTERM
from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.lost_work import CheckpointSource, LostWork
from gputally.model.rules import CheckpointRule, Rules
from gputally.model.units import COST_UNIT, GPU_SECOND
from tests.core.manifests import NodeForm, PodForm, instant, us
from tests.core.one_pod import BY_LABEL
from tests.core.replay import Replay
from tests.property.price_lists import book_of
from tests.told import Prices

HOUR, MINUTE = 3600, 60
NODE = NodeForm(name="n1", labels={"nvidia.com/gpu.product": "A100"})
# One EUR for a GPU-second.
BOOK = book_of(Prices(models={"A100": ((0, Fraction(3600)),)}, tiers={}))
START, REQUESTED, END = 100, 100 + 6 * HOUR, 100 + 6 * HOUR + 30
RUNNING = PodForm(name="a", tier="low", created=90, node="n1", scheduled=95, started=START, gpus=4)
VICTIM = replace(RUNNING, version=3, marked=REQUESTED, deleted=REQUESTED, grace=60)
ENDED = replace(VICTIM, version=4, phase="Failed", finished=END, exit_code=143)
LOW = "low", "ml"


def cluster(rules: Rules = Rules(), *, opened: int = 0) -> Replay:  # noqa: B008 - frozen
    replay = Replay(rules=rules, book=BOOK, opened=opened)
    replay.see(NODE, at=opened + 1)
    return replay


def preempted(replay: Replay, **change: object) -> None:
    """The pod runs, is preempted, stops and is gone; `change` is how its forms differ."""
    running, victim, ended = (changed(form, change) for form in (RUNNING, VICTIM, ENDED))
    replay.see(running, at=START)
    replay.see(victim, at=REQUESTED)
    replay.see(ended, at=END)
    replay.lose(ended, at=END + 1)


def changed(form: PodForm, change: Mapping[str, object]) -> PodForm:
    return replace(form, **change)  # type: ignore[arg-type]  # any field


def counted(replay: Replay, at: int = END + 20) -> dict[tuple[str, ...], Fraction]:
    replay.scrape(at)
    return replay.gpu_seconds(at, Total.LOST)


def by_cause(replay: Replay, at: int = END + 30) -> dict[str, Fraction]:
    replay.scrape(at)
    return {labels[2]: value for labels, value in replay.gpu_seconds(at, Total.DISRUPTION_LOST).items()}


def loss(replay: Replay, uid: str = "uid-a") -> LostWork:
    found = replay.fleet.disrupted.lost_work.book.lost_work(uid)
    assert found
    return found


def test_without_a_checkpoint_all_work_since_the_start_counts_as_an_upper_bound() -> None:
    replay = cluster()
    preempted(replay)

    assert counted(replay) == {(*LOW, "start"): 4 * (6 * HOUR + 30)}
    assert loss(replay).is_upper_bound
    assert loss(replay).is_final
    assert replay.money(END, Total.LOST_COST) == {(*LOW, "EUR"): 4 * (6 * HOUR + 30)}


@pytest.mark.parametrize(("interval", "lost"), [("10m", 30), ("1h", 30), ("50m", 10 * MINUTE + 30)])
def test_a_job_of_six_hours_loses_what_is_left_of_its_interval(interval: str, lost: int) -> None:
    replay = cluster()
    preempted(replay, annotations={CHECKPOINT_INTERVAL: interval})

    assert counted(replay) == {(*LOW, "interval"): 4 * lost}
    assert not loss(replay).is_upper_bound


def test_the_interval_of_the_configuration_applies_to_a_tier_and_an_annotation_comes_first() -> None:
    rules = Rules(checkpoints=(CheckpointRule(tier="high", interval_us=1), CheckpointRule(interval_us=7 * 10**9)))
    replay, other = cluster(rules), cluster(rules)
    preempted(replay)
    preempted(other, annotations={CHECKPOINT_INTERVAL: "1h"})

    assert counted(replay) == {(*LOW, "interval"): 4 * ((6 * HOUR + 30) % 7000)}
    assert counted(other) == {(*LOW, "interval"): 4 * 30}


def test_the_last_stated_checkpoint_counts_before_any_interval() -> None:
    replay = cluster()
    stated = {LAST_CHECKPOINT: instant(REQUESTED - 100), CHECKPOINT_INTERVAL: "10m"}
    preempted(replay, annotations=stated)

    assert counted(replay) == {(*LOW, "annotation"): 4 * 130}
    assert loss(replay).checkpoint_us == us(REQUESTED - 100)


def test_a_save_on_sigterm_that_the_termination_message_states_leaves_the_seconds_until_the_end() -> None:
    """S1: its handler saves, and exits 0."""
    replay = cluster()
    replay.see(replace(RUNNING, annotations={LAST_CHECKPOINT: instant(REQUESTED - 50)}), at=START)
    replay.see(VICTIM, at=REQUESTED)
    message = f"gputally-checkpoint={instant(END - 2)}"
    last = replace(ENDED, phase="Succeeded", exit_code=0, termination_message=message)
    replay.lose(last, at=END + 1)  # nobody saw its end before it was deleted

    assert counted(replay) == {(*LOW, "termination-message"): 4 * 2}


def test_nothing_lost_on_gpus_with_a_price_costs_nothing_instead_of_an_unknown_amount() -> None:
    replay = cluster()
    preempted(replay, termination_message=f"gputally-checkpoint={instant(END)}")

    assert loss(replay).gpu_time == 0
    assert loss(replay).costs == (("EUR", 0),)
    assert replay.money(END + 20, Total.LOST_COST) == {}


@pytest.mark.parametrize(("exit_code", "lost"), [(0, ("sigterm", 30)), (143, ("sigterm", 30)), (137, ("start", None))])
def test_a_declared_save_on_sigterm_counts_unless_the_pod_was_killed(
    exit_code: int, lost: tuple[str, int | None]
) -> None:
    basis, seconds = lost
    replay = cluster()
    preempted(replay, annotations={SAVES_ON_SIGTERM: "true"}, exit_code=exit_code)

    assert counted(replay) == {(*LOW, basis): 4 * (6 * HOUR + 30 if seconds is None else seconds)}


@pytest.mark.parametrize(("stated", "lost"), [(START - 50, 6 * HOUR + 30), (END + 40, 0)])
def test_a_checkpoint_is_never_before_the_start_nor_after_the_end(stated: int, lost: int) -> None:
    replay = cluster()
    replay.see(RUNNING, at=START)
    replay.see(ENDED, at=END)
    replay.lose(replace(ENDED, version=9, annotations={LAST_CHECKPOINT: instant(stated)}), at=END + 41)

    assert counted(replay, END + 60) == ({(*LOW, "annotation"): 4 * lost} if lost else {})
    assert loss(replay).basis is CheckpointSource.ANNOTATION


def test_starting_is_no_work_and_a_pod_that_never_ran_loses_none() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, started=None), at=96)
    never = replace(RUNNING, started=None, marked=200, deleted=200, version=3)
    replay.lose(never, at=230)

    assert counted(replay, 300) == {}
    assert loss(replay).gpu_time == 0


def test_a_pod_that_ended_by_itself_before_its_deletion_lost_nothing() -> None:
    replay = cluster()
    replay.see(RUNNING, at=START)
    done = replace(RUNNING, phase="Succeeded", finished=REQUESTED - 60, version=2)
    replay.see(done, at=REQUESTED - 60)
    replay.lose(replace(done, marked=REQUESTED, deleted=REQUESTED, version=3), at=END)

    assert replay.fleet.disrupted.preemptions.known
    assert counted(replay) == {}


def test_deletions_by_request_destroy_nothing_that_counts_here() -> None:
    replay = cluster()
    preempted(replay, marked=None)

    assert counted(replay) == {}
    assert by_cause(replay) == {}
    assert replay.fleet.disrupted.lost_work.book.lost_work("uid-a") is None
    replay.scrape(END + 700)
    assert replay.fleet.disrupted.lost_work.losses == {}


def test_work_before_the_accounting_start_is_neither_in_the_loss_nor_in_a_counter() -> None:
    replay = cluster(opened=REQUESTED - 10)
    replay.see(RUNNING, at=REQUESTED - 5)
    replay.lose(ENDED, at=END + 1)

    assert counted(replay) == {(*LOW, "start"): 4 * 40}
    assert loss(replay).gpu_time == 4 * 40 * GPU_SECOND
    assert loss(replay).costs == (("EUR", 4 * 40 * COST_UNIT),)
    assert [(each.from_us, each.to_us) for each in loss(replay).pods] == [(us(REQUESTED - 10), us(END))]
    assert [amount for _, amount in loss(replay).at_intervals] == [4 * 30 * GPU_SECOND] * 5


def test_each_tenant_of_a_relabelled_pod_lost_its_own_part() -> None:
    replay = cluster(BY_LABEL)
    replay.see(replace(RUNNING, labels={"team": "red"}), at=START)
    blue = {"team": "blue"}
    replay.see(replace(RUNNING, labels=blue, version=2), at=REQUESTED - HOUR)
    replay.lose(replace(ENDED, labels=blue), at=END + 1)

    assert counted(replay) == {("low", "red", "start"): 4 * 5 * HOUR, ("low", "blue", "start"): 4 * (HOUR + 30)}
    assert loss(replay).costs == (("EUR", 4 * (6 * HOUR + 30) * COST_UNIT),)


def test_a_loss_counts_once_over_restarts_and_repeated_news() -> None:
    replay = cluster()
    preempted(replay)
    replay.scrape(END + 20)
    replay.restart()
    replay.scrape(END + 40)
    replay.relist(Kind.PODS, at=END + 50, since=END + 40)
    replay.scrape(END + 60)

    assert counted(replay, END + 80) == {(*LOW, "start"): 4 * (6 * HOUR + 30)}


def test_a_crash_between_the_end_and_its_account_loses_nothing() -> None:
    replay = cluster()
    replay.see(RUNNING, at=START)
    replay.see(VICTIM, at=REQUESTED)
    replay.see(ENDED, at=END)
    replay.lose(ENDED, at=END + 1)
    replay.flush()
    replay.restart()

    assert counted(replay) == {(*LOW, "start"): 4 * (6 * HOUR + 30)}


def test_a_victim_that_is_kept_for_its_logs_is_corrected_when_its_end_is() -> None:
    replay = cluster()
    replay.see(RUNNING, at=START)
    replay.see(replace(ENDED, lost=True, finished=None), at=END + 9)  # its kubelet cannot find the container
    assert sum(counted(replay, END + 20).values()) == 4 * (6 * HOUR + 39)

    replay.see(replace(ENDED, version=9), at=END + 30)
    assert sum(counted(replay, END + 40).values()) == 4 * (6 * HOUR + 30)


def test_labels_that_come_after_the_end_correct_the_price_of_what_was_lost() -> None:
    """GPU Feature Discovery describes the node when the pod is gone."""
    replay = Replay(book=BOOK)
    replay.see(NodeForm(name="n1"), at=1)
    preempted(replay)
    replay.scrape(END + 20)
    assert replay.money(END + 20, Total.LOST_COST) == {}

    replay.see(replace(NODE, version=2), at=END + 30)
    replay.flush()

    assert replay.money(END + 40, Total.LOST_COST) == {(*LOW, "EUR"): 4 * (6 * HOUR + 30)}
    assert counted(replay, END + 50) == {(*LOW, "start"): 4 * (6 * HOUR + 30)}


def test_a_victim_on_a_node_that_is_known_only_later_leaves_nothing_behind() -> None:
    replay = Replay(book=BOOK)
    preempted(replay)
    replay.scrape(END + 20)
    replay.see(NODE, at=END + 30)
    replay.scrape(END + 40)

    assert replay.fleet.disrupted.lost_work._known == {}
    assert replay.money(END + 40, Total.LOST_COST) == {(*LOW, "EUR"): 4 * (6 * HOUR + 30)}


def test_a_scrape_reports_what_the_amendment_of_a_deleted_victim_takes_back() -> None:
    """The pod requested more than its node offers, which is known only later."""
    replay = Replay()
    preempted(replay)
    replay.scrape(END + 20)
    replay.see(replace(NODE, gpus=2), at=END + 30)

    [row] = replay.scrape(END + 40).totals[Total.LOST]

    assert (row.value, row.ahead) == (4 * (6 * HOUR + 30) * GPU_SECOND, 2 * (6 * HOUR + 30) * GPU_SECOND)


@pytest.mark.parametrize("is_written", [True, False])
def test_a_revision_that_is_written_late_does_not_undo_what_the_deleted_event_showed(*, is_written: bool) -> None:
    """The pod ended with its node. Only the DELETED event shows the deletion request, which changes no allocation."""
    replay = cluster()
    member = replace(RUNNING, labels={"batch.kubernetes.io/job-name": "j"}, phase="Failed", started=None)
    replay.lose(NODE, at=START)
    replay.see(member, at=START + 1)
    if is_written:
        replay.flush()
    replay.lose(replace(member, version=3, deleted=START), at=START + 2)
    replay.flush()

    assert replay.fleet.disrupted.lost_work.losses["uid-a"].work.requested_us == us(START)
