"""The truth, independent of the product: every version of every pod that the API sent, and what follows from it.

Written from the API documentation alone, as simply as possible, and without gputally code.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import aclosing, suppress
from datetime import datetime
from decimal import Decimal
from typing import Self

import aiohttp

from tests.cluster.api import Api, Refused
from tests.cluster.manifests import GPU, Json

Group = tuple[str, str, str]
"""Tier, tenant and state."""
Form = tuple[str, Json, int]
"""The event type (ADDED, MODIFIED or DELETED), the pod, and the time of receipt (µs)."""


async def until(holds: Callable[[], bool], *, within: float) -> None:
    """Wait until `holds()` is true; raises TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - the condition sends no signal
            await asyncio.sleep(0.02)


class Bill:
    """GPU-time (µs x µGPU) and exact cost by group; groups with no GPU-time are absent."""

    def __init__(self) -> None:
        self.time: dict[Group, int] = defaultdict(int)
        self.cost: dict[Group, Decimal] = defaultdict(Decimal)

    def add(self, group: Group, gpu_time: int, per_gpu_hour: Decimal) -> None:
        if gpu_time:
            self.time[group] += gpu_time
            self.cost[group] += Decimal(gpu_time) * per_gpu_hour

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bill) and (self.time, self.cost) == (other.time, other.cost)

    __hash__ = None  # type: ignore[assignment]  # it is mutable

    def __repr__(self) -> str:
        return "\n".join(f"{'/'.join(group)}: {gpu_time / 1e12} GPU-s" for group, gpu_time in sorted(self.time.items()))


class Record:
    """Every version of every pod, in the order of receipt."""

    def __init__(self) -> None:
        self.forms: dict[str, list[Form]] = defaultdict(list)

    def take(self, kind: str, pod: Json) -> None:
        """Record a version of a pod, received now."""
        self.forms[pod["metadata"]["uid"]].append((kind, pod, time.time_ns() // 1000))

    async def complete(self, *, within: float = 20) -> None:
        """Wait until the DELETED event of every recorded pod has arrived."""
        await until(self.is_complete, within=within)

    def is_complete(self) -> bool:
        return all(forms[-1][0] == "DELETED" for forms in self.forms.values())

    def bill(self, *, teams: dict[str, str], per_gpu_hour: Decimal) -> Bill:
        """GPU-time and cost of all recorded pods."""
        bill = Bill()
        for forms in self.forms.values():
            pod = forms[-1][1]
            tier = pod["spec"].get("priorityClassName", "none")
            for state, lasted_us in lifetime(forms).items():
                group = tier, teams[pod["metadata"]["namespace"]], state
                bill.add(group, lasted_us * gpus(pod) * 1_000_000, per_gpu_hour)
        return bill

    def allocated(self) -> set[str]:
        """UIDs of the pods that held GPUs for some time."""
        return {uid for uid, forms in self.forms.items() if any(lifetime(forms).values())}

    def victims(self) -> set[str]:
        """UIDs of the pods marked as preempted and deleted."""
        return {uid for uid, forms in self.forms.items() if any(preempted(pod) for _, pod, _ in forms)}


class Recorder(Record):
    """Watches pods while it is open, across broken connections, without missing a version.

    By default all pods; `selected` restricts them, as in `fieldSelector="metadata.namespace!=other"`.
    """

    def __init__(self, api: Api, **selected: str) -> None:
        super().__init__()
        self.api = api
        self._selected = selected
        self._version = ""

    async def __aenter__(self) -> Self:
        await self._list()
        assert not self.forms, "the cluster must not have pods yet"
        self._task = asyncio.create_task(self._record())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def is_complete(self) -> bool:
        if self._task.done():
            self._task.result()  # raises the error that ended it
        return super().is_complete()

    async def _record(self) -> None:
        while True:
            try:
                await self._watch()
            except aiohttp.ClientError:
                pass  # the server is restarting
            except Refused as refusal:
                if refusal.code == 410:  # a restarted server has no history
                    await self._list()
                elif not refusal.passing:
                    raise
            await asyncio.sleep(0.02)

    async def _list(self) -> None:
        """Record the current pods. A pod that vanished during a disconnect would make the truth unknown."""
        listing = await self.api.list("/api/v1/pods", **self._selected)
        gone = {uid for uid, forms in self.forms.items() if forms[-1][0] != "DELETED"}
        for pod in listing["items"]:
            self.take("MODIFIED", pod)
            gone.discard(pod["metadata"]["uid"])
        assert not gone, "pods vanished while the server restarted"
        self._version = listing["metadata"]["resourceVersion"]

    async def _watch(self) -> None:
        async with aclosing(self.api.watch("/api/v1/pods", since=self._version, **self._selected)) as events:
            async for event in events:
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.take(event["type"], event["object"])


def span(forms: list[Form]) -> tuple[int, int]:
    """From the binding to the release (µs). Empty if the pod was never bound, or ended in the same second."""
    bound = [condition for _, pod, _ in forms for condition in bindings(pod)]
    if not bound:
        return 0, 0
    start_us = us(bound[0]["lastTransitionTime"])
    return start_us, max(start_us, release(forms))  # the node's clock may still show the previous second


def lifetime(forms: list[Form], *, begins_us: int | None = None) -> dict[str, int]:
    """The µs that the pod spent in each state, starting at its binding or at `begins_us`."""
    pods = [pod for _, pod, _ in forms]
    start, end = span(forms)
    start = start if begins_us is None else begins_us
    running = min((us(t) for pod in pods for t in times(pod, "startedAt")), default=end)
    asked = min((requested(pod) for pod in pods if "deletionTimestamp" in pod["metadata"]), default=end)
    asked = min(max(asked, start), end)
    running = min(max(running, start), asked)
    return {"starting": running - start, "running": asked - running, "terminating": end - asked}


def release(forms: list[Form]) -> int:
    """When the last container finished, as terminal versions report it.

    Without that, when the first terminal version or the deletion was received.
    """
    ended = [(pod, seen_us) for kind, pod, seen_us in forms if kind == "DELETED" or is_terminal(pod)]
    assert ended, "the pod has not ended"
    return max((us(t) for pod, _ in ended if is_terminal(pod) for t in times(pod, "finishedAt")), default=ended[0][1])


def is_terminal(pod: Json) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def requested(pod: Json) -> int:
    """When deletion was requested (µs). Later versions may show a later time, so callers use the earliest."""
    meta = pod["metadata"]
    grace: int = meta["deletionGracePeriodSeconds"]
    return us(meta["deletionTimestamp"]) - grace * 1_000_000


def preempted(pod: Json) -> bool:
    targets = conditions(pod, "DisruptionTarget")
    return "deletionTimestamp" in pod["metadata"] and any(c["reason"] == "PreemptionByScheduler" for c in targets)


def bindings(pod: Json) -> list[Json]:
    """The condition with the time of binding, if the pod is bound."""
    return [each for each in conditions(pod, "PodScheduled") if each["status"] == "True"]


def conditions(pod: Json, kind: str) -> list[Json]:
    return [c for c in pod["status"].get("conditions", []) if c["type"] == kind]


def times(pod: Json, field: str) -> list[str]:
    states = [status["state"] for status in pod["status"].get("containerStatuses", [])]
    return [state[kind][field] for state in states for kind in state if field in state[kind]]


def gpus(pod: Json) -> int:
    return sum(int(c["resources"].get("limits", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def us(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp()) * 1_000_000
