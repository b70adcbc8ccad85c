"""The truth, independent of the product: every form of every pod as the API told it, and what follows from them.

Written from the API's documentation alone, and as plainly as possible: it knows no gputally.
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
"""ADDED, MODIFIED or DELETED; the pod; when it was received (µs)."""


async def until(holds: Callable[[], bool], *, within: float) -> None:
    """Return once `holds()`; TimeoutError if it takes longer than `within` seconds."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - what it waits for sends no signal
            await asyncio.sleep(0.02)


class Bill:
    """GPU-time (µs x µGPU) and exact cost by group; groups without any time do not exist."""

    def __init__(self) -> None:
        self.time: dict[Group, int] = defaultdict(int)
        self.cost: dict[Group, Decimal] = defaultdict(Decimal)

    def add(self, group: Group, gpu_time: int, per_gpu_hour: Decimal) -> None:
        if gpu_time:
            self.time[group] += gpu_time
            self.cost[group] += Decimal(gpu_time) * per_gpu_hour

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bill) and (self.time, self.cost) == (other.time, other.cost)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return "\n".join(f"{'/'.join(group)}: {gpu_time / 1e12} GPU-s" for group, gpu_time in sorted(self.time.items()))


class Record:
    """Every form of every pod, in the order they came, however they are got hold of."""

    def __init__(self) -> None:
        self.forms: dict[str, list[Form]] = defaultdict(list)

    def take(self, kind: str, pod: Json) -> None:
        """One more form of a pod, received now."""
        self.forms[pod["metadata"]["uid"]].append((kind, pod, time.time_ns() // 1000))

    async def complete(self, *, within: float = 20) -> None:
        """Wait until the DELETED event of every recorded pod is here."""
        await until(self.is_complete, within=within)

    def is_complete(self) -> bool:
        return all(forms[-1][0] == "DELETED" for forms in self.forms.values())

    def bill(self, *, teams: dict[str, str], per_gpu_hour: Decimal) -> Bill:
        """What all recorded pods had and cost."""
        bill = Bill()
        for forms in self.forms.values():
            pod = forms[-1][1]
            tier = pod["spec"].get("priorityClassName", "none")
            for state, lasted_us in lifetime(forms).items():
                group = tier, teams[pod["metadata"]["namespace"]], state
                bill.add(group, lasted_us * gpus(pod) * 1_000_000, per_gpu_hour)
        return bill

    def allocated(self) -> set[str]:
        """UIDs of the pods that had GPUs for any time."""
        return {uid for uid, forms in self.forms.items() if any(lifetime(forms).values())}

    def victims(self) -> set[str]:
        """UIDs of the pods that were marked as preempted and deleted."""
        return {uid for uid, forms in self.forms.items() if any(preempted(pod) for _, pod, _ in forms)}


class Recorder(Record):
    """Watches pods for as long as it is open, through broken connections, without missing a form.

    All pods, or those that `selected` says, as in `fieldSelector="metadata.namespace!=other"`.
    """

    def __init__(self, api: Api, **selected: str) -> None:
        super().__init__()
        self.api = api
        self._selected = selected
        self._version = ""

    async def __aenter__(self) -> Self:
        await self._list()
        assert not self.forms, "the cluster should hold no pods yet"
        self._task = asyncio.create_task(self._record())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def is_complete(self) -> bool:
        if self._task.done():
            self._task.result()  # what ended it
        return super().is_complete()

    async def _record(self) -> None:
        while True:
            try:
                await self._follow()
            except aiohttp.ClientError:
                pass  # the server is restarting
            except Refused as refusal:
                if refusal.code == 410:  # a server that restarted has no history
                    await self._list()
                elif not refusal.passing:
                    raise
            await asyncio.sleep(0.02)

    async def _list(self) -> None:
        """Take in what there is now. A pod that vanished meanwhile would make the truth unknown."""
        listing = await self.api.list("/api/v1/pods", **self._selected)
        gone = {uid for uid, forms in self.forms.items() if forms[-1][0] != "DELETED"}
        for pod in listing["items"]:
            self.take("MODIFIED", pod)
            gone.discard(pod["metadata"]["uid"])
        assert not gone, "pods vanished while the server restarted"
        self._version = listing["metadata"]["resourceVersion"]

    async def _follow(self) -> None:
        async with aclosing(self.api.watch("/api/v1/pods", since=self._version, **self._selected)) as events:
            async for event in events:
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.take(event["type"], event["object"])


def span(forms: list[Form]) -> tuple[int, int]:
    """From the binding to the release (µs); the same moment twice for a pod never bound, or over in that second."""
    marks = [mark for _, pod, _ in forms for mark in bindings(pod)]
    if not marks:
        return 0, 0
    start_us = us(marks[0]["lastTransitionTime"])
    return start_us, max(start_us, release(forms))  # a node may read its clock in the second before


def lifetime(forms: list[Form], *, begins_us: int | None = None) -> dict[str, int]:
    """µs that the pod spent in each state, from its binding on, or from `begins_us`."""
    pods = [pod for _, pod, _ in forms]
    start, end = span(forms)
    start = start if begins_us is None else begins_us
    running = min((us(t) for pod in pods for t in times(pod, "startedAt")), default=end)
    asked = min((requested(pod) for pod in pods if "deletionTimestamp" in pod["metadata"]), default=end)
    asked = min(max(asked, start), end)
    running = min(max(running, start), asked)
    return {"starting": running - start, "running": asked - running, "terminating": end - asked}


def release(forms: list[Form]) -> int:
    """The last container's end that a terminal form tells; else when the first of those, or the deletion, was seen."""
    over = [(pod, seen_us) for kind, pod, seen_us in forms if kind == "DELETED" or is_terminal(pod)]
    assert over, "the pod has not ended"
    return max((us(t) for pod, _ in over if is_terminal(pod) for t in times(pod, "finishedAt")), default=over[0][1])


def is_terminal(pod: Json) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def requested(pod: Json) -> int:
    """The deletion's request; later forms may show a later one, so the earliest counts."""
    meta = pod["metadata"]
    grace: int = meta["deletionGracePeriodSeconds"]
    return us(meta["deletionTimestamp"]) - grace * 1_000_000


def preempted(pod: Json) -> bool:
    marks = conditions(pod, "DisruptionTarget")
    return "deletionTimestamp" in pod["metadata"] and any(c["reason"] == "PreemptionByScheduler" for c in marks)


def bindings(pod: Json) -> list[Json]:
    """The condition that tells when the pod was bound, if it does."""
    return [mark for mark in conditions(pod, "PodScheduled") if mark["status"] == "True"]


def conditions(pod: Json, kind: str) -> list[Json]:
    return [c for c in pod["status"].get("conditions", []) if c["type"] == kind]


def times(pod: Json, field: str) -> list[str]:
    states = [status["state"] for status in pod["status"].get("containerStatuses", [])]
    return [state[kind][field] for state in states for kind in state if field in state[kind]]


def gpus(pod: Json) -> int:
    return sum(int(c["resources"].get("limits", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def us(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp()) * 1_000_000
