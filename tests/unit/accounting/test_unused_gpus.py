"""GPUs that preemptions have freed, and that no pod has taken since."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gputally.accounting.disruptions.unused_gpus import UnusedGpus
from gputally.ledger.preemption_records import NodeBinding
from gputally.model.disruptions import Cause, Victim
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU
from gputally.reports.preemption_value import Given, values_of
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

VICTIM = PodForm(name="v", uid="v", gpus=4, tier="low", node="n1", scheduled=5, started=6)
STOPS = replace(VICTIM, marked=50, deleted=50, version=2)


def preempted() -> Replay:
    """A pod with 4 GPUs was preempted, and its GPUs are free since 60 s."""
    replay = Replay()
    replay.see(NodeForm(gpus=8), at=1)
    replay.see(VICTIM, at=10)
    replay.see(STOPS, at=50)
    replay.lose(replace(STOPS, finished=60, phase="Failed", version=3), at=60)
    return replay


def unused(replay: Replay) -> dict[str, float]:
    replay.fleet.reconcile()
    found = replay.fleet.disrupted.disruptions.unused.read(replay.fleet.nodes.known)
    return {tier: quantity / GPU for tier, quantity in found.items()}


def bound(name: str, gpus: int, at: int) -> PodForm:
    return PodForm(name=name, uid=name, gpus=gpus, tier="high", node="n1", scheduled=at, started=at)


def test_what_the_preemptor_does_not_take_is_unused_until_others_do() -> None:
    replay = preempted()
    assert unused(replay) == {"low": 4}

    replay.see(bound("p", 1, 61), at=62)
    assert unused(replay) == {"low": 3}
    replay.lose(bound("p", 1, 61), at=70)
    assert unused(replay) == {"low": 3}  # what was taken once stays taken
    replay.see(bound("q", 8, 80), at=80)
    assert unused(replay) == {"low": 0}


def test_a_pod_that_was_bound_before_the_release_takes_nothing() -> None:
    replay = Replay()
    replay.see(NodeForm(gpus=8), at=1)
    replay.see(VICTIM, bound("old", 4, 5), at=10)
    replay.see(STOPS, at=50)
    replay.lose(replace(STOPS, finished=60, phase="Failed", version=3), at=60)

    assert unused(replay) == {"low": 4}


def test_gpus_of_a_node_that_is_gone_are_not_unused() -> None:
    replay = preempted()
    replay.lose(NodeForm(gpus=8), at=70)

    assert unused(replay) == {"low": 0}


def test_other_disruptions_free_nothing_by_preemption() -> None:
    replay = Replay()
    replay.see(NodeForm(gpus=8), at=1)
    replay.see(VICTIM, at=10)
    replay.lose(replace(STOPS, marked=None), at=60)

    assert unused(replay) == {}


def test_after_a_restart_gpus_that_were_reused_stay_used() -> None:
    taken, free = preempted(), preempted()
    taken.see(bound("p", 4, 61), at=62)
    taken.lose(bound("p", 4, 61), at=70)
    for replay in (taken, free):
        replay.flush()
        replay.restart(at=80)

    assert (unused(taken), unused(free)) == ({"low": 0}, {"low": 4})


def test_an_hour_later_they_are_forgotten() -> None:
    replay = preempted()
    replay.scrape(3600 * 3)

    assert unused(replay) == {}


def test_what_was_taken_of_a_forgotten_preemption_is_taken_of_no_other() -> None:
    first, second = (disruption(f"v{at}", gpus=4, released=at) for at in (100, 105))
    live = UnusedGpus(lambda _: [record("p", gpus=4, at=110)], lambda *_: False)
    live.follow(first)
    live.follow(second)
    assert live.read(lambda: ["n1"]).total() == 4 * GPU

    live.forget(first)
    live.follow(disruption("v120", gpus=1, released=120))
    assert live.read(lambda: ["n1"]).total() == 5 * GPU


victims = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 50)), min_size=1, max_size=4)
pods = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 60)), max_size=5)


@given(victims, pods, st.randoms())
def test_the_gauge_is_the_rate_at_which_the_reports_strand_gpus(
    freed: Sequence[tuple[int, int]], takers: Sequence[tuple[int, int]], chance: Random
) -> None:
    disruptions = [disruption(f"v{index}", gpus=gpus, released=60 * at) for index, (gpus, at) in enumerate(freed)]
    records = [record(f"p{index}", gpus=gpus, at=60 * at + 30) for index, (gpus, at) in enumerate(takers)]
    live = UnusedGpus(lambda _: records, lambda _, pod: pod == "p0")
    events: list[Victim | PodRecord] = [*disruptions, *records]
    chance.shuffle(events)
    for each in events:
        if isinstance(each, PodRecord):
            live.bound(each)
        else:
            live.follow(each)

    assert live.read(lambda: ["n1"]).total() == stranded_per_second(disruptions, records)


def stranded_per_second(disruptions: Sequence[Victim], records: Sequence[PodRecord]) -> int:
    """The growth of what the reports call stranded, long after everything."""
    found = []
    for until in (us(10_000), us(10_000) + 1):
        given = [
            Given(
                victim_uid=each.victim_uid,
                takers=frozenset({"p0"}),
                released_us=each.released_us or 0,
                free=each.quantity,
            )
            for each in disruptions
        ]
        bindings = [
            NodeBinding(
                node_uid="n1",
                pod_uid=each.uid,
                start_us=each.scheduled_us or 0,
                end_us=until,
                quantity=each.terms[-1].quantities[0][1],
            )
            for each in records
        ]
        found.append(sum(each.stranded for each in values_of(given, bindings, until_us=until).values()))
    return found[1] - found[0]


def disruption(uid: str, *, gpus: int, released: int) -> Victim:
    return Victim(
        victim_uid=uid,
        victim_namespace="ml",
        victim_name=uid,
        victim_tier="low",
        victim_tenant="ml",
        job_kind="Job",
        job="a",
        node="n1",
        node_uid="n1",
        quantity=gpus * GPU,
        reported=Cause.PREEMPTION,
        cause=Cause.PREEMPTION,
        decided_us=us(released),
        released_us=us(released),
        noticed_us=us(released),
    )


def record(uid: str, *, gpus: int, at: int) -> PodRecord:
    return structs.replace(template(gpus), uid=uid, scheduled_us=us(at))


@cache
def template(gpus: int) -> PodRecord:
    replay = Replay()
    replay.see(NodeForm(gpus=64), at=1)
    replay.see(bound("t", gpus, 2), at=3)
    replay.fleet.reconcile()
    return replay.fleet.pods.records["t"]
