"""Who may only create objects in a namespace of their own changes nothing of anybody else's."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.series import Labels
from gputally.accounting.totals.total import Total
from gputally.errors import MalformedObject
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.nodes import Node
from gputally.model.kube.pods import Pod
from gputally.model.observation import Deleted, Upserted
from gputally.model.rules import Limits, Rules
from gputally.shares.request import effective_units
from gputally.shares.schemes import covered
from tests.core.manifests import Json, PodForm, us
from tests.core.replay import Replay
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, LATEST, OPENED
from tests.property.price_lists import book_of, price_lists
from tests.property.strategies import Cluster, clusters
from tests.told import Prices, Told

RULES = Rules(limits=Limits(tenants=1000, tiers=1000))
KINDS: dict[str, tuple[Kind, Any]] = {
    "pod": (Kind.PODS, Pod),
    "node": (Kind.NODES, Node),
    "event": (Kind.EVENTS, Event),
}
QUANTITIES = ("1", "8", "1000", "1e9", "9223372036854775807", "1E", "16Ei", "999999999999999999999")
RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-7g.80gb", "nvidia.com/mig-no", "amd.com/gpu")
VICTIMS = ("p0", "p1", "p2")
FATES = ("stays", "refused", "deleted", "collected")
WAITS = (Total.PENDING, Total.PENDING_COST, Total.PENDING_UNPRICED)
END = HORIZON + 200
Step = tuple[int, str, bool, Json]
"""When it is told, of what kind, whether it is gone, and its form."""


@st.composite
def hostile_pods(draw: st.DrawFn, index: int) -> list[Step]:
    """A pod with whatever its creator may write, bound by hand or not at all, which no kubelet takes up."""
    created = draw(st.integers(0, LATEST - 5))
    form = PodForm(
        name=draw(st.sampled_from([f"m{index}", *VICTIMS])),
        uid=f"uid-m{index}",
        namespace="mallory",
        created=created,
        labels={"team": "red", "kueue.x-k8s.io/queue-name": "theirs", "job-name": "theirs"},
        tier=draw(st.sampled_from(["", "gold", "lead"])),
        priority=draw(st.sampled_from([None, 2**31 - 1])),
        node=draw(st.sampled_from(["n1", "n2", "no-such-node", ""])),
        owners=({"kind": "Job", "name": "theirs", "uid": "uid-p0", "controller": True, "apiVersion": "batch/v1"},),
    )
    manifest = asking(form.manifest(), draw(requests()), draw(requests()))
    fate, later = draw(st.sampled_from(FATES)), min(created + draw(st.integers(1, 30)), LATEST)
    return [(created, "pod", False, manifest), *_ending(manifest, form, fate, later)]


def _ending(manifest: Json, form: PodForm, fate: str, at: int) -> list[Step]:
    if fate == "stays":
        return []
    if fate == "deleted":
        return [(at, "pod", True, manifest)]
    phases: dict[str, dict[str, Any]] = {
        "refused": {"phase": "Failed", "reason": "OutOfnvidia.com/gpu"},
        "collected": {"phase": "Failed", "marked": at, "mark": "DeletionByPodGC"},
    }
    ended = replace(form, **phases[fate]).manifest()["status"]
    if fate == "refused":
        ended["startTime"] = manifest["metadata"]["creationTimestamp"]
    return [(at, "pod", False, {**manifest, "status": ended})]


def requests() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(QUANTITIES), min_size=1, max_size=3)


def asking(manifest: Json, main: dict[str, str], init: dict[str, str]) -> Json:
    """The same pod with these requests of its container and of an init container."""
    containers = [{"name": "main", "resources": {"limits": main}}]
    spec = {"containers": containers, "initContainers": [{"name": "init", "resources": {"limits": init}}]}
    return {**manifest, "spec": {**manifest["spec"], **spec}}


@st.composite
def forged_events(draw: st.DrawFn, index: int) -> list[Step]:
    """An Event in the tenant's own namespace that names others' pods as victim and as preemptor."""
    victim, preemptor = draw(st.sampled_from(VICTIMS)), draw(st.sampled_from(VICTIMS))
    event = {
        "metadata": {"name": f"e{index}", "namespace": "mallory", "uid": f"uid-e{index}"},
        "involvedObject": {"kind": "Pod", "namespace": "mallory", "name": victim, "uid": f"uid-{victim}"},
        "related": {"kind": "Pod", "namespace": "mallory", "name": preemptor, "uid": f"uid-{preemptor}"},
        "reason": "Preempted",
        "message": "Preempted by pod on node n1",
    }
    return [(draw(st.integers(0, LATEST)), "event", False, event)]


@st.composite
def hostile_steps(draw: st.DrawFn) -> list[Step]:
    lives = [draw(hostile_pods(i)) for i in range(draw(st.integers(1, 6)))]
    events = [draw(forged_events(i)) for i in range(draw(st.integers(0, 2)))]
    return [step for life in (*lives, *events) for step in life]


def honest_steps(log: Iterable[Told]) -> list[Step]:
    """What is told of the cluster, whose pods are preempted when they are deleted, nobody tells by whom."""
    return [(told.at, told.kind, told.event != "seen", preempted(told.manifest)) for told in log]


def preempted(manifest: Mapping[str, Any]) -> Json:
    """The same object; marked as preempted by the scheduler if it is a pod that is being deleted."""
    if "deletionTimestamp" not in manifest["metadata"]:
        return dict(manifest)
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = {**manifest["status"], "conditions": [*manifest["status"]["conditions"], mark]}
    return {**manifest, "status": status}


class Found(NamedTuple):
    """Every counter as it is in truth at the end, but those of the hostile tenant, of waits, and zeros.

    What was published may be more: a scrape may fall between a loss and its later cause, at other times in both runs.
    The counters of waits have no tenant, so what the hostile pods wait for is in them. Of these, `waited` is the
    pending time of each other pod in the ledger, and `own` what the counters have beyond that.
    """

    totals: Mapping[tuple[Total, Labels], int]
    waited: Mapping[str, int]
    own: int


def found(steps: list[Step], prices: Prices) -> Found:
    replay = Replay(rules=RULES, book=book_of(prices), opened=OPENED)
    for now in range(HORIZON):
        for _, kind_name, is_gone, manifest in [step for step in steps if step[0] == now]:
            (kind, type_), event = KINDS[kind_name], Deleted if is_gone else Upserted
            replay.apply(event(kind=kind, object=msgspec.convert(manifest, type_), at_us=us(now), since_us=us(now)))
        if now % 10 == 0:
            replay.scrape(now)
    replay.scrape(HORIZON)
    snapshot = replay.scrape(END)
    families = snapshot.totals.items()
    rows = ((t, row) for t, family in families for row in zip(family.labels, family.truths, strict=True))
    others = {(t, labels): value for t, (labels, value) in rows if value and "mallory" not in labels and t not in WAITS}
    waited = Counter[str]()
    for pod in replay.memory.waits.values():
        if pod.namespace != "mallory":
            waited[pod.uid] += pod.wait.quantity * ((pod.wait.to_us or us(END)) - pod.wait.from_us)
    return Found(others, +waited, sum(replay.true(Total.PENDING, END).values()) - waited.total())


def requested(hostile: Iterable[Step]) -> int:
    """What the hostile pods may wait for at most: all they request, from their creation to the end."""
    first = {
        manifest["metadata"]["uid"]: (at, manifest) for at, kind, _, manifest in reversed([*hostile]) if kind == "pod"
    }
    return sum(gpus(manifest) * (us(END) - us(max(at, OPENED))) for at, manifest in first.values())


def gpus(manifest: Json) -> int:
    """µGPU; none of a pod that is refused as malformed."""
    try:
        return covered(effective_units(msgspec.convert(manifest, Pod), RULES), (), RULES)
    except MalformedObject:
        return 0


@given(clusters(), price_lists(), hostile_steps())
@examples(150)
def test_pods_that_nobody_but_their_creator_bound_and_forged_events_change_no_other_counter(
    cluster: Cluster, prices: Prices, hostile: list[Step]
) -> None:
    honest = honest_steps(cluster.log)
    alone, attacked = found(honest, prices), found(honest + hostile, prices)

    assert attacked.totals == alone.totals
    assert attacked.waited == alone.waited
    assert alone.own == 0
    assert 0 <= attacked.own <= requested(hostile)
