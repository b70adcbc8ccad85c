"""A gang that loses one of its pods: all lose their work if it restarts, the others wait if it does not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.accounting.totals.total import Total
from gputally.model.lost_work import LostWork
from gputally.model.units import GPU_SECOND
from tests.core.manifests import Json, NodeForm, PodForm, instant, us
from tests.core.replay import Replay
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, OPENED, Draw
from tests.property.test_accounting import NO_PRICES, assert_laws, new_replay
from tests.told import Told

LWS = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "0"}
TRAINING = {"training.kubeflow.org/job-name": "t"}
VOLCANO = {"volcano.sh/job-name": "v"}
JOB = {"batch.kubernetes.io/job-name": "b", "batch.kubernetes.io/controller-uid": "job"}
VERSION = "volcano.sh/job-version"
STEPS = st.sampled_from(["", "", "", "scrape", "flush", "crash"])


@dataclass(frozen=True, kw_only=True)
class Member:
    """One pod of the gang, and its successor; `asked` and `ended` are None if it stays.

    It may end without being asked: it `fails` by itself.
    """

    form: PodForm
    started: int
    asked: int | None
    ended: int | None
    successor: tuple[int, int] | None
    """When it was created, and when it started."""
    fails: bool = False


@dataclass(frozen=True, kw_only=True)
class Gang:
    """The first member is preempted. The second one states a checkpoint, if any does.

    A Volcano job counts its restarts; `suspended` is when the Job was suspended.
    """

    members: tuple[Member, ...]
    checkpoint: int | None
    outage: tuple[int, int]
    suspended: int | None = None

    @property
    def restarts(self) -> bool:
        return self.members[1].asked is not None

    def log(self) -> tuple[Told, ...]:
        node = Told(kind="node", event="seen", manifest=NodeForm(name="n1", gpus=64).manifest(), at=1, since=1)
        told = [each for i, member in enumerate(self.members) for each in self._life(i, member)]
        if self.suspended is not None:
            told.append(
                Told(kind="job", event="seen", manifest=job(self.suspended), at=self.suspended, since=self.suspended)
            )
        ordered = sorted(told, key=lambda each: each.at)
        return node, *(self._delayed(each) for each in ordered)

    def _life(self, index: int, member: Member) -> Iterator[Told]:
        running = replace(member.form, started=member.started)
        yield seen(running, member.started)
        states = {LAST_CHECKPOINT: instant(self.checkpoint)} if index == 1 and self.checkpoint is not None else {}
        if states and self.checkpoint is not None:
            running = replace(running, annotations={**running.annotations, **states}, version=2)
            yield seen(running, self.checkpoint)
        if member.fails and member.ended is not None:
            yield seen(replace(running, phase="Failed", finished=member.ended, exit_code=1, version=3), member.ended)
        if member.asked is not None and member.ended is not None:
            stopping = replace(running, deleted=member.asked, marked=None if index else member.asked, version=3)
            yield seen(stopping, member.asked)
            last = replace(stopping, phase="Failed", finished=member.ended, exit_code=143, version=4)
            yield seen(last, member.ended)
            yield replace(seen(last, member.ended + 1), event="gone")
        if member.successor:
            created, started = member.successor
            counted = {VERSION: "2" if self.restarts else "1"} if VERSION in member.form.annotations else {}
            form = replace(member.form, annotations=counted)
            new = replace(form, uid=f"next-{form.name}", created=created, scheduled=created, version=9)
            yield seen(new, created)
            yield seen(replace(new, started=started, version=10), started)

    def _delayed(self, told: Told) -> Told:
        begun, over = self.outage
        return replace(told, at=over, since=begun) if begun < told.at <= over else told

    def lost(self) -> int:
        """GPU-seconds: of the first, and of all that restarted. Pods of a Job work and share no checkpoint together."""
        gone = [each for each in self.members if not each.fails] if self.restarts else self.members[:1]
        shares = self.members[0].form.labels != JOB
        together = max(each.started for each in self.members) if shares else 0
        return sum(
            each.form.gpus
            * (
                each.ended
                - max(each.started, together, min(self.checkpoint or 0, each.ended) if shares or i == 1 else 0, OPENED)
            )
            for i, each in enumerate(gone)
            if each.ended is not None
        )

    def stalled(self) -> int:
        """GPU-seconds of those that stayed, from the end of the first to the start of its successor."""
        first = self.members[0]
        if self.restarts or first.successor is None or first.ended is None or first.form.labels == JOB:
            return 0
        waiting = [each for each in self.members[1:] if not each.fails]
        return sum(each.form.gpus for each in waiting) * max(0, first.successor[1] - first.ended)


def seen(form: PodForm, at: int) -> Told:
    return Told(kind="pod", event="seen", manifest=form.manifest(), at=at, since=at)


def job(suspended: int) -> Json:
    """The Job of the gang, which a queue evicted."""
    template = {"metadata": {}, "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    condition = {"type": "Suspended", "status": "True", "lastTransitionTime": instant(suspended)}
    meta = {"name": "b", "namespace": "ml", "uid": "job", "creationTimestamp": instant(1)}
    return {"metadata": meta, "spec": {"template": template}, "status": {"conditions": [condition]}}


def fewest_successors(labels: Mapping[str, str], size: int) -> int:
    """How many show a restart: a LeaderWorkerSet and a suspended Job need none, a counter is enough on one."""
    return 0 if labels in (LWS, JOB) else 1 if labels is VOLCANO else size


@st.composite
def gangs(draw: Draw) -> Gang:
    labels: Mapping[str, str] = draw(st.sampled_from([LWS, TRAINING, VOLCANO, JOB]))
    requested, restarts = draw(st.integers(50, 60)), draw(st.booleans())
    size = draw(st.integers(2, 4))
    successors = draw(st.integers(fewest_successors(labels, size), size)) if restarts else 1  # others wait elsewhere
    members = []
    for i in range(size):
        asked = requested + (draw(st.integers(1, 3)) if i else 0) if restarts or not i else None
        ended = None if asked is None else asked + draw(st.integers(0, 6))
        created = requested + draw(st.integers(4, 15))
        started = max(created, ended or 0) + draw(st.integers(1, 10))
        form = PodForm(name=f"w{i}", created=15, node="n1", scheduled=18, gpus=draw(st.integers(1, 3)), labels=labels)
        members.append(
            Member(
                form=replace(form, annotations={VERSION: "1"} if labels is VOLCANO else {}),
                started=draw(st.integers(18, 40)),
                asked=asked,
                ended=ended,
                successor=(created, started) if asked is not None and i < successors else None,
            )
        )
    if draw(st.booleans()):
        members.append(draw(loners(labels, requested)))
    checkpoint = draw(st.none() | st.integers(41, 49))
    outage = draw(st.tuples(st.integers(1, 80), st.integers(0, 30)))
    suspended = requested + draw(st.integers(1, 3)) if labels is JOB and restarts else None
    return Gang(members=tuple(members), checkpoint=checkpoint, outage=(outage[0], sum(outage)), suspended=suspended)


@st.composite
def loners(draw: Draw, labels: Mapping[str, str], requested: int) -> Member:
    """A pod that fails by itself: one of a Job at any time, of others no later than in the second of the request."""
    form = PodForm(name="alone", created=15, node="n1", scheduled=18, gpus=draw(st.integers(1, 3)), labels=labels)
    form = replace(form, annotations={VERSION: "1"} if labels is VOLCANO else {})
    ended = requested + draw(st.integers(-1, 40 if labels is JOB else 0))
    return Member(form=form, started=draw(st.integers(18, 40)), asked=None, ended=ended, successor=None, fails=True)


def found(replay: Replay, total: Total) -> int:
    replay.scrape(HORIZON + 10)
    replay.scrape(HORIZON + 20)
    amount = sum(replay.true(total, HORIZON + 20).values())
    assert amount % GPU_SECOND == 0
    return amount // GPU_SECOND


@given(gangs(), st.lists(STEPS, min_size=1, max_size=30))
@examples(200)
def test_a_gang_loses_what_restarts_and_stalls_where_it_stays_over_crashes(gang: Gang, steps: list[str]) -> None:
    replay = new_replay(NO_PRICES)
    for step, told in with_crashes(replay, gang.log(), partial(next, cycle(steps))):
        if step == "scrape":
            publish(replay.fleet, now_us=us(told.at), ledger={})

    assert (found(replay, Total.LOST), found(replay, Total.STALLED)) == (gang.lost(), gang.stalled())
    assert_laws(replay)


_AGAIN = 40
"""When the pods of a gang are created that had lost others before."""


@dataclass(frozen=True, kw_only=True)
class TornGang:
    """A LeaderWorkerSet that loses pods with their nodes, and restarts. Then the kubelet of one of these reports.

    That pod had `failed` by itself, before the others were lost or because they were: it is no victim. It may be that
    the group had lost a pod `earlier`, the first of these, and that the others had failed then.
    """

    victims: tuple[Member, ...]
    """Pods on nodes that are deleted at their ends; the first to be reported as `failed` is `spared`."""
    others: tuple[Member, ...]
    """Pods that fail because of it."""
    spared: int
    failed: int
    reported: int
    earlier: tuple[Member, ...] = ()

    def log(self) -> tuple[Told, ...]:
        told = [each for member in (*self.earlier, *self.victims, *self.others) for each in self._life(member)]
        spared = self.victims[self.spared]
        form = replace(
            spared.form, started=spared.started, phase="Failed", finished=self.failed, exit_code=1, version=3
        )
        return tuple(sorted([*told, seen(form, self.reported)], key=lambda each: each.at))

    def _life(self, member: Member) -> Iterator[Told]:
        node = Told(kind="node", event="seen", manifest=NodeForm(name=member.form.node).manifest(), at=1, since=1)
        running = replace(member.form, started=member.started)
        yield node
        yield seen(running, member.started)
        assert member.ended is not None
        if member.fails:
            running = replace(running, phase="Failed", finished=member.ended, exit_code=1, version=3)
            yield seen(running, member.ended)
        else:
            yield replace(node, event="gone", at=member.ended, since=member.ended)
        if member in self.earlier:  # before the group starts again
            yield replace(seen(running, _AGAIN - 1), event="gone")

    def lost(self) -> int:
        """GPU-seconds of the other victims and of all that ended because of them, since all worked together."""
        victims = [each for i, each in enumerate(self.victims) if i != self.spared]
        since = min(each.ended or 0 for each in victims)
        spared = replace(self.victims[self.spared], ended=self.failed)
        gone = [*victims, *self.others, *([spared] if self.failed > since else [])]
        return _together(gone, (*self.victims, *self.others)) + _together(self.earlier, self.earlier)


def _together(gone: Sequence[Member], members: Sequence[Member]) -> int:
    """The GPU-seconds of those that are gone, since all members worked."""
    since = max([OPENED, *(each.started for each in members)])
    return sum(each.form.gpus * ((each.ended or 0) - since) for each in gone)


@st.composite
def torn_gangs(draw: Draw) -> TornGang:
    size, created, lost = draw(st.integers(2, 4)), draw(st.sampled_from([15, _AGAIN])), draw(st.integers(50, 60))
    is_victim = draw(st.permutations([True, True, *(draw(st.booleans()) for _ in range(size - 2))]))
    members = [_torn(draw, i, fails=not each, lost=lost, created=created) for i, each in enumerate(is_victim)]
    earlier = [_torn(draw, i, fails=bool(i), lost=24, created=15) for i in range(size if created == _AGAIN else 0)]
    victims = tuple(each for each in members if not each.fails)
    return TornGang(
        victims=victims,
        others=tuple(each for each in members if each.fails),
        spared=draw(st.integers(0, len(victims) - 1)),
        failed=lost + draw(st.sampled_from([-3, -1, 1, 4])),
        reported=draw(st.integers(66, 90)),
        earlier=tuple(earlier),
    )


def _torn(draw: Draw, index: int, *, fails: bool, lost: int, created: int) -> Member:
    form = PodForm(
        name=f"w{index}",
        uid=f"w{index}-{created}",
        created=created,
        node=f"n{index}-{created}",
        scheduled=created + 3,
        gpus=draw(st.integers(1, 3)),
        labels=LWS,
    )
    started, ended = created + draw(st.integers(3, 8)), lost + (draw(st.integers(2, 12)) if fails else 0)
    return Member(form=form, started=started, asked=None, ended=ended, successor=None, fails=fails)


@given(torn_gangs(), st.lists(STEPS, min_size=1, max_size=30))
@examples(100)
def test_what_a_gang_lost_stays_lost_if_one_of_its_victims_proves_to_be_none(gang: TornGang, steps: list[str]) -> None:
    replay = new_replay(NO_PRICES)
    for step, told in with_crashes(replay, gang.log(), partial(next, cycle(steps))):
        if step == "scrape":
            publish(replay.fleet, now_us=us(told.at), ledger={})

    assert found(replay, Total.DISRUPTION_LOST) == gang.lost()
    recorded = [each for each in replay.memory.history["lost_work"].values() if isinstance(each, LostWork)]
    assert sum(each.gpu_time for each in recorded) == gang.lost() * GPU_SECOND
    assert_laws(replay)
