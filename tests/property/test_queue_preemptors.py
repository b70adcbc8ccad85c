"""Whom Kueue preempted a workload for, in whatever order its Workloads and the pods are observed."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.total import Total
from gputally.frameworks.kueue import KueueWorkload
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from gputally.model.units import GPU
from tests.core.kueue import PYTORCH, condition, evicted, kueue_workload, preempted_for, unreserved
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay
from tests.property.examples import examples

EXAMPLES = examples(150)
EVICTED, DELETED, END, LAST = 999, 1000, 1030, 1050
UID = "22810b85-1c7d-45d0-8188-c148f574cb21"
SERVE = PYTORCH | {"name": "serve", "uid": "uid-serve"}
VICTIMS = tuple(
    PodForm(name=name, tier="low", created=90, node="n1", scheduled=95, started=100, gpus=2, owners=(PYTORCH,))
    for name in "ab"
)
TAKER = PodForm(
    name="c", tier="high", created=END, node="n1", scheduled=END + 2, started=END + 3, gpus=4, owners=(SERVE,)
)
Step = Callable[[Replay, float], object]


def told(workload: KueueWorkload) -> Step:
    return lambda replay, at: replay.see_object(Kind.KUEUE_WORKLOADS, workload, at=at)


def deleted(form: PodForm) -> Step:
    return lambda replay, at: replay.see(replace(form, deleted=DELETED, version=2), at=at)


def ended(form: PodForm) -> Step:
    last = replace(form, deleted=DELETED, phase="Failed", finished=END, exit_code=143, version=3)
    return lambda replay, at: replay.lose(last, at=at)


def serve(*conditions: dict[str, object]) -> KueueWorkload:
    return kueue_workload(*conditions, name="wl-serve", uid=UID, owner=SERVE, tier="high")


WORKLOADS = (
    told(serve(unreserved(900))),
    told(kueue_workload(evicted(EVICTED, message=preempted_for(UID)))),
    told(serve(condition("Admitted", "True", at=END + 1))),
    told(kueue_workload(evicted(END + 5, status="False", message="Previously: " + preempted_for(UID)))),
)
PODS = (*map(deleted, VICTIMS), *map(ended, VICTIMS), lambda replay, at: replay.see(TAKER, at=at))


def written(replay: Replay, _: float) -> None:
    replay.flush()


def killed(replay: Replay, _: float) -> None:
    """A new process, which observes again what was not written."""
    replay.restart()


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Both watches are in order, each for itself; the process may be killed after each event."""
    pending, steps = [list(WORKLOADS), list(PODS)], list[Step]()
    while pending:
        watch = draw(st.sampled_from(pending))
        steps.append(watch.pop(0))
        pending = [each for each in pending if each]
        steps += draw(st.sampled_from(((), (), (written,), (killed,), (written, killed))))
    return steps


@given(histories())
@EXAMPLES
def test_each_victim_is_counted_once_for_the_workload_that_was_admitted_instead(steps: list[Step]) -> None:
    replay = Replay(rules=Rules(watched=(Kind.KUEUE_WORKLOADS,)))
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    replay.see(*VICTIMS, at=100)
    ids, unwritten = dict[str, str](), list[Step]()
    for number, step in enumerate(steps):
        step(replay, END + 1 + number)
        if step is written:
            ids = expect_kept(replay, ids)
            unwritten.clear()
        elif step is killed:
            for missed in unwritten:
                missed(replay, END + 1 + number)
        else:
            unwritten.append(step)
    replay.scrape(LAST + 20)
    replay.flush()
    replay.restart()

    replay.scrape(LAST + 100)

    assert replay.true(Total.PREEMPTIONS, LAST + 100) == {("low", "high"): 2}
    assert replay.true(Total.PREEMPTED, LAST + 100) == {("low", "high"): 4 * GPU}
    assert len(set(expect_kept(replay, ids).values())) == 1
    for each in map(replay.preemption, replay.fleet.disrupted.preemptions.known):
        assert each.preemptor
        assert (each.preemptor.uid, each.preemptor.name, each.preemptor_pods) == (UID, "serve", ("uid-c",))


def expect_kept(replay: Replay, before: dict[str, str]) -> dict[str, str]:
    """The record of each victim, which is that of one of them, and is still the one from `before`."""
    ids = {each.victim_uid: each.job_preemption for each in replay.fleet.disrupted.victims.known.values()}
    found = {uid: job_preemption for uid, job_preemption in ids.items() if job_preemption}
    assert before.items() <= found.items()
    assert set(found.values()) <= found.keys()
    return found
