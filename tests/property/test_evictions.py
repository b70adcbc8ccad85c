"""Why victims of KAI-Scheduler and of groups were evicted, and for whom, in whatever order that is observed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.total import Total
from gputally.model import disruptions
from tests.core.manifests import Json, NodeForm, PodForm, as_pod, preempted_event
from tests.core.replay import Replay
from tests.property.examples import examples
from tests.property.node_lives import Draw

EXAMPLES = examples(150)
MARKED, LAST = 1000, 2000
PATIENCE = 61
UID: Final = "22810b85-1c7d-45d0-8188-c148f574cb2{}"
Step = Callable[[Replay, int], object]


class Telling(NamedTuple):
    """A step, which takes some seconds."""

    tell: Step
    is_event: bool = False
    takes: int = 1


class Group(NamedTuple):
    """A PodGroup in `serving`, and the tier of its pods; "" for one of which no pod is ever seen."""

    name: str
    uid: str
    tier: str

    def pod(self, node: str) -> PodForm:
        """Its pod for the node, which names the group as both schedulers do."""
        return PodForm(
            name=f"{self.name}-{node}",
            namespace="serving",
            tier=self.tier,
            created=40,
            annotations={"pod-group-name": self.name},
            scheduling_group=self.name,
        )


SEEN = Group("pg-seen", UID.format(1), "high")
UNSEEN = Group("pg-unseen", UID.format(2), "")
UNSEEN_POD = PodForm(name="unseen", uid=UID.format(9))
MESSAGES: Final = {
    "preempt": ("Pod {pod} was preempted by higher priority workload {group}", "preemption"),
    "reclaim": ("Pod {pod} was preempted by workload {group}.\nml uses <GPUs: 4> with a quota of <2>.", "preemption"),
    "consolidate": (
        "Pod {pod} was preempted and rescheduled due to bin packing (resource consolidation) procedure",
        "consolidation",
    ),
    "stale": (
        "Workload doesn't meet the minimum required number of pods (2), evicting remaining pod: {pod}",
        "queue_eviction",
    ),
}
"""What KAI-Scheduler writes into its victims, and what that means.

Source: kai-scheduler/KAI-Scheduler pkg/scheduler/api/unschedule_info.go.
"""
KINDS = st.sampled_from([*MESSAGES, "related", "related", "text", "pod", ""])
GROUPS = st.sampled_from([SEEN, UNSEEN])


class Victim(NamedTuple):
    """A victim alone on its node: what happens, the cause of its end, and its preemptor by (kind, name, tier)."""

    form: PodForm
    cause: str
    by: tuple[str, str, str] | None
    message: str = ""
    event: Json | None = None
    taker: PodForm | None = None
    nominated: PodForm | None = None


@st.composite
def victims(draw: Draw, number: int, *, infers: bool) -> Victim:
    node = f"n{number}"
    form = PodForm(
        name=f"v{number}", uid=UID.format(3 + number), tier="low", node=node, scheduled=10, started=11, gpus=2
    )
    kind, group = draw(KINDS), draw(GROUPS)
    nominated = PodForm(name=f"nominated-{node}", tier="rush", priority=5, created=40) if draw(st.booleans()) else None
    taker = group.pod(node) if group.tier else None
    named = Victim(form, "preemption", ("PodGroup", group.name, group.tier), nominated=nominated, taker=taker)
    if kind in MESSAGES:
        text, cause = MESSAGES[kind]
        message = text.format(pod=f"ml/{form.name}", group=f"serving/{group.name}")
        return named._replace(message=message) if cause == "preemption" else Victim(form, cause, None, message)
    if kind == "related":
        return named._replace(event=event(form, group, related=True))
    if kind == "text":
        return named._replace(event=event(form, group, related=False), by=("PodGroup", "", ""), taker=None)
    if kind == "pod":
        return named._replace(event=preempted_event(form, by=UNSEEN_POD), by=("", "unseen", ""), taker=None)
    nominated = nominated if infers else None
    by = ("", nominated.name, "rush") if nominated else None
    return Victim(form, "preemption", by, nominated=nominated)


def event(form: PodForm, group: Group, *, related: bool) -> Json:
    """As kube-scheduler 1.36 writes it."""
    by = {"kind": "PodGroup", "namespace": "serving", "name": group.name, "uid": group.uid}
    found = preempted_event(form, by=form, related=False)
    found |= {"message": f"Preempted by podgroup {group.uid} on node cluster"}
    return found | ({"related": by} if related else {})


def seen(form: PodForm) -> Step:
    return lambda replay, at: replay.see(form, at=at)


def nominates(form: PodForm, node: str) -> Step:
    manifest = form.manifest()
    manifest["status"]["nominatedNodeName"] = node
    return lambda replay, at: replay.see_pod(as_pod(manifest), at=at)


def pods_of(victim: Victim) -> list[Step]:
    """What the watch of pods brings, in order."""
    marked = replace(victim.form, version=2, marked=MARKED, mark_message=victim.message, deleted=MARKED)
    ended = replace(marked, version=3, phase="Failed", finished=MARKED + 3, exit_code=143)
    steps: list[Step] = [seen(victim.taker)] if victim.taker else []
    steps += [nominates(victim.nominated, victim.form.node)] if victim.nominated else []
    steps += [seen(marked), seen(ended), lambda replay, at: replay.lose(ended, at=at)]
    if victim.taker:
        bound = replace(victim.taker, version=4, node=victim.form.node, scheduled=MARKED + 4)
        steps += [seen(bound), seen(replace(bound, version=5, started=MARKED + 5))]
    return steps


def told_of(victim: Victim) -> Step:
    return lambda replay, at: replay.see_event(victim.event or {}, at=at)


def written(replay: Replay, _: int) -> None:
    replay.flush()


def killed(replay: Replay, _: int) -> None:
    """A new process, which lists Events, and observes again what was not written of pods."""
    replay.restart()


def scraped(replay: Replay, at: int) -> None:
    replay.scrape(at)


WRITTEN, KILLED, SCRAPED, WAITED = (
    Telling(written),
    Telling(killed),
    Telling(scraped),
    Telling(scraped, takes=PATIENCE),
)
LIVING: Final = ((), (), (WRITTEN,), (SCRAPED,))
DYING: Final = (*LIVING, (KILLED,), (WRITTEN, KILLED))


class History(NamedTuple):
    victims: Sequence[Victim]
    steps: Sequence[Telling]


@st.composite
def histories(draw: Draw) -> History:
    """The watches of pods and Events are in order, each for itself; the process may be killed after each of both.

    A new process does not know which pods were nominated, so without an Event they are preemptors only where none dies.
    """
    dies, is_late = draw(st.booleans()), draw(st.booleans())
    found = [draw(victims(i, infers=not dies)) for i in range(draw(st.integers(1, 3)))]
    pods = [Telling(step) for victim in found for step in pods_of(victim)]
    events = [Telling(told_of(each), is_event=True) for each in found if each.event]
    pending, steps = [pods, events], list[Telling]()
    while pending := [each for each in pending if each]:
        steps.append((pending[0] if is_late else draw(st.sampled_from(pending))).pop(0))
        steps += draw(st.sampled_from(DYING if dies else LIVING))
        steps += [WAITED] if is_late and not pods else []
    return History(found, steps)


@given(histories())
@EXAMPLES
def test_each_victim_counts_once_with_its_cause_for_whom_its_scheduler_names(history: History) -> None:
    replay = Replay()
    for each in history.victims:
        replay.see(NodeForm(name=each.form.node), each.form, at=100)
    replay.flush()
    unwritten, at = list[Telling](), MARKED
    for step in history.steps:
        at += step.takes
        step.tell(replay, at)
        if step in (WRITTEN, SCRAPED, WAITED):
            unwritten = [each for each in unwritten if each.is_event]
        elif step is KILLED:
            for missed in unwritten:
                missed.tell(replay, at)
        else:
            unwritten.append(step)
    replay.scrape(at + PATIENCE)
    expect_counted(replay, history.victims, at=at + PATIENCE)
    replay.restart()
    replay.scrape(LAST)
    expect_counted(replay, history.victims, at=LAST)


def expect_counted(replay: Replay, victims: Sequence[Victim], *, at: int) -> None:
    assert replay.true(Total.DISRUPTIONS, at) == Counter(("low", "ml", each.cause) for each in victims)
    preempted = [each for each in victims if each.cause == "preemption"]
    tiers = Counter(("low", (each.by and each.by[2]) or "unknown") for each in preempted)
    assert replay.true(Total.PREEMPTIONS, at) == tiers
    assert replay.true(Total.TENANT_PREEMPTIONS, at) == ({("low", "ml"): len(preempted)} if preempted else {})
    assert {each.form.uid: each.cause for each in victims} == causes(replay)
    assert {each.form.uid: each.by for each in preempted} == preemptors(replay)
    pods = {each.form.uid: (f"uid-{each.taker.name}",) if each.taker else () for each in preempted}
    assert {uid: replay.preemption(uid).preemptor_pods for uid in replay.fleet.disrupted.preemptions.known} == pods


def causes(replay: Replay) -> dict[str, str]:
    found = replay.memory.history["victims"].values()
    return {each.victim_uid: each.cause.value for each in found if isinstance(each, disruptions.Victim)}


def preemptors(replay: Replay) -> dict[str, tuple[str, str, str] | None]:
    known = replay.fleet.disrupted.preemptions.known
    return {uid: (by.kind, by.name, by.tier) if (by := replay.preemption(uid).preemptor) else None for uid in known}
