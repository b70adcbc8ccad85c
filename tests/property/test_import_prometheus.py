"""Random clusters, scraped with pauses, imported again: exact where the API has a time, else within the stated error.

Pods have sidecars, nodes leave and return, as the same machine or another one, kube-state-metrics moves to another
address, where it may list pods before nodes or nodes before pods, and any series may have a value that cannot be.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.facts.allocation import span_of
from gputally.config.rules_file import default_rules
from gputally.importing.kube_state.history_reader import HistoryReader
from gputally.importing.kube_state.history_scan import scan_history
from gputally.importing.kube_state.node_lives import Excess, NodeAllocations
from gputally.importing.kube_state.pod_samples import RejectedSeries
from gputally.importing.kube_state.prometheus_api import TimeSpan, us_of
from gputally.model.allocation import End
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND
from tests.fakes.kube_state import TARGET, KubeState, LifeOfPod
from tests.fakes.prometheus_history import DirectApi, FakePrometheus
from tests.property.examples import examples

START = 1_759_276_800
LENGTH = 3 * 7200
RULES = default_rules()
EXAMPLES = examples(100)
WINDOW = TimeSpan(START, START + LENGTH)
NODES = ("n1", "n2")
HOSTILE = ("+Inf", "-Inf", "NaN", "1e+300", "-1", "0.5", "9223372036854775808", "3", "253402300799")
PROGRAMS = POD, NODE = "kube_pod_", "kube_node_"


class Machine(Struct, frozen=True, kw_only=True):
    """A Node object in [since, until) (s), with its GPUs. The same machine registers again under another time."""

    node: str
    machine: str
    gpus: int
    model: str
    since: int
    until: int | None


class Cluster(Struct, frozen=True, kw_only=True):
    """Machines and pods, the times of scrapes, and when kube-state-metrics moved.

    The first scrape after that has no series with the prefixes `late`: their objects are not listed yet.
    """

    machines: list[Machine]
    pods: list[LifeOfPod]
    scrapes: list[float]
    moved: float | None = None
    late: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[list[float], list[float]]:
        """The scrapes before and after kube-state-metrics moved."""
        first = [at for at in self.scrapes if self.moved is None or at < self.moved]
        return first, self.scrapes[len(first) :]

    def showing(self, prefix: str) -> list[float]:
        """The scrapes that show the series with this prefix."""
        first, second = self.targets
        return [*first, *second[int(prefix in self.late) :]]

    @property
    def known_until(self) -> float:
        """The last scrape of a kube-state-metrics that shows any of the pods: another one may not watch pods.

        The first scrape of one shows no end, and one that was not scraped for five minutes may still be there.
        """
        first, second = self.targets
        if not first:
            return second[-1]
        shown = second[int(POD in self.late) :]
        is_shown = any(is_scraped(shown, each.scheduled or 0, each.removed) for each in self.pods)
        return second[-1] if is_shown and second[1:] and second[-1] > first[-1] + 300 else first[-1]

    def end_of(self, pod: LifeOfPod) -> int | None:
        """When the pod truly ended: at the latest with its machine, unless a scrape showed that it returned."""
        on = [each for each in self.machines if each.node == pod.node]
        mine = next(i for i, each in enumerate(on) if _has(each, pod.scheduled or 0))
        until = on[mine].until
        for before, after in zip(on[mine:], on[mine + 1 :], strict=False):
            if not before.machine or before.machine != after.machine or after.since > self.scrapes[-1]:
                break
            until = after.until
        return min((end for end in (pod.ended, until) if end is not None), default=None)


def _has(machine: Machine, at: int) -> bool:
    return machine.since <= at and (machine.until is None or at < machine.until)


@st.composite
def machines(draw: st.DrawFn, node: str, *, moving: Sequence[float]) -> list[Machine]:
    """One after the other; the first one was there long before the window. Some leave within the times `moving`."""
    found, since = list[Machine](), START - 86_400
    has_machine = draw(st.booleans())
    cuts = st.integers(600, LENGTH - 600)
    if moving:
        cuts |= st.integers(int(moving[0]) - START, int(moving[-1]) - START)
    for cut in sorted(draw(st.lists(cuts, max_size=3, unique=True))):
        if START + cut - since > 100:
            found.append(_machine(draw, node, since, START + cut, has_machine=has_machine))
            since = START + cut + draw(st.sampled_from([5, 40, 700, 8000]))
    found.append(_machine(draw, node, since, None, has_machine=has_machine))
    return found


def _machine(draw: st.DrawFn, node: str, since: int, until: int | None, *, has_machine: bool) -> Machine:
    name = draw(st.sampled_from(["one", "two"])) if has_machine else ""
    model = {"one": "A100", "two": "H100"}.get(name) or draw(st.sampled_from(["A100", "H100"]))
    return Machine(node=node, machine=f"{node}-{name}" if name else "", gpus=8, model=model, since=since, until=until)


@st.composite
def lives(draw: st.DrawFn, machines: Sequence[Machine]) -> LifeOfPod:
    usable = [each for each in machines if each.since < START + LENGTH - 10]
    assume(usable)
    on = draw(st.sampled_from(usable))
    scheduled = draw(st.integers(max(on.since, START - 3000), (on.until or START + LENGTH) - 10))
    ended = scheduled + draw(st.integers(1, 200) | st.integers(200, 9000))
    phase = draw(st.sampled_from(["Succeeded", "Failed", ""]))
    is_running = draw(st.booleans()) and not phase
    if phase == "Failed" and draw(st.booleans()):
        return draw(rejected_lives(on.node, scheduled, ended))
    return LifeOfPod(
        uid=draw(st.uuids()).hex,
        gpus=draw(st.integers(1, 8)),
        node=on.node,
        created=scheduled - draw(st.sampled_from([0, 1, 40, 500])),
        scheduled=scheduled,
        started=scheduled + draw(st.integers(0, max(0, min(20, ended - scheduled - 1)))),
        ended=None if is_running else ended,
        removed=None if is_running else ended + (draw(st.sampled_from([0, 5, 300, 9000])) if phase else 0),
        phase=phase,
        has_completion=draw(st.booleans()),
        mains_ended=draw(st.none() | st.integers(scheduled, ended)) if phase else None,
    )


@st.composite
def rejected_lives(draw: st.DrawFn, node: str, scheduled: int, ended: int) -> LifeOfPod:
    """Its kubelet rejects the pod at first sight, or after it had accepted it, for instance after a reboot."""
    return LifeOfPod(
        uid=draw(st.uuids()).hex,
        gpus=draw(st.integers(1, 8)),
        node=node,
        created=scheduled - draw(st.sampled_from([0, 1, 40, 500])),
        scheduled=scheduled,
        accepted=draw(st.sampled_from([ended, scheduled])),
        ended=ended,
        removed=ended + draw(st.sampled_from([5, 300, 9000])),
        phase="Failed",
        reason="UnexpectedAdmissionError",
        has_completion=False,
    )


@st.composite
def scrapes(draw: st.DrawFn) -> list[float]:
    """Two to hundreds of them, with pauses."""
    interval = draw(st.sampled_from([15, 30, 60, 300]))
    phase = draw(st.integers(1, 999 * interval)) / 1000
    times = [START + phase + interval * number for number in range(LENGTH // interval - 1)]
    for _ in range(draw(st.integers(0, 5))):
        begin, length = draw(st.integers(0, LENGTH)), draw(st.sampled_from([100, 1500, 4000]))
        times = [at for at in times if not begin <= at - START < begin + length] or times
    return times


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A pod whose machine leaves reports no end of its own: it stays in the API for a while, or for ever.

    Each machine that comes or goes before the last scrape is shown by one: of others, nothing is known.
    """
    times, moved = draw(scrapes()), draw(st.none() | st.floats(START + 1000, START + LENGTH - 2000))
    late = draw(st.sampled_from([(NODE,), (POD,), PROGRAMS, ()]))
    cluster = Cluster(machines=[], pods=[], scrapes=times, moved=moved, late=late)
    showing, (first, second) = cluster.showing(NODE), cluster.targets
    moving = [first[-1], *second[:2]] if first and second else []
    found = [each for node in NODES for each in draw(machines(node, moving=moving))]
    found = [each for each in found if each.since > times[-1] or is_scraped(showing, each.since, each.until)]
    cluster = replace(cluster, machines=found, pods=draw(st.lists(lives(found), min_size=1, max_size=5)))
    return replace(cluster, pods=[_with_loss(draw, cluster, pod) for pod in cluster.pods])


def _with_loss(draw: st.DrawFn, cluster: Cluster, pod: LifeOfPod) -> LifeOfPod:
    lost = cluster.end_of(replace(pod, ended=None))
    if lost is None or (pod.ended is not None and pod.ended <= lost):
        return pod
    removed = lost + draw(st.sampled_from([0, 60, 5000, LENGTH]))
    return replace(pod, ended=None, phase="", reason="", accepted=None, mains_ended=None, removed=removed)


def scraped(cluster: Cluster) -> FakePrometheus:
    """The samples."""
    history, (first, second) = FakePrometheus(), cluster.targets
    for instance, times, late in (("one", first, ()), ("two", second, cluster.late)):
        if not times:
            continue
        state = KubeState(history, times, TARGET | {"instance": instance}, late)
        for each in cluster.machines:
            state.node(
                *(each.node, {"label_nvidia_com_gpu_product": each.model}),
                gpus=each.gpus,
                since=each.since,
                until=each.until,
                created=each.since,
                machine=each.machine,
            )
        state.node("always", {}, gpus=8, created=START - 9)
        for pod in cluster.pods:
            state.pod(pod)
    return history


class Imported(NamedTuple):
    """The pods by UID, what was rejected, and where more was allocated than there is."""

    pods: dict[str, PodRecord]
    rejected: list[RejectedSeries]
    excesses: list[Excess]


def imported(history: FakePrometheus) -> Imported:
    async def read() -> Imported:
        api = DirectApi(history)
        scan = await scan_history(api, WINDOW, RULES, str)
        if scan is None:
            return Imported({}, [], [])
        found, rejected = dict[str, PodRecord](), [*scan.rejected]
        allocated = NodeAllocations(scan.nodes, us_of(scan.window.end_s))
        async for batch in HistoryReader(api, RULES, frozenset()).pods(scan, str):
            found |= {each.uid: each for each in batch if isinstance(each, PodRecord)}
            rejected += [each for each in batch if isinstance(each, RejectedSeries)]
        for record in found.values():
            allocated.add(record)
        return Imported(found, rejected, allocated.excesses())

    return asyncio.run(read())


def is_scraped(times: Sequence[float], since: int, until: int | None) -> bool:
    """Whether a scrape is in [since, until)."""
    place = bisect_left(times, since)
    return place < len(times) and (until is None or times[place] < until)


@EXAMPLES
@given(clusters())
def test_imported_times_are_exact_or_within_the_stated_error(cluster: Cluster) -> None:
    found = imported(scraped(cluster))

    assert found.rejected == []
    for pod in cluster.pods:
        assert pod.scheduled is not None
        if pod.accepted is not None:
            check_rejected(cluster, pod, found.pods.get(pod.uid))
            continue
        assert (pod.uid in found.pods) is is_scraped(cluster.showing(POD), pod.scheduled, pod.removed)
        if pod.uid in found.pods:
            check(cluster, pod, found.pods[pod.uid])


def check_rejected(cluster: Cluster, pod: LifeOfPod, record: PodRecord | None) -> None:
    """It held its GPUs if scrapes showed that it was accepted before, two seconds of clock skew aside."""
    times = cluster.showing(POD)
    scheduled, accepted, ended = pod.scheduled or 0, pod.accepted or 0, pod.ended or 0
    leaves = cluster.end_of(replace(pod, ended=None))
    if record is None or not is_scraped(times, ended, pod.removed) or not is_scraped(times, ended, leaves):
        return  # no scrape showed it, it vanished, or its machine left before a scrape showed the rejection
    assert record.end_by is End.REJECTED
    has_held = span_of(record, None) is not None
    assert not (has_held and accepted == ended)
    if accepted != ended and is_scraped(times, max(scheduled, accepted + 2) + 1, ended):
        assert has_held
        check(cluster, pod, record)


def check(cluster: Cluster, pod: LifeOfPod, record: PodRecord) -> None:
    """Compare the record with the truth."""
    times, ended = cluster.showing(POD), cluster.end_of(pod)
    on = next(each for each in cluster.machines if each.node == pod.node and _has(each, pod.scheduled or 0))
    assert record.terms[0].gpu_model == on.model
    assert record.units == (("nvidia.com/gpu", pod.gpus),)
    assert record.scheduled_us == (pod.scheduled or 0) * US_PER_SECOND
    if ended is None or record.end_us is None:
        assert record.end_us is None
        assert ended is None or cluster.known_until < ended
        return
    ended_us = ended * US_PER_SECOND
    is_dated = pod.phase and pod.has_completion and pod.mains_ended is None
    if is_dated and is_scraped(times, ended, pod.removed):
        assert (record.end_us, record.gap) == (ended_us, None)
    else:
        error_us = record.gap.to_us - record.gap.from_us if record.gap else 0
        assert record.end_us <= ended_us <= record.end_us + error_us


def most_allocated(records: Mapping[str, PodRecord], node: str, until_us: int) -> int:
    """The maximum of allocated GPUs of a node, the slow way; more than 8 for less than a second is rounding."""
    on = [each for each in records.values() if each.node == node]
    spans = [
        (each.scheduled_us or 0, until_us if each.end_us is None else each.end_us, each.units[0][1]) for each in on
    ]
    points = sorted({point for start, end, _ in spans for point in (start, end)})
    held = [sum(gpus for a, b, gpus in spans if a <= point < b) for point in points]
    most = 0
    for first in range(len(points)):
        last = next((i for i in range(first, len(points)) if held[i] <= 8), first)
        if last > first and points[last] - points[first] >= US_PER_SECOND:
            most = max(most, *held[first:last])
    return most or min(8, max(held, default=0))


@EXAMPLES
@given(clusters())
def test_more_than_a_node_has_is_always_named(cluster: Cluster) -> None:
    found = imported(scraped(cluster))

    until_us = us_of(cluster.scrapes[-1])
    for node in NODES:
        most = most_allocated(found.pods, node, until_us)
        named = max((each.most for each in found.excesses if each.node == node), default=0)
        assert named == (most if most > 8 else 0)


@EXAMPLES
@given(clusters(), st.data())
def test_a_value_that_cannot_be_costs_at_most_its_own_pod(cluster: Cluster, data: st.DataObject) -> None:
    history = scraped(cluster)
    expected = imported(history).pods
    broken = data.draw(st.sampled_from([each for each in history.series if each["__name__"].startswith(PROGRAMS)]))
    history.corrupt(broken, data.draw(st.sampled_from(HOSTILE)), first=data.draw(st.sampled_from([0, 1, 5, -1])))

    found = imported(history)

    hit = broken.get("uid", "")
    rejected = {each.object.rpartition("(")[2].rstrip(")") for each in found.rejected}
    assert rejected <= {hit, f"node {broken.get('node')}"}
    assert all(each.series == broken["__name__"] or "clock" in each.reason for each in found.rejected)
    if hit:
        assert {uid: record for uid, record in found.pods.items() if uid != hit} == {
            uid: record for uid, record in expected.items() if uid != hit
        }
    else:
        assert found.pods.keys() == expected.keys()
    for uid in expected.keys() - found.pods.keys():
        assert uid in rejected or broken["__name__"] == "kube_pod_info"
