"""Random clusters: what their watches tell, in whole seconds since midnight."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from tests.core.manifests import PodForm
from tests.property.examples import PODS
from tests.property.node_lives import CHIP, LATEST, Change, Draw, Incarnation, incarnations, node_life
from tests.told import Told
from tests.true_nodes import is_gpu

GONE: dict[str, Any] = {"gone": True}
WORKER = {"apiVersion": "x/v1", "kind": "Worker", "name": "w", "uid": "w", "controller": True}
OWNERS = ((), (WORKER,), (WORKER | {"kind": "Forged"},), (WORKER | {"kind": "../../pods#"},))
"""What controls a pod: nothing, a worker, what borrows its UID, what cannot be."""


CLASS = "deviceclass.resource.kubernetes.io/gpu"
CLAIMS: tuple[tuple[str, ...], ...] = ((), (), (), ("gpu",))
MORE: tuple[dict[str, int], ...] = ({}, {}, {}, {CHIP: 1}, {CLASS: 1}, {CHIP: 0})
"""What pods ask for besides, none of which is accounted."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What is told of it, in the order in which it is told."""

    log: tuple[Told, ...]


@st.composite
def clusters(draw: Draw, *, outages: bool = False, relabels: bool = True, prompt: bool = False) -> Cluster:
    """A few nodes and pods; `outages`: nobody watched for a while; `relabels`: labels of nodes come and go.

    `prompt` kubelets accept pods at once.
    """
    nodes = [node for name in ("n1", "n2") for node in draw(incarnations(name, relabels=relabels))]
    lives = [draw(pod_lives(f"p{i}", nodes, prompt=prompt)) for i in range(draw(st.integers(*PODS)))]
    outage = draw(st.tuples(st.integers(5, 60), st.integers(1, 25))) if outages else None
    log = [
        *draw(told("node", [life for node in nodes for life in node_life(node)], outage, relist=draw(st.booleans()))),
        *draw(told("pod", [entry for life in lives for entry in life], outage, relist=draw(st.booleans()))),
    ]
    return Cluster(log=tuple(sorted(log, key=lambda t: (t.at, t.kind))))


@st.composite
def pod_lives(draw: Draw, name: str, nodes: list[Incarnation], *, prompt: bool) -> list[tuple[int, PodForm, bool]]:
    """A pod's forms as (when, form, gone): each step may happen or not, or show."""
    node = draw(st.sampled_from(nodes))
    bound = draw(st.integers(node.form.created, min(node.gone or LATEST, LATEST) - 5))
    waited = draw(st.integers(0, 10))
    by_hand = not draw(st.integers(0, 5))
    offered = sorted(filter(is_gpu, node.layout.capacity)) or ["nvidia.com/gpu"]
    resource = draw(st.sampled_from([*offered * 4, "amd.com/gpu"]))
    form = PodForm(
        name=name,
        created=bound if by_hand else max(0, bound - waited),
        labels=draw(teams()),
        gpus=draw(st.sampled_from([1, 1, 1, 1, 2, 2, 2, 2, 1000, 10**9])),
        resource=resource,
        claims=draw(st.sampled_from(CLAIMS)),
        more=draw(st.sampled_from(MORE)),
        by_claim=draw(st.sampled_from([(), (), (), (resource,)])),
        tier=draw(st.sampled_from(["", "gold", "lead"])),
        owners=draw(st.sampled_from(OWNERS)),
        clock=draw(st.sampled_from([0, 0, 0, 0, 0, -3600, -30, 500])),
        restart_policy=draw(st.sampled_from(["Never", "OnFailure", "Always"])),
    )
    binding = {"node": node.form.name} | ({} if by_hand else {"scheduled": bound})
    binding |= {"accepted": bound} if prompt or form.clock else {}
    unheard = not by_hand and not form.clock and not draw(st.integers(0, 9))
    binding |= {"unscheduled": bound, "accepted": bound} if unheard else {}
    changes = [(bound, binding), *draw(pod_changes(bound))]
    if node.gone is not None and draw(st.booleans()):  # PodGC notices that the node is gone
        changes = [each for each in changes if each[0] < node.gone] + collection(node.gone + draw(st.integers(0, 8)))
    life = [(form.created, form, False)]
    for at, change in sorted(changes, key=lambda pair: pair[0]):
        is_gone = change.pop("gone", False)
        kept = {"accepted": form.accepted} if form.accepted is not None else {}  # a kubelet writes it once
        form = replace(form, **change | kept)
        if is_gone or draw(st.integers(0, 9)):  # some forms nobody sees
            life.append((at, form, is_gone))
        if is_gone:
            break
    return life


def teams() -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from([{}, {"team": "red"}, {"team": "blue"}])


@st.composite
def pod_changes(draw: Draw, bound: int) -> list[Change]:
    """What happens to a pod from its binding on."""
    later = st.integers(bound, LATEST - 1)
    changes: list[Change] = []
    toggles = draw(toggling(draw(later))) if not draw(st.integers(0, 4)) else []
    if draw(st.booleans()):
        changes.append((draw(later), {"labels": draw(teams())}))
    if not draw(st.integers(0, 6)):
        return [*changes, *toggles, *draw(rejection(bound, draw(beginning(bound))))]
    begins = bound
    if not draw(st.integers(0, 2)):
        begins, sidecar = min(bound + draw(st.integers(1, 6)), LATEST - 2), draw(st.booleans())
        changes += [(bound, {"inits": ((bound, None),)})] * draw(st.integers(0, 1))
        changes.append((begins, {"inits": ((bound, None if sidecar else begins),)}))
    if draw(st.booleans()):
        accepted = min(bound + draw(st.integers(0, 20)), LATEST - 1)
        changes.append((accepted, {"accepted": accepted}))
    if not draw(st.integers(0, 5)):
        failed = min(bound + draw(st.integers(0, 10)), LATEST - 1)
        changes.append((failed, {"start_failed": failed, "accepted": bound}))
    if draw(st.booleans()):
        started = min(begins + draw(st.integers(0, 10)), LATEST - 1)
        changes.append((started, {"started": started}))
        changes += draw(crashes(started)) if draw(st.booleans()) else []
    if draw(st.booleans()):
        asked = draw(later)
        changes.append((asked, {"deleted": asked, "grace": draw(st.sampled_from([0, 1, 30]))}))
    changes += draw(marks(draw(later), changes))
    return [*changes, *toggles, *draw(endings(max((at for at, _ in changes), default=bound)))]


@st.composite
def crashes(draw: Draw, started: int) -> list[Change]:
    """Once or twice a container ends by itself, or its kubelet restarts all of the pod in place."""
    changes: list[Change] = []
    for _ in range(draw(st.integers(1, 2))):
        restarts = not draw(st.integers(0, 2)) and started < LATEST - 3
        changes += draw(restart_of_all(started) if restarts else crash(started))
        last = changes[-1][1]
        if last["started"] is None or last["finished"] is not None:
            break
        started = last["started"]
    return changes


@st.composite
def crash(draw: Draw, started: int) -> list[Change]:
    """A container fails or succeeds, is seen to wait for its next run or not, and runs again or not."""
    ended, code = min(started + draw(st.integers(1, 20)), LATEST - 1), draw(st.sampled_from([0, 1, 1]))
    run: dict[str, Any] = {"started": started, "finished": ended, "exit_code": code}
    ends: Change = (ended, run | {"waiting": draw(st.booleans())})
    if draw(st.booleans()):
        return [ends]
    again = min(ended + draw(st.integers(0, 10)), LATEST - 1)
    runs = {"started": again, "finished": None, "exit_code": 0, "before": (started, ended, code), "removed": False}
    return [ends, (again, runs | {"waiting": False})]


@st.composite
def restart_of_all(draw: Draw, started: int) -> list[Change]:
    """A container exits, which its kubelet may notice a second later; it removes all, and starts them again or not."""
    exited = min(started + draw(st.integers(1, 20)), LATEST - 3)
    noticed = exited + draw(st.integers(0, 1))
    exits = {"started": started, "finished": exited, "exit_code": 42, "waiting": False}
    under_way: Change = (noticed, exits | {"restarting": noticed, "restarting_status": "True"})
    nothing: dict[str, Any] = {"started": None, "finished": None, "exit_code": 0, "removed": True, "before": None}
    removed: Change = (noticed + 1, nothing | {"phase": "Running", "accepted": started})
    if not draw(st.integers(0, 3)):
        return [under_way, removed]
    again = min(noticed + 1 + draw(st.integers(0, 10)), LATEST - 1)
    runs = {"started": again, "finished": None, "restarting": noticed + 1, "restarting_status": "False"}
    return [under_way, removed, (again, runs)]


@st.composite
def marks(draw: Draw, at: int, changes: list[Change]) -> list[Change]:
    """A scheduler may mark a pod to preempt it, and take that back as long as nobody asks for its deletion."""
    marked: Change = (at, {"marked": at})
    if draw(st.integers(0, 3)):
        return []
    if any("deleted" in change for _, change in changes) or not draw(st.integers(0, 3)):
        return [marked]
    return [marked, (draw(st.integers(at, LATEST - 1)), {"mark_status": "False"})]


@st.composite
def toggling(draw: Draw, first: int) -> list[Change]:
    """A label that changes again and again, whatever else happens."""
    every, times = draw(st.integers(1, 3)), draw(st.integers(5, 40))
    moments = range(first, min(first + times * every, LATEST), every)
    return [(at, {"labels": {"team": ("red", "blue")[i % 2]}}) for i, at in enumerate(moments)]


def collection(at: int) -> list[Change]:
    """PodGC makes a pod terminal, whatever its containers do, and deletes it."""
    failed = {"phase": "Failed", "marked": at, "mark": "DeletionByPodGC"}
    return [(at, failed), (at, GONE | {"deleted": at, "grace": 0})]


@st.composite
def beginning(draw: Draw, bound: int) -> list[Change]:
    """What a pod had come to when its kubelet restarted: nothing, or it pulled its images, initialized, or ran."""
    kind, accepted = draw(st.integers(0, 3)), min(bound + draw(st.integers(0, 10)), LATEST - 2)
    stages: list[Change] = [
        (accepted, {"accepted": accepted}),
        (accepted, {"accepted": accepted, "inits": ((accepted, None),)}),
        (min(accepted + draw(st.integers(0, 10)), LATEST - 1), {"started": accepted}),
    ]
    return stages[:kind]


@st.composite
def rejection(draw: Draw, bound: int, before: list[Change]) -> list[Change]:
    """The kubelet refuses the pod, at first sight or after a restart; the pod may be deleted some time later.

    One that has not yet looked at all of its pods writes that without the phase at first.
    """
    begun = max((at for at, _ in before), default=bound)
    at = min(begun + draw(st.integers(0, 30 if before else 3)), LATEST)
    removed: Change = (at, {"accepted": at, "statuses": False, "phase": draw(st.sampled_from(["Failed", "Pending"]))})
    refused: Change = (
        min(at + draw(st.integers(0, 2)), LATEST),
        {"accepted": at, "statuses": False, "phase": "Failed", "reason": "UnexpectedAdmissionError"},
    )
    told = [removed, refused] if removed[1]["phase"] == "Pending" else [refused]
    gone = [(min(refused[0] + 5, LATEST), dict(GONE))] if draw(st.booleans()) else []
    return [*before, *told, *gone]


@st.composite
def endings(draw: Draw, after: int) -> list[Change]:
    """A pod finishes with or without a time, is deleted with or without having finished, or goes on."""
    end = min(after + draw(st.integers(1, 30)), LATEST)
    gone: Change = (min(end + 5, LATEST), dict(GONE))
    if draw(st.booleans()):  # the kubelet's last delete moves the deletionTimestamp
        gone[1].update(deleted=gone[0], grace=0)
    finished: Change = (
        end,
        {"phase": "Succeeded", "finished": end - draw(st.integers(0, 2)) if end > after + 2 else end, "waiting": False},
    )
    killed: Change = (end, {"phase": "Failed", "waiting": False})  # a container that ended before keeps its times
    if draw(st.booleans()):
        killed[1].update(deleted=draw(st.integers(after, end)), grace=30)
    terminal: Change = (end, {"phase": "Failed", "lost": draw(st.booleans())})
    return draw(
        st.sampled_from(
            [[], [gone], [finished], [terminal], [killed], [finished, gone], [terminal, gone], [killed, gone]]
        )
    )


@st.composite
def told(
    draw: Draw,
    kind: Literal["pod", "node"],
    lives: list[tuple[int, Any, bool]],
    outage: tuple[int, int] | None,
    *,
    relist: bool,
) -> list[Told]:
    """What a watch tells of these lives: in order, a little late, some of it twice, and of an outage at its end."""
    at = version = 0
    step = draw(st.sampled_from([1, 1, -1]))  # etcd was restored, and versions went back
    log: list[Told] = []
    for when, form, is_gone in sorted(lives, key=lambda life: life[0]):
        at, version = max(at, when + draw(st.integers(0, 2))), version + step
        manifest = replace(form, version=version).manifest()
        entry = Told(kind=kind, event="gone" if is_gone else "seen", manifest=manifest, at=at, since=at)
        log += [entry] * draw(st.sampled_from([1, 1, 1, 2]))
    if outage is None:
        return log
    return _relisted(log, outage) if relist else [_delayed(entry, outage) for entry in log]


def _delayed(entry: Told, outage: tuple[int, int]) -> Told:
    """A watch that resumes tells everything, but late."""
    start, end = outage[0], sum(outage)
    return replace(entry, at=end, since=start) if start < entry.at <= end else entry


def _relisted(log: list[Told], outage: tuple[int, int]) -> list[Told]:
    """A listing has the last forms alone, and what it lacks has vanished."""
    start, end = outage[0], sum(outage)
    before = [entry for entry in log if entry.at <= start]
    missed = {_uid(entry): entry for entry in log if start < entry.at <= end}
    known = {_uid(entry): entry for entry in before}
    listing = [_delayed(entry, outage) for entry in missed.values() if entry.event == "seen"]
    vanished = [
        replace(known[uid], event="vanished", at=end, since=start)
        for uid, entry in missed.items()
        if entry.event == "gone" and uid in known and known[uid].event == "seen"
    ]
    return [*before, *listing, *vanished, *(entry for entry in log if entry.at > end)]


def _uid(entry: Told) -> str:
    uid: str = entry.manifest["metadata"]["uid"]
    return uid
