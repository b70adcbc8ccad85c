"""Rejects pods that bypass the scheduler, as a kubelet without free GPUs does; kwok would run them."""

import asyncio
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Final

import aiohttp

from tests.cluster.api import Api, Refused
from tests.cluster.manifests import Json

REACTION_S: Final = 1.0
"""The delay of a kubelet after it receives a pod."""
TERMINATION_MESSAGE: Final = 'ended\x00\n"}# HELP gputally_x\n' + "名" * 1300
"""A message of the maximum length of a termination message."""


async def reject(api: Api, namespace: str, node: str) -> None:
    """Reject the namespace's pods on the node, until cancelled."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    selected = {"fieldSelector": f"spec.nodeName={node}"}
    since = (await api.list(pods, **selected))["metadata"]["resourceVersion"]
    async with asyncio.TaskGroup() as tasks, aclosing(api.watch(pods, since=since, **selected)) as events:
        async for event in events:
            if event["type"] == "ADDED":
                tasks.create_task(_reject(api, f"{pods}/{event['object']['metadata']['name']}"))


async def _reject(api: Api, pod: str) -> None:
    await asyncio.sleep(REACTION_S)
    with suppress(Refused, aiohttp.ClientError):  # the pod was deleted
        start = {"startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        await api.patch(f"{pod}/status", {"status": start})  # a kubelet that has just started writes the phase later
        await asyncio.sleep(REACTION_S)
        await api.patch(f"{pod}/status", {"status": _rejected_status() | start})


def _rejected_status() -> Json:
    """Source: k8s.io/kubernetes pkg/kubelet/kubelet.go, rejectPod; the status manager sets startTime."""
    return {
        "phase": "Failed",
        "reason": "OutOfnvidia.com/gpu",
        "message": f"Pod was rejected: {TERMINATION_MESSAGE}",
    }
