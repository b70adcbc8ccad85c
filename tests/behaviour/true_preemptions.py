"""Who was preempted, by whom and at what loss, as pods and Events of the API server say; without gputally code."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from tests.behaviour.product import PRICE
from tests.behaviour.recorder import Form, Record, bindings, conditions, gpus, preempted, requested, times
from tests.cluster.api import Api
from tests.cluster.manifests import Json
from tests.cluster.objects import seconds

ANNOTATION: Final = "gputally.io/last-checkpoint"
INTERVAL: Final = "gputally.io/checkpoint-interval"
ON_SIGTERM: Final = "gputally.io/saves-on-sigterm"
_LINE: Final = re.compile(r"^gputally-checkpoint=(\S+)$", re.MULTILINE)
_BY: Final = re.compile(r"Preempted by pod ([0-9a-f-]{36}) on node ")
_KILLED: Final = 137
_SERVING: Final = {"inference", "infer", "serving", "serve", "online", "realtime"}
_HOUR: Final = 3600
COMPARED: Final = {"5m": 300, "10m": 600, "15m": 900, "30m": 1800, "1h": _HOUR}


class TruePod:
    """A pod by all of its versions. Times are seconds since the epoch; the API's are whole ones."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms = [pod for _, pod, _ in forms]
        meta, self.spec = self.forms[0]["metadata"], self.forms[-1]["spec"]
        self.uid: str = meta["uid"]
        self.name: str = meta["name"]
        self.namespace: str = meta["namespace"]
        self.labels: Mapping[str, str] = meta.get("labels", {})
        self.created = seconds(meta["creationTimestamp"])
        self.tier: str = self.spec.get("priorityClassName", "none")
        self.node: str = self.spec.get("nodeName", "")
        self.gpus = gpus(self.forms[-1])
        self.bound = self._first(each["lastTransitionTime"] for pod in self.forms for each in bindings(pod))
        self.started = self._first(self._times("startedAt"))
        self.stopped = max(map(seconds, self._times("finishedAt")), default=None)

    @property
    def serves(self) -> bool:
        """Whether the name of its tier says that it serves users: it has no work to lose."""
        return not _SERVING.isdisjoint(re.split(r"[-_.]", self.tier))

    @property
    def ended(self) -> Json:
        """The terminated state of its container; empty if it was never told."""
        states = (
            status["state"] for pod in reversed(self.forms) for status in pod["status"].get("containerStatuses", [])
        )
        return next((state["terminated"] for state in states if "terminated" in state), {})

    @property
    def decided(self) -> float:
        """When the scheduler first marked it: if two pods choose the same victim, it may write the time again."""
        return min(
            seconds(each["lastTransitionTime"])
            for pod in self.forms
            for each in conditions(pod, "DisruptionTarget")
            if each["reason"] == "PreemptionByScheduler"
        )

    @property
    def requested(self) -> float:
        """When it was asked to stop."""
        return min(requested(pod) for pod in self.forms if "deletionTimestamp" in pod["metadata"]) / 1e6

    @property
    def grace(self) -> float:
        """As it was when the deletion was requested."""
        first = next(pod["metadata"] for pod in self.forms if "deletionTimestamp" in pod["metadata"])
        return float(first["deletionGracePeriodSeconds"])

    @property
    def grace_exceeded(self) -> float:
        """For how many seconds more than its grace period it ran."""
        assert self.stopped is not None
        return max(0.0, self.stopped - self.requested - self.grace)

    def stated(self) -> Iterator[tuple[float, str]]:
        """Its checkpoints, each with the way that it states them."""
        for pod in self.forms:
            if text := pod["metadata"].get("annotations", {}).get(ANNOTATION):
                yield seconds(text), "annotation"
        for text in _LINE.findall(self.ended.get("message", "")):
            yield seconds(text), "termination-message"

    def saved(self, shared: Iterable[tuple[float, str]] = ()) -> tuple[float, str]:
        """Up to when its work is saved, and how that is known; `shared` are the checkpoints of its group."""
        assert self.started is not None
        assert self.stopped is not None
        if self.serves:
            return self.stopped, "no-work"
        annotations = self.forms[-1]["metadata"].get("annotations", {})
        found = [*self.stated(), *shared]
        if annotations.get(ON_SIGTERM) == "true" and self.ended["exitCode"] != _KILLED:
            found.append((self.requested, "sigterm"))
        if found:
            at, basis = max(found)
            return min(max(at, self.started), self.stopped), basis
        if minutes := annotations.get(INTERVAL, "").removesuffix("m"):
            return self.stopped - (self.stopped - self.started) % (60 * int(minutes)), "interval"
        return self.started, "start"

    def lost_gpu_seconds(self, shared: Iterable[tuple[float, str]] = ()) -> float:
        """GPU-seconds since its last checkpoint."""
        assert self.stopped is not None
        return (self.stopped - self.saved(shared)[0]) * self.gpus

    def lost_gpu_seconds_at(self, interval: int, *, complete: float = 0.0) -> float:
        """What it would have lost with a checkpoint every `interval` seconds since its start.

        It did not work before its gang was `complete`.
        """
        assert self.started is not None
        assert self.stopped is not None
        if self.serves:
            return 0.0
        saved = self.stopped - (self.stopped - self.started) % interval
        return (self.stopped - max(saved, complete)) * self.gpus

    def _times(self, field: str) -> list[str]:
        return [text for pod in self.forms for text in times(pod, field)]

    def _first(self, texts: Iterable[str]) -> float | None:
        return min(map(seconds, texts), default=None)


class TruePreemptions:
    """All preemptions among recorded pods; `by` has the UIDs of preemptors by those of their victims."""

    def __init__(self, record: Record, by: Mapping[str, str]) -> None:
        self.pods = {uid: TruePod(forms) for uid, forms in record.forms.items()}
        self.victims = {
            uid: self.pods[uid] for uid, forms in record.forms.items() if any(preempted(pod) for _, pod, _ in forms)
        }
        self.by = by

    def rows(self) -> dict[str, Json]:
        """What `gputally preemptions --output json` must show of each victim, but for its replacement."""
        return {uid: self._row(victim) for uid, victim in self.victims.items()}

    def matrix(self) -> dict[tuple[str, str], int]:
        """How often each tier lost GPUs to which."""
        found: dict[tuple[str, str], int] = {}
        for uid, victim in self.victims.items():
            pair = victim.tier, self.pods[self.by[uid]].tier
            found[pair] = found.get(pair, 0) + 1
        return found

    def _row(self, victim: TruePod) -> Json:
        assert victim.stopped is not None
        preemptor = self.pods[self.by[victim.uid]]
        basis = victim.saved()[1]
        return {
            "cause": "preemption",
            "is_certain": True,
            "namespace": victim.namespace,
            "pod": victim.name,
            "tier": victim.tier,
            "node": victim.node,
            "gpus": victim.gpus,
            "decided": victim.decided,
            "requested": victim.requested,
            "stopped": victim.stopped,
            "released": victim.stopped,
            "reused": self._reused(victim),
            "stop_seconds": victim.stopped - victim.requested,
            "grace_seconds": victim.grace,
            "grace_exceeded_seconds": victim.grace_exceeded,
            "preemptor_tier": preemptor.tier,
            "preemptor_namespace": preemptor.namespace,
            "preemptor": preemptor.name,
            "preemptor_uid": preemptor.uid,
            "is_preemptor_inferred": False,
            "lost_basis": basis,
            "is_lost_upper_bound": basis == "start" and victim.lost_gpu_seconds() > 0,
            "lost_pods": int(basis != "no-work"),
            "is_lost_final": True,
            **loss(victim.lost_gpu_seconds()),
            **({"lost_costs": {}} if victim.serves else {}),
            **lost_at([victim]),
        }

    def _reused(self, victim: TruePod) -> float | None:
        """The first binding of GPUs of its node since it stopped; one in the same second counts as later."""
        assert victim.stopped is not None
        others = (pod for pod in self.pods.values() if pod.node == victim.node and pod.gpus and pod is not victim)
        later = (pod.bound for pod in others)
        return min((bound for bound in later if bound is not None and bound >= victim.stopped), default=None)

    def replacements(self, job: str) -> list[TruePod]:
        """The pods of a Job that ran and were created after it had lost one, in the order of their start."""
        own = [pod for pod in self.pods.values() if pod.labels.get("batch.kubernetes.io/job-name") == job]
        since = min((pod.decided for pod in own if pod.uid in self.victims), default=float("inf"))
        return sorted(
            (pod for pod in own if pod.uid not in self.victims and pod.started is not None and pod.created >= since),
            key=lambda pod: pod.started or 0,
        )


def loss(gpu_seconds: float) -> Json:
    """As rows show it, in GPU-hours and money."""
    cost = Decimal(round(gpu_seconds)) * PRICE / _HOUR
    return {"lost_gpu_hours": hours(gpu_seconds), "lost_costs": {"USD": float(round(cost, 6))}}


def lost_at(pods: Collection[TruePod], *, gang: Iterable[TruePod] = ()) -> Json:
    """What they would have lost with a checkpoint at each interval; before all of the `gang` ran, they did not work."""
    stopped = min(pod.stopped for pod in pods if pod.stopped is not None)
    starts = [pod.started for pod in gang if pod.started is not None and pod.started < stopped]  # not replacements
    complete = max(starts, default=0.0)
    lost = {name: sum(pod.lost_gpu_seconds_at(s, complete=complete) for pod in pods) for name, s in COMPARED.items()}
    return {"lost_gpu_hours_at": {name: hours(each) for name, each in lost.items()}}


def hours(gpu_seconds: float) -> float:
    """As rows show them."""
    return float(round(Decimal(round(gpu_seconds)) / _HOUR, 6))


def as_told(row: Json) -> Json:
    """A row with its times as seconds since the epoch."""
    dated = ("decided", "requested", "stopped", "released", "reused", "replaced")
    return row | {name: None if row[name] is None else seconds(row[name]) for name in dated}


def differences(rows: Iterable[Json], truth: Mapping[str, Json]) -> list[str]:
    """What rows show otherwise than the truth, lack or invent."""
    told = {row["id"]: as_told(row) for row in rows}
    found = [f"{uid}: not recorded" for uid in truth.keys() - told.keys()]
    found += [f"{uid}: was not preempted: {told[uid]}" for uid in told.keys() - truth.keys()]
    for uid in truth.keys() & told.keys():
        found += [
            f"{told[uid]['pod']}: {field} is {told[uid][field]}, in truth {value}"
            for field, value in truth[uid].items()
            if told[uid][field] != value
        ]
    return sorted(found)


async def preemptors(api: Api, *namespaces: str) -> dict[str, str]:
    """The UID of the preemptor by that of the victim, from the first of the scheduler's Events: there may be two."""
    paths = [f"/api/v1/namespaces/{each}/events" for each in namespaces]
    events = [event for path in paths for event in (await api.list(path, fieldSelector="reason=Preempted"))["items"]]
    events.sort(key=lambda event: str(event["eventTime"]), reverse=True)
    named = ((event["involvedObject"]["uid"], _BY.match(event["message"])) for event in events)
    return {victim: found[1] for victim, found in named if found}
