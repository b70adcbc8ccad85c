"""Every second in which a workload is known to lack pods is charged once, over refusals, quotas and crashes."""

from collections import Counter
from copy import deepcopy
from typing import Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.totals.total import Total
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Condition
from gputally.model.kube.workloads import Job
from gputally.model.observation import Bookmark
from gputally.model.rules import Rules
from gputally.model.units import GPU_SECOND, to_datetime
from tests.core.manifests import GPU_NAME, PodForm, as_event, instant, us
from tests.core.policies import quota
from tests.core.refusals import exceeded, parallel_job
from tests.core.replay import Replay
from tests.property.examples import examples

GPUS: Final = 8
NAMES: Final = ("train", "other")
WEB: Final = "web"
"""A workload whose object is not read: the quota says how many GPUs one of its pods requests."""
RULES: Final = Rules(watched=(Kind.FAILED_CREATES, Kind.QUOTAS), known_tiers=("train",))
ADMISSION: Final = "admission webhook denied the request"
RETRIED: Final = 1200
HOUR: Final = 3600
STEPS = st.one_of(
    st.tuples(st.just("refuse"), st.sampled_from((*NAMES, WEB, WEB)), st.sampled_from([exceeded(), ADMISSION])),
    st.tuples(st.just("pod"), st.just(WEB), st.none()),
    st.tuples(st.just("lacks"), st.sampled_from(NAMES), st.integers(0, 4)),
    st.tuples(st.just("queue"), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("gone"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("quota"), st.integers(4, 9), st.none()),
    st.tuples(st.sampled_from(["flush", "crash", "scrape"]), st.none(), st.none()),
)
HISTORIES = st.lists(st.tuples(st.sampled_from([5, 30, 600, 1300, 3000]), STEPS), min_size=1, max_size=25)


class Refused(NamedTuple):
    """An Event of the API server."""

    message: str
    first: int
    last: int


class Workload:
    """A Job as the API server has it; `queued` is since when it is suspended."""

    def __init__(self) -> None:
        self.lacking = 0
        self.queued: int | None = None
        self.exists = False


class Naive:
    """Charges second by second what one process knows."""

    def __init__(self) -> None:
        self.now = 100
        self.jobs = {name: Workload() for name in NAMES}
        self.refused: dict[str, Refused] = {}
        self.paused: dict[str, tuple[int, int]] = {}
        """Since when a wait is paused, and when that is forgotten."""
        self.open: dict[str, tuple[int, str]] = {}
        """Missing pods, and the cause."""
        self.by_queue: dict[str, bool] = {}
        self.created = 0
        """When the latest pod of the workload that is not read was created."""
        self.charged: dict[str, dict[int, tuple[int, str]]] = {name: {} for name in (*NAMES, WEB)}

    def advance(self, at: int) -> None:
        """Charge what lasts; a refusal that is not repeated pauses, and is forgotten after an hour."""
        for name, terms in self.open.items():
            self.charged[name].update(dict.fromkeys(range(self.now, min(at, self.fresh_until(name))), terms))
        self.now = at
        for name in (*NAMES, WEB):
            if name in self.open and self.fresh_until(name) < at:
                self.paused[name] = self.fresh_until(name), at + HOUR
                del self.open[name]
            if name in self.refused and self.refused[name].last <= at - HOUR:
                self.end(name)
                del self.refused[name]
            if name in self.paused and self.paused[name][1] <= at:
                del self.paused[name]
            self.look(name)

    def fresh_until(self, name: str) -> int:
        """Until when the last refusal is charged."""
        return 10**9 if name in self.jobs and self.jobs[name].queued else self.refused[name].last + RETRIED

    def end(self, name: str) -> None:
        """The wait is over."""
        self.open.pop(name, None)
        self.paused.pop(name, None)

    def look(self, name: str) -> None:
        """What the workload waits for now."""
        if name == WEB:
            self.look_at_web()
            return
        job, refused = self.jobs[name], self.refused.get(name)
        since = job.queued or (refused.first if refused else None)
        if not job.lacking or since is None:
            self.open.pop(name, None)
            return
        if self.fresh_until(name) < self.now:
            if self.by_queue.get(name):
                self.end(name)
            return
        self.by_queue[name] = job.queued is not None
        cause = "quota" if job.queued or (refused and refused.message != ADMISSION) else "other"
        self.charge(name, (job.lacking, cause), since)

    def look_at_web(self) -> None:
        """One pod is refused, until one is created."""
        refused, created = self.refused.get(WEB), self.created if self.created > self.now - HOUR else 0
        if refused and created >= refused.last:
            self.end(WEB)
        elif refused is None or refused.message == ADMISSION:
            self.open.pop(WEB, None)
        elif self.fresh_until(WEB) >= self.now:
            self.charge(WEB, (1, "quota"), max(refused.first, created))

    def charge(self, name: str, terms: tuple[int, str], since: int) -> None:
        """It waits from now on, and during a pause if it did so before."""
        self.open[name] = terms
        paused, _ = self.paused.pop(name, (self.now, 0))
        if since <= paused:
            self.charged[name].update(dict.fromkeys(range(paused, self.now), terms))


class World:
    """An API server, the accounting and the naive charges."""

    def __init__(self) -> None:
        self.replay = Replay(rules=RULES)
        self.naive, self.jobs = Naive(), {name: Workload() for name in NAMES}
        self.events: dict[str, Refused] = {}
        self.pods: list[PodForm] = []
        self.replay.relist(Kind.PODS, at=100, since=None)
        self.replay.relist_objects(Kind.JOBS, at=100)
        self.flush()

    def flush(self) -> None:
        self.replay.flush()
        self.kept = deepcopy(self.naive)

    def crash(self, at: int) -> None:
        """A new process lists the Jobs, then the Events."""
        self.naive = deepcopy(self.kept)
        naive, saved = self.naive, self.naive.now
        naive.paused |= dict.fromkeys(naive.open, (saved, saved + HOUR))
        naive.paused = {name: (since, saved + HOUR) for name, (since, _) in naive.paused.items()}
        naive.open, naive.refused = {}, {}
        naive.jobs = {name: Workload() for name in NAMES}
        naive.advance(at)
        self.replay.restart()
        self.replay.fleet.advance(us(at))
        for name in NAMES:
            self.see_job(name)
        existing = [each for each, job in self.jobs.items() if job.exists]
        self.replay.relist_objects(Kind.JOBS, *map(self.form, existing), at=at)
        naive.created = max((each.created for each in self.pods), default=0)
        for name in self.events:
            self.see_event(name)
        self.replay.see(*self.pods, at=at, since=saved)
        self.replay.apply(Bookmark(kind=Kind.PODS, version="2000", at_us=us(at), since_us=us(at)))
        self.replay.fleet.uncreated.read()

    def step(self, at: int, what: str, name: str | int | None, value: int | str | None) -> None:
        if what == "crash":
            self.crash(at)
            return
        self.naive.advance(at)
        self.replay.fleet.advance(us(at))
        if what == "flush":
            self.flush()
        elif what == "scrape":
            publish(self.replay.fleet, now_us=us(at), ledger={})
        elif what == "quota":
            assert isinstance(name, int)
            found = quota("training", {GPU_NAME: str(name)}, used={GPU_NAME: "1"})
            self.replay.see_object(Kind.QUOTAS, found, at=at)
        elif what == "pod":
            self.create_pod(at)
        elif what == "refuse":
            self.refuse(str(name), str(value), at)
        else:
            self.change(str(name), what, value)

    def refuse(self, name: str, message: str, at: int) -> None:
        known = self.events.get(name)
        is_same = known and known.message == message and known.last > at - HOUR
        self.events[name] = Refused(message, known.first if known and is_same else at, at)
        self.see_event(name)

    def create_pod(self, at: int) -> None:
        by = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": WEB, "uid": f"uid-{WEB}", "controller": True}
        name = f"{WEB}-{len(self.pods)}"
        self.pods.append(PodForm(name=name, gpus=GPUS, created=at, scheduled=at, node="n", owners=(by,)))
        self.replay.see(self.pods[-1], at=at)
        self.naive.created = at
        self.naive.look(WEB)
        self.replay.fleet.uncreated.read()

    def change(self, name: str, what: str, value: int | str | None) -> None:
        job, was = self.jobs[name], self.jobs[name].exists
        job.exists = what != "gone"
        job.lacking = int(value or 0)
        job.queued = (job.queued or self.naive.now) if what == "queue" else None
        if job.exists:
            self.see_job(name)
        elif was:
            self.naive.jobs[name] = Workload()
            self.naive.refused.pop(name, None)
            self.naive.end(name)
            self.replay.lose_object(Kind.JOBS, self.form(name), at=self.naive.now)
        self.replay.fleet.uncreated.read()

    def see_job(self, name: str) -> None:
        naive, job = self.naive, self.jobs[name]
        if not job.exists:
            return
        naive.jobs[name] = deepcopy(job)
        if not job.lacking:
            naive.refused.pop(name, None)
            naive.end(name)
        naive.look(name)
        self.replay.see_object(Kind.JOBS, self.form(name), at=naive.now)
        self.replay.fleet.uncreated.read()

    def see_event(self, name: str) -> None:
        event, naive = self.events[name], self.naive
        if event.last > naive.now - HOUR:
            known = naive.refused.get(name)
            naive.refused[name] = event._replace(first=min(event.first, known.first)) if known else event
            naive.look(name)
        self.replay.see_object(Kind.FAILED_CREATES, event_of(name, event), at=naive.now)
        self.replay.fleet.uncreated.read()

    def form(self, name: str) -> Job:
        job, tier = self.jobs[name], "train" if name == "train" else "x"
        if job.queued is None:
            return parallel_job(name, gpus=GPUS, tier=tier, active=4 - job.lacking)
        suspended = Condition(type="Suspended", status="True", last_transition_time=to_datetime(us(job.queued)))
        found = parallel_job(name, gpus=GPUS, tier=tier, active=4 - job.lacking, queue="q", suspend=True)
        return replace(found, status=replace(found.status, conditions=(suspended,)))


def charged(world: World) -> Counter[tuple[str, str]]:
    """GPU-seconds by exported tier and cause as the naive process charged them."""
    found = Counter[tuple[str, str]]()
    for name, seconds in world.naive.charged.items():
        tier = {"train": "train", WEB: "unknown"}.get(name, "other")
        for pods, cause in seconds.values():
            found[tier, cause] += pods * GPUS
    return found


@given(HISTORIES)
@examples(150)
def test_each_second_without_pods_is_charged_once_to_one_cause(history: list[tuple[int, tuple[str, str, int]]]) -> None:
    world, at = World(), 100
    for after, step in history:
        at += after
        world.step(at, *step)
    end = at + 5
    world.naive.advance(end)
    world.replay.fleet.advance(us(end))
    world.replay.scrape(end)

    counted = {labels: amount // GPU_SECOND for labels, amount in world.replay.true(Total.UNCREATED, end).items()}
    assert counted == charged(world)
    assert sum(world.replay.true(Total.UNCREATED_UNPRICED, end).values()) == sum(charged(world).values()) * GPU_SECOND
    at_least = sum(world.replay.true(Total.UNCREATED_AT_LEAST, end).values())
    assert at_least == len(world.naive.charged[WEB]) * GPUS * GPU_SECOND
    assert world.replay.true(Total.PENDING, end) == {}


def event_of(name: str, event: Refused) -> Event:
    """The Event of a workload, as one object whose last time changes."""
    kind = ("MPIJob", "kubeflow.org/v1") if name == WEB else ("Job", "batch/v1")
    of = dict(zip(("kind", "apiVersion"), kind, strict=True))
    of |= {"name": name, "uid": f"uid-{name}", "namespace": "ml"}
    return as_event(
        {
            "metadata": {"name": f"{name}.1", "namespace": "ml", "uid": f"event-{name}"},
            "involvedObject": of,
            "reason": "FailedCreate",
            "message": event.message,
            "firstTimestamp": instant(event.first),
            "lastTimestamp": instant(event.last),
        }
    )
