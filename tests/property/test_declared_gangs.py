"""Gangs whose PodGroup is observed early or late, changes its minimum and is deleted, over outages and crashes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Literal, NamedTuple

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from gputally.accounting.fleet.snapshot import publish
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from tests.core.gang_pods import TASK
from tests.core.manifests import Json, NodeForm, instant, us
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.kinds import KINDS
from tests.property.node_lives import HORIZON, OPENED, Draw
from tests.property.test_accounting import RULES, assert_laws, tell
from tests.property.test_gang_wait import NEVER, STEPS, Member, by_state, members_of, outages
from tests.told import Told

Api = Literal["coscheduling", "volcano"]
NAMES: Mapping[Api, tuple[Json, Json]] = {
    "coscheduling": ({"scheduling.x-k8s.io/pod-group": "g"}, {}),
    "volcano": ({}, {"scheduling.k8s.io/group-name": "g"}),
}
"""Labels and annotations of pods that name the group."""
TASKS = ("ps", "worker")


class Minimum(NamedTuple):
    """How many pods are needed, and of Volcano how many of each task, unless these are more together."""

    pods: int
    tasks: Mapping[str, int] = {}

    @property
    def counted(self) -> Mapping[str, int]:
        """The minimums of tasks that count."""
        return self.tasks if sum(self.tasks.values()) <= self.pods else {}


@dataclass(frozen=True)
class Declaration:
    """An object that was created at `created` and is observed first at `known`; `changes` are (when, minimum).

    The first change is the minimum at its creation. It is `gone` at last, unless that is None.
    """

    uid: str
    created: int
    known: int
    changes: tuple[tuple[int, Minimum], ...]
    gone: int | None

    def log(self, api: Api) -> Iterator[Told]:
        for version, (at, least) in enumerate(self.changes):
            yield self._seen(api, least, at=self.known if version == 0 else at, version=version)
        if self.gone is not None:
            yield replace(self._seen(api, self.changes[-1][1], at=self.gone, version=9), event="gone")

    def _seen(self, api: Api, least: Minimum, *, at: int, version: int) -> Told:
        meta = {"name": "g", "namespace": "ml", "uid": self.uid, "creationTimestamp": instant(self.created)}
        spec = {"minMember": least.pods} | ({"minTaskMember": least.tasks} if api == "volcano" else {})
        manifest = {"metadata": meta | {"resourceVersion": str(version)}, "spec": spec}
        return Told(kind=api, event="seen", manifest=manifest, at=at, since=at)


@dataclass(frozen=True, kw_only=True)
class DeclaredGang:
    """A gang, all of whose pods exist before one starts, and its declarations one after the other."""

    api: Api
    members: tuple[Member, ...]
    declarations: tuple[Declaration, ...]
    outage: tuple[int, int]

    def log(self) -> tuple[Told, ...]:
        node = Told(kind="node", event="seen", manifest=NodeForm(name="n1", gpus=64).manifest(), at=1, since=1)
        pods = [each for member in self.members for each in member.log()]
        objects = [each for declaration in self.declarations for each in declaration.log(self.api)]
        # a change counts once it is observed, which is after all that is observed of pods by then
        told = [*((each.at, each) for each in pods), *((self._seen(each.at), each) for each in objects)]
        return node, *(self._delayed(each) for _, each in sorted(told, key=lambda pair: pair[0]))

    def _delayed(self, told: Told) -> Told:
        begun, over = self.outage
        is_delayed = begun < told.at <= over and (told.kind != "pod" or told.event != "gone")
        return replace(told, at=over, since=begun) if is_delayed else told

    def least(self, second: int) -> Minimum | None:
        """The minimum that counts then: since the creation, but changes only since they were observed.

        An object that replaces another one says when that was gone at the latest.
        """
        for each in reversed(self.declarations):
            over = HORIZON if each.gone is None else self._seen(each.gone)
            if each.created <= second < over:
                (_, first), *later = each.changes
                return next((least for at, least in reversed(later) if self._seen(at) <= second), first)
        return None

    def _seen(self, second: int) -> int:
        begun, over = self.outage
        return over if begun < second <= over else second

    def together(self) -> int:
        """The first second in which as many ran as were needed."""
        return next((second for second in range(HORIZON) if self._is_complete(second)), NEVER)

    def _is_complete(self, second: int) -> bool:
        least = self.least(second)
        running = [each for each in self.members if each.started is not None and each.started <= second]
        if least is not None and least.pods <= len(self.members):
            known, tasks = Counter(map(task_of, self.members)), Counter(map(task_of, running))
            needed = least.counted.items() if self.api == "volcano" else ()
            return len(running) >= least.pods and all(tasks[task] >= n for task, n in needed if known[task])
        if least is None and self.api == "volcano":
            return len(running) > 0
        stops = [each.stopped if each.started is None else each.started for each in self.members]
        return all(stop is not None and stop <= second for stop in stops)

    def states(self) -> Counter[str]:
        found, together = Counter[str](), self.together()
        for member in self.members:
            for state, gpus in member.states(together):
                found[state] += gpus
        return +found


def task_of(member: Member) -> str:
    return member.form.labels.get(TASK, "")


@st.composite
def minimums(draw: Draw) -> Minimum:
    return Minimum(draw(st.integers(2, 7)), draw(st.dictionaries(st.sampled_from(TASKS), st.integers(0, 4))))


@st.composite
def declarations(draw: Draw) -> tuple[Declaration, ...]:
    """Up to two objects of one name; the first is older than its pods."""
    times = sorted(draw(st.lists(st.integers(1, HORIZON - 1), min_size=8, max_size=8, unique=True)))
    leasts = [draw(minimums()) for _ in times]
    found, since = [], draw(st.integers(1, 9))
    for number in range(draw(st.integers(0, 2))):
        known, *later = times[4 * number : 4 * number + 4]
        changes = [(since, leasts[4 * number]), *zip(later[:2], leasts[4 * number + 1 :], strict=False)]
        changes = changes[: draw(st.integers(1, 3))]
        gone = later[2] if number == 0 and draw(st.booleans()) else None
        found.append(Declaration(f"g{number}", min(since, known), known, tuple(changes), gone))
        if gone is None:
            break
        since = draw(st.integers(gone + 1, max(gone + 1, times[4])))
    return tuple(found)


@st.composite
def declared_gangs(draw: Draw) -> DeclaredGang:
    """Some pods may be given up before they start."""
    api: Api = draw(st.sampled_from(["coscheduling", "volcano"]))
    labels, annotations = NAMES[api]
    members = [draw(members_of(f"w{i}", labels, may_stop=False)) for i in range(draw(st.integers(1, 5)))]
    members = [replace(each, form=replace(each.form, annotations=annotations)) for each in members]
    if api == "volcano" and draw(st.booleans()):
        tasks = [{TASK: draw(st.sampled_from(TASKS))} for _ in members]
        members = [
            replace(each, form=replace(each.form, labels=task)) for each, task in zip(members, tasks, strict=True)
        ]
    found = DeclaredGang(api=api, members=tuple(members), declarations=draw(declarations()), outage=draw(outages()))
    moments = {each.started for each in members} | {each.stopped for each in members}
    changed = [at for each in found.declarations for at, _ in each.changes] + [each.gone for each in found.declarations]
    seen = [found._seen(each) for each in changed if each is not None]
    given_up = any(each.started is None and each.stopped for each in members)
    least = max((least.pods for each in found.declarations for _, least in each.changes), default=0)
    # what a pod was that was given up before anybody knew of a gang, nobody amends
    assume(not (api == "volcano" and given_up and least > len(members)))
    # within one second, nobody knows which of them came first
    assume(len(seen) == len({*seen}) and not (moments & {*seen}) - {None})
    return found


def new_replay() -> Replay:
    return Replay(rules=msgspec.structs.replace(RULES, watched=OPTIONAL_RESOURCES), opened=OPENED)


@given(declared_gangs(), st.lists(STEPS, min_size=1, max_size=30))
@examples(500)
def test_each_second_of_a_gang_follows_the_minimum_that_was_declared_then(gang: DeclaredGang, steps: list[str]) -> None:
    replay = new_replay()
    kind, type_ = KINDS[gang.api]

    def restarted(kept: tuple[Told, ...]) -> None:
        told = [each for each in kept if each.kind == gang.api]
        existing = [each for each in told[-1:] if each.event == "seen"]
        replay.relist_objects(
            kind, *(msgspec.convert(each.manifest, type_) for each in existing), at=kept[-1].at if kept else 1
        )

    for step, told in with_crashes(replay, gang.log(), partial(next, cycle(steps)), restarted):
        if step == "scrape":
            publish(replay.fleet, now_us=us(told.at), ledger={})
    replay.scrape(HORIZON)

    assert by_state(replay) == gang.states()
    assert_laws(replay)


@given(declared_gangs())
@examples(200)
def test_no_counter_falls_while_what_was_declared_is_learnt(gang: DeclaredGang) -> None:
    replay, now = new_replay(), OPENED
    for told in gang.log():
        tell(replay, told)
        now = max(now, told.at)
        replay.scrape(now)
    replay.scrape(HORIZON)

    assert by_state(replay) == gang.states()
