"""What restarts in place destroy, of one container or of all, in pods with any containers; against their true runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.accounting.totals.total import Total
from gputally.model.units import GPU_SECOND
from tests.core.manifests import GPU_NAME, Json, NodeForm, PodForm, as_pod, instant
from tests.core.replay import Replay
from tests.property.examples import examples
from tests.property.node_lives import Draw

EXAMPLES = examples(100)
STARTED, NOWHERE = 100, -1
POD = PodForm(
    name="a",
    tier="low",
    created=90,
    node="n1",
    scheduled=95,
    started=STARTED,
    restart_policy="Always",
    restarting_status="",
)
STEPS = st.sampled_from(["", "", "", "flush", "crash"])


class Run(NamedTuple):
    """The run of a pod or container with that number ended at `to`; `since` is None if only its pod shows that."""

    number: int
    since: int | None
    to: int
    is_lost: bool


@dataclass(frozen=True, kw_only=True)
class View:
    """A version of the pod at a time, the run that it shows as the last one that ended, and since when it works.

    `works_since` is `NOWHERE` while none of its GPUs is in use, and None if it says nothing about that.
    """

    at: int
    manifest: Json
    ended: Run | None
    works_since: int | None


@dataclass
class Container:
    """As its kubelet reports it: it runs since `started`, None while it waits; `last` is its run before."""

    gpus: int
    started: int | None = STARTED
    last: Json = field(default_factory=dict)


@dataclass
class Kubelet:
    """Reports a pod; `saved` is its last checkpoint."""

    containers: list[Container]
    now: int = STARTED
    runs: int = 0
    saved: int | None = None
    form: PodForm = POD
    ended: Run | None = None
    views: list[View] = field(default_factory=list)

    @property
    def working(self) -> list[Container]:
        """Those with GPUs."""
        return [each for each in self.containers if each.gpus]

    @property
    def works_since(self) -> int | None:
        """Since when GPUs are in use again; of several containers, only the restart of all says so."""
        if not self.shows_restart:
            return None
        return min((each.started for each in self.working if each.started is not None), default=NOWHERE)

    @property
    def shows_restart(self) -> bool:
        """A single container is reported with its last run; of several, one must still show the restart of all."""
        return len(self.working) == 1 or removed() in [each.last for each in self.working]

    def one_ends(self, which: Container, *, code: int) -> None:
        """It says what was lost only if no other one has GPUs."""
        assert which.started is not None
        if self.working == [which]:
            self.runs += 1
            self.ended = Run(self.runs, which.started, self.now, is_lost=code != 0)
        which.last = terminated(which.started, self.now, code)
        which.started = None
        self.report()

    def starts(self, which: Container) -> None:
        which.started = self.now
        self.report()

    def restarts_all(self, trigger: Container, draw: Draw) -> None:
        """`trigger` exits, and its kubelet may need a second to notice; then it removes all, and starts them again."""
        self.runs += 1
        exited = self.now
        self.now += draw(st.integers(0, 1))
        to = exited if self.working == [trigger] else self.now
        self.ended = Run(self.runs, None, to, is_lost=True)
        self.form = replace(self.form, restarting=self.now, restarting_status="True")
        self.report(works_since=NOWHERE, exited={id(trigger): terminated(trigger.started or 0, exited, 42)})
        self.ended = Run(self.runs, None, self.now, is_lost=True)
        self.now += draw(st.integers(1, 2))
        for each in self.containers:
            each.started, each.last = None, removed()
        self.report(works_since=NOWHERE)
        self.form = replace(self.form, restarting=self.now, restarting_status="False")
        self.ended = Run(self.runs, None, self.now, is_lost=True)
        self.now += draw(st.integers(0, 2))
        for each in self.containers:
            each.started = self.now
            if draw(st.booleans()):
                self.report()
        self.report()

    def ends(self) -> None:
        """The pod is preempted, and stops after 3 s, at once if all of its containers wait."""
        self.form = replace(self.form, marked=self.now, deleted=self.now)
        self.report()
        self.form = replace(self.form, phase="Failed")
        self.now += 3 if any(each.started for each in self.containers) else 0
        stopped = {id(each): terminated(each.started, self.now, 143) for each in self.containers if each.started}
        waited = {id(each): each.last for each in self.containers if each.started is None}
        self.report(works_since=self.works_since, exited=stopped | waited)

    def report(self, *, works_since: int | None = None, exited: Mapping[int, Json] | None = None) -> None:
        manifest = replace(self.form, version=len(self.views) + 1).manifest()
        if self.saved is not None:
            manifest["metadata"]["annotations"] = {LAST_CHECKPOINT: instant(self.saved)}
        manifest["spec"]["containers"] = list(specs(self.containers))
        manifest["status"]["containerStatuses"] = list(statuses(self.containers, exited or {}))
        since = self.works_since if works_since is None else works_since
        ended = self.ended if self.shows_restart or self.form.restarting_status == "True" else None
        self.views.append(View(at=self.now, manifest=manifest, ended=ended, works_since=since))


def terminated(started: int, finished: int, code: int) -> Json:
    return {"terminated": {"startedAt": instant(started), "finishedAt": instant(finished), "exitCode": code}}


def removed() -> Json:
    return {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers", "startedAt": None, "finishedAt": None}}


def specs(containers: Sequence[Container]) -> Iterator[Json]:
    for i, each in enumerate(containers):
        amounts = {GPU_NAME: str(each.gpus)} if each.gpus else {}
        yield {"name": f"c{i}", "resources": {"requests": amounts, "limits": amounts}}


def statuses(containers: Sequence[Container], exited: Mapping[int, Json]) -> Iterator[Json]:
    for i, each in enumerate(containers):
        state: Json = {"waiting": {"reason": "CrashLoopBackOff"}}
        if each.started is not None:
            state = {"running": {"startedAt": instant(each.started)}}
        yield {"name": f"c{i}", "state": exited.get(id(each), state), "lastState": each.last}


@st.composite
def lives(draw: Draw) -> list[View]:
    """A pod whose containers restart up to four times, and that is preempted then."""
    gpus = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3).filter(any))
    kubelet = Kubelet([Container(each) for each in gpus])
    kubelet.report()
    for _ in range(draw(st.integers(1, 4))):
        kubelet.now += draw(st.integers(3, 20))
        if draw(st.booleans()):
            kubelet.saved = kubelet.now - draw(st.integers(0, 2))
            kubelet.report()
        which = draw(st.sampled_from(kubelet.containers))
        if which.started is None:
            kubelet.starts(which)
        elif draw(st.booleans()):
            kubelet.restarts_all(which, draw)
        else:
            kubelet.one_ends(which, code=draw(st.sampled_from([0, 1, 1])))
    kubelet.now += draw(st.integers(1, 20))
    kubelet.ends()
    first, *others, last = kubelet.views
    return [first, *(each for each in others if draw(st.integers(0, 4))), last]


def expected(views: Sequence[View]) -> tuple[int, int]:
    """GPU-seconds lost to restarts and to the preemption, second by second."""
    gpus = sum(int(each["resources"]["limits"].get(GPU_NAME, 0)) for each in views[0].manifest["spec"]["containers"])
    since, known, until, lost, saved = STARTED, 0, 0, 0, [0]
    for view in views:
        saved += [saved_in(view)]
        ended = view.ended
        if ended and ended.number > known:
            known = ended.number
            began = max(until, since if ended.since is None else ended.since)
            if since != NOWHERE or ended.since is not None:
                kept = max(at for at in saved if at <= ended.to)
                lost += gpus * len(range(max(began, kept), ended.to)) * ended.is_lost
                until = ended.to
        since = view.works_since if view.works_since is not None else since
    kept = max(saved)
    return lost, gpus * len(range(max(since, kept), views[-1].at)) if since != NOWHERE else 0


def saved_in(view: View) -> int:
    text = view.manifest["metadata"].get("annotations", {}).get(LAST_CHECKPOINT)
    return next((at for at in range(view.at + 1) if instant(at) == text), 0)


@given(lives(), st.lists(STEPS, min_size=1, max_size=10))
@EXAMPLES
def test_each_run_that_is_to_be_done_again_is_lost_once_over_crashes(views: list[View], steps: list[str]) -> None:
    replay, i, kept, crashes = Replay(), 0, 0, 2
    replay.see(NodeForm(), at=1)
    replay.flush()
    while i < len(views):
        replay.see_pod(as_pod(views[i].manifest), at=views[i].at)
        i += 1
        step = steps[i % len(steps)]
        if step == "flush":
            replay.flush()
            kept = i
        elif step == "crash" and crashes:
            replay.restart()
            i, crashes = kept, crashes - 1
    replay.scrape(300)
    replay.scrape(310)

    restarted, preempted = expected(views)
    assert lost(replay) == {"container_restart": restarted * GPU_SECOND, "preemption": preempted * GPU_SECOND}


def lost(replay: Replay) -> dict[str, int]:
    found = {labels[-1]: amount for labels, amount in replay.true(Total.DISRUPTION_LOST, 310).items()}
    return {"container_restart": 0, "preemption": 0} | found
