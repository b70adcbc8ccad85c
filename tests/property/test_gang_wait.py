"""Gangs that start pod by pod: each second of each pod is in one state, whatever is observed when, over crashes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, cycle

from hypothesis import assume, given
from hypothesis import strategies as st

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.totals.total import Total
from tests.core.manifests import Json, NodeForm, PodForm, instant, us
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, OPENED, Draw
from tests.property.test_accounting import NO_PRICES, assert_laws, new_replay
from tests.told import Told

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "b", "uid": "job", "controller": True}
JOB = {"batch.kubernetes.io/job-name": "b", "batch.kubernetes.io/controller-uid": "job"}
JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/jobset-uid": "u"}
TRAINING = {"training.kubeflow.org/job-name": "t"}
NEVER = 10 * HORIZON
STEPS = st.sampled_from(["", "", "", "scrape", "flush", "crash"])


@dataclass(frozen=True, kw_only=True)
class Member:
    """A pod of a gang that never starts if `started` is None, and may be stopped; `gone` is when it is deleted."""

    form: PodForm
    started: int | None
    stopped: int | None
    gone: int | None

    def log(self) -> Iterator[Told]:
        form = replace(self.form, node="", scheduled=None)
        yield seen(form, form.created)
        if self.started is not None and self.form.scheduled is not None:
            form = self.form
            yield seen(replace(form, version=2), self.form.scheduled)
            form = replace(form, started=self.started, version=3)
            yield seen(form, self.started)
        if self.stopped is not None:
            form = replace(form, deleted=self.stopped, version=4, grace=30 if form.node else 0)
            yield seen(form, self.stopped)
        if self.gone is not None:
            yield replace(seen(replace(form, version=5), self.gone), event="gone")

    def states(self, together: int) -> Iterator[tuple[str, int]]:
        """The state of each of its seconds."""
        if self.started is None or self.form.scheduled is None:
            return
        stopped = HORIZON if self.stopped is None else self.stopped
        for second in range(max(self.form.scheduled, OPENED), HORIZON if self.gone is None else self.gone):
            state = "running" if second >= together else "gang_wait"
            yield "terminating" if second >= stopped else "starting" if second < self.started else state, self.form.gpus


@dataclass(frozen=True, kw_only=True)
class Gang:
    """A gang, and how many pods its Job says that it has: None for those that exist."""

    members: tuple[Member, ...]
    size: int | None
    known_at: int
    outage: tuple[int, int]

    def log(self) -> tuple[Told, ...]:
        node = Told(kind="node", event="seen", manifest=NodeForm(name="n1", gpus=64).manifest(), at=1, since=1)
        told = [each for member in self.members for each in member.log()]
        if self.size is not None:
            told.append(job(self.size, self.members[0].form.labels, at=self.known_at))
        return node, *map(self._delayed, sorted(told, key=lambda each: each.at))

    def _delayed(self, told: Told) -> Told:
        begun, over = self.outage
        return replace(told, at=over, since=begun) if begun < told.at <= over and told.event != "gone" else told

    def together(self) -> int:
        """From when on all of it ran."""
        if self.size is None:
            starts = [each.started for each in self.members if each.started is not None]
            given_up = [each.stopped or NEVER for each in self.members if each.started is None]
            return max(starts + given_up)
        return next((second for second in range(HORIZON) if self._running(second) >= self.size), NEVER)

    def _running(self, second: int) -> int:
        lives = [(each.started, HORIZON if each.stopped is None else each.stopped) for each in self.members]
        return sum(started is not None and started <= second < stopped for started, stopped in lives)

    def states(self) -> Counter[str]:
        found, together = Counter[str](), self.together()
        for member in self.members:
            for state, gpus in member.states(together):
                found[state] += gpus
        return +found


def seen(form: PodForm, at: int) -> Told:
    return Told(kind="pod", event="seen", manifest=form.manifest(), at=at, since=at)


def job(size: int, labels: Mapping[str, str], *, at: int) -> Told:
    template = {"metadata": {}, "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    meta = {"name": "b", "namespace": "ml", "uid": "job", "creationTimestamp": instant(1)} | {"labels": dict(labels)}
    numbers = {"parallelism": size, "completions": size, "completionMode": "Indexed"}
    manifest: Json = {"metadata": meta, "spec": {"template": template} | numbers}
    return Told(kind="job", event="seen", manifest=manifest, at=at, since=at)


@st.composite
def sized_gangs(draw: Draw) -> Gang:
    """Any of its pods may stop before all run, and be replaced."""
    size, labels = draw(st.integers(2, 4)), draw(st.sampled_from([JOB, JOB_SET]))
    members = [draw(members_of(f"w{i}", labels, may_stop=True)) for i in range(draw(st.integers(1, 6)))]
    starts, stops = {each.started for each in members}, {each.stopped for each in members}
    assume(not starts & stops - {None})  # within one second, nobody knows which of them came first
    lives = sorted((each.form.created, each.gone or HORIZON) for each in members)
    ends = accumulate((gone for _, gone in lives), max)
    # a gang that has no pods in between starts again
    assume(all(created < end for (created, _), end in zip(lives[1:], ends, strict=False)))
    known_at = draw(st.integers(1, min([each.gone or HORIZON for each in members]) - 1))  # nobody amends deleted pods
    return Gang(members=tuple(members), size=size, known_at=known_at, outage=draw(outages()))


@st.composite
def open_gangs(draw: Draw) -> Gang:
    """All of its pods exist before one starts; some may be given up."""
    members = [draw(members_of(f"w{i}", TRAINING, may_stop=False)) for i in range(draw(st.integers(1, 5)))]
    assert all(each.form.created <= 16 for each in members)
    return Gang(members=tuple(members), size=None, known_at=0, outage=draw(outages()))


@st.composite
def members_of(draw: Draw, name: str, labels: Mapping[str, str], *, may_stop: bool) -> Member:
    created = draw(st.integers(10, 40 if may_stop else 16))
    scheduled = max(17, created) + draw(st.integers(0, 9))
    started = scheduled + draw(st.integers(0, 20)) if draw(st.integers(0, 4)) else None
    is_stopped = draw(st.booleans()) if may_stop or started is None else False
    stopped = (scheduled if started is None else started) + draw(st.integers(1, 20)) if is_stopped else None
    gone = None if stopped is None else stopped + draw(st.integers(0 if started is None else 1, 6))
    owners = (OWNER,) if labels is JOB else ()
    form = PodForm(name=name, created=created, node="n1", scheduled=scheduled, labels=labels, owners=owners)
    return Member(form=replace(form, gpus=draw(st.integers(1, 3))), started=started, stopped=stopped, gone=gone)


def outages() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(1, 80), st.integers(0, 30)).map(lambda pair: (pair[0], sum(pair)))


def by_state(replay: Replay) -> Counter[str]:
    return Counter({state: int(seconds) for state, seconds in replay.by_state(HORIZON, Total.ALLOCATED).items()})


@given(st.one_of(sized_gangs(), open_gangs()), st.lists(STEPS, min_size=1, max_size=30))
@examples(300)
def test_each_second_of_a_gang_is_in_the_state_that_its_pods_were_in(gang: Gang, steps: list[str]) -> None:
    replay = new_replay(NO_PRICES)
    for step, told in with_crashes(replay, gang.log(), partial(next, cycle(steps))):
        if step == "scrape":
            publish(replay.fleet, now_us=us(told.at), ledger={})
    replay.scrape(HORIZON)

    assert by_state(replay) == gang.states()
    assert_laws(replay)
