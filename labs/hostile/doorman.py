"""What a kubelet does with pods that no scheduler sent: it refuses those it has no GPUs for. kwok would run them."""

import asyncio
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Final

import aiohttp

from tests.cluster.api import Api, Refused
from tests.cluster.manifests import Json

HESITATES_S: Final = 1.0
"""As a kubelet does that has just been told of a pod."""
LAST_WORDS: Final = 'ended\x00\n"}# HELP gputally_x\n' + "名" * 1300
"""The longest message a container may leave."""


async def refuse(api: Api, namespace: str, node: str) -> None:
    """For ever: pods of the namespace that placed themselves on the node end as rejected."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    selected = {"fieldSelector": f"spec.nodeName={node}"}
    since = (await api.list(pods, **selected))["metadata"]["resourceVersion"]
    async with asyncio.TaskGroup() as tasks, aclosing(api.watch(pods, since=since, **selected)) as events:
        async for event in events:
            if event["type"] == "ADDED":
                tasks.create_task(_refuse(api, f"{pods}/{event['object']['metadata']['name']}"))


async def _refuse(api: Api, pod: str) -> None:
    await asyncio.sleep(HESITATES_S)
    with suppress(Refused, aiohttp.ClientError):  # it is gone
        await api.patch(f"{pod}/status", {"status": _rejected()})


def _rejected() -> Json:
    """Source: k8s.io/kubernetes pkg/kubelet/kubelet.go, rejectPod; the status manager sets startTime."""
    return {
        "phase": "Failed",
        "reason": "OutOfnvidia.com/gpu",
        "message": f"Pod was rejected: {LAST_WORDS}",
        "startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
