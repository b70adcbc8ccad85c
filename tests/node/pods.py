"""What becomes of pods, by the API, and their processes, by this machine."""

import asyncio
from contextlib import aclosing, suppress
from pathlib import Path

from tests.cluster.api import Api
from tests.cluster.manifests import Json, path
from tests.cluster.objects import container_state, seconds

SLEEP = b"sleep\x001000000\x00"
"""The command line of what node_pod runs; a pod's sandbox sleeps otherwise."""


async def running(api: Api, pod: Json) -> Json:
    found = await api.wait_for(path(pod), lambda found: found is not None and found["status"]["phase"] == "Running")
    assert found
    return found


async def deleted(api: Api, pod: Json) -> Json:
    """The last state of a pod that is on its way out."""
    return (await forms(api, pod))[-1]


async def forms(api: Api, pod: Json) -> list[Json]:
    """All that a pod becomes until it is gone."""
    meta, found = pod["metadata"], list[Json]()
    changes = api.watch(f"/api/v1/namespaces/{meta['namespace']}/pods", since=meta["resourceVersion"])
    async with asyncio.timeout(30), aclosing(changes):
        async for change in changes:
            if change["object"]["metadata"].get("uid") == meta["uid"]:
                found.append(change["object"])
                if change["type"] == "DELETED":
                    return found
    raise AssertionError(f"the watch ended, and {meta['name']} lives")


def deletion_asked_s(forms: list[Json]) -> float:
    """When it was first asked to end; its last form tells when it was removed."""
    meta = next(form["metadata"] for form in forms if "deletionTimestamp" in form["metadata"])
    return seconds(meta["deletionTimestamp"]) - float(meta["deletionGracePeriodSeconds"])


def waits_for(pod: Json | None) -> str:
    """Why the first container does not run yet; empty if it does."""
    if pod is None or not pod["status"].get("containerStatuses"):
        return ""
    reason: str = container_state(pod, "waiting").get("reason", "")
    return reason


def process_of(pod: Json) -> int:
    """The pid, as the node's driver would name it, of what a running pod of node_pod runs."""
    uid = pod["metadata"]["uid"]
    [pid] = [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if is_of(folder, uid)]
    return pid


def is_of(folder: Path, uid: str) -> bool:
    with suppress(OSError):  # it ended meanwhile
        return uid in (folder / "cgroup").read_text() and (folder / "cmdline").read_bytes() == SLEEP
    return False
