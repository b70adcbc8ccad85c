"""A small cluster as `PendingNow`: pods hold GPUs, others wait for them. Times are seconds since midnight."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gputally.accounting.fleet.active_pods import read_active
from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.nodes.facts import asset_of
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.past_pods import PastPod, PastVictims
from gputally.ledger.records import WaitRecord
from gputally.model.advice import PriorityChoice
from gputally.model.disruptions import VictimRecord
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.needs import Situation
from gputally.model.pod_record import PodRecord
from gputally.model.price import Basis, Price, Purchase
from gputally.model.rules import Rules
from gputally.model.units import GPU, PICO
from gputally.model.verdicts import Reason, Verdict
from gputally.model.waits import CAUSE_OF, PendingHistory, PendingSegment
from gputally.placement.needs import needs_of, taken_of
from gputally.placement.node_room import place_of
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from tests.core.manifests import GPU_NAME, NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK

H100 = "NVIDIA-H100-80GB-HBM3"
RULES = Rules()


def node(name: str, gpus: int = 8, *, model: str = H100, taints: tuple[dict[str, str], ...] = ()) -> NodeForm:
    capacity = {GPU_NAME: gpus, "pods": 110, "memory": 1 << 40}
    return NodeForm(name=name, capacity=capacity, labels={"nvidia.com/gpu.product": model}, taints=taints)


def holds(name: str, gpus: int, *, on: str, tier: str = "batch", priority: int = 400, namespace: str = "ml") -> PodForm:
    return PodForm(
        name=name, namespace=namespace, gpus=gpus, node=on, tier=tier, priority=priority, scheduled=10, started=20
    )


def waits(name: str, gpus: int, *, tier: str = "batch", priority: int = 400, **more: object) -> PodForm:
    return PodForm(name=name, gpus=gpus, tier=tier, priority=priority, created=60, **more)  # type: ignore[arg-type] # fields


def world(
    nodes: Sequence[NodeForm],
    pods: Sequence[PodForm],
    *,
    at: float = 3600,
    situations: Mapping[str, Situation] | None = None,
    classes: Sequence[PriorityChoice] = (),
    finished: Sequence[PendingHistory] = (),
) -> PendingNow:
    """The state at `at`; `situations` by the name of a pod."""
    replay = Replay(rules=RULES, book=BOOK)
    replay.see(*nodes, at=0)
    replay.see(*pods, at=100)
    read_active(replay.fleet, now_us=us(at))
    room, fleet = _room(nodes, pods), replay.fleet
    records, known = fleet.pods.records, situations or {}
    waiting = [
        _waiting(form, records[form.uid or f"uid-{form.name}"], room, known.get(form.name, Situation()))
        for form in pods
        if not form.node
    ]
    return PendingNow(
        at_us=us(at),
        currency="EUR",
        rules=RULES,
        waiting=waiting,
        records=dict(fleet.pods.records),
        tenants={uid: fleet.pods.namespaces.tenant(each) for uid, each in fleet.pods.records.items() if not each.terms},
        namespaces=frozenset({form.namespace for form in pods} | {"quiet"}),
        running=fleet.disrupted.lost_work.at_risk.running(),
        preempted=fleet.disrupted.preemptions.known,
        finished=finished,
        room=room,
        classes=classes,
        default_class="",
        models=fleet.nodes.models(),
        unaccounted=dict(fleet.unaccounted.entries),
        unrecorded=dict(fleet.unaccounted.objects),
    )


def _room(nodes: Sequence[NodeForm], pods: Sequence[PodForm]) -> Room:
    room = Room()
    for each in nodes:
        place = place_of(msgspec.convert(each.manifest(), Node))
        room.put_node(replace(place, asset=asset_of(each.labels, RULES, frozenset())))
    for form in pods:
        if form.node:
            room.bind(form.node, form.uid or f"uid-{form.name}", taken_of(_pod(form)))
    return room


def _pod(form: PodForm) -> PlaceablePod:
    return msgspec.convert(form.manifest(), PlaceablePod)


def _waiting(form: PodForm, record: PodRecord, room: Room, situation: Situation) -> WaitingPod:
    needs = needs_of(_pod(form), RULES)
    verdict: Verdict = judged(needs, room, situation)
    tier = tier_of_pod(record, RULES)
    return WaitingPod(
        record=record,
        tier=tier,
        tenant=record.namespace,
        quantity=form.gpus * GPU,
        needs=needs,
        situation=situation,
        verdict=verdict,
        since_us=record.created_us,
        waits=(
            wait(Reason.QUOTA, record.created_us, us(1800), form),
            wait(verdict.reason, us(1800), None, form),
        ),
    )


def wait(reason: Reason, from_us: int, to_us: int | None, form: PodForm) -> PendingSegment:
    return PendingSegment(
        reason=reason,
        cause=CAUSE_OF[reason],
        tier=form.tier,
        tenant=form.namespace,
        quantity=form.gpus * GPU,
        from_us=from_us,
        to_us=to_us,
        shown=(form.tier, ""),
        price=PRICE,
    )


PRICE = Price(
    key="k",
    currency="EUR",
    per_gpu_hour=BOOK.rules[0].prices[0].per_gpu_hour,
    rate=int(BOOK.rules[0].prices[0].per_gpu_hour * PICO),
    basis=Basis.NODE,
    purchase=Purchase.ON_DEMAND,
)


class Past:
    """A ledger with these pods."""

    def __init__(self, *pods: PastPod, victims: PastVictims | None = None, from_us: int | None = None) -> None:
        self._pods = pods
        self._victims = victims or PastVictims(None)
        self._from_us = from_us

    def waits(self, uid: str) -> list[WaitRecord]:
        return [each for pod in self._pods for each in pod.waits if each.pod_uid == uid]

    def last_named(self, namespace: str, name: str) -> PastPod | None:
        found = (each for each in self._pods if (each.namespace, each.name) == (namespace, name))
        return next(found, None)

    def victims(self, namespace: str, job: str) -> PastVictims:
        named = [each for each in self._victims.victims if (each.victim_namespace, each.job) == (namespace, job)]
        return self._victims._replace(victims=named)

    def records_from_us(self) -> int | None:
        return self._from_us


def past_pod(*waits: WaitRecord, preempted: VictimRecord | None = None) -> PastPod:
    last = waits[-1]
    return PastPod(
        namespace=last.namespace,
        name=last.name,
        uid=last.pod_uid,
        tier=last.tier,
        tenant=last.tenant,
        quantity=last.quantity,
        waits=waits,
        preempted=preempted,
    )


def waited(name: str, gpus: int, reason: Reason, *, start: float, end: float, namespace: str = "ml") -> WaitRecord:
    return WaitRecord(
        pod_uid=f"uid-{name}",
        from_us=us(start),
        to_us=us(end),
        namespace=namespace,
        name=name,
        tier="batch",
        tenant=namespace,
        quantity=gpus * GPU,
        reason=reason,
        cause=CAUSE_OF[reason],
        occupying_tier="",
        occupying_tenant="",
        price_key=None,
    )
