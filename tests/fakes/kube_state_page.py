"""What kube-state-metrics exports of the pods and nodes of an API server, as far as `gputally import` reads it.

Source: kubernetes/kube-state-metrics internal/store/pod.go and node.go.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from aiohttp import web

from gputally.importing.kube_state.series_names import key_name
from tests.cluster.api import Api
from tests.cluster.manifests import Json
from tests.prometheus.receiver import listening

PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
Sample = tuple[str, Mapping[str, str], float]


@asynccontextmanager
async def kube_state_page(api: Api) -> AsyncIterator[str]:
    """The URL of a page that lists pods and nodes again for each scrape."""

    async def answer(_request: web.Request) -> web.Response:
        pods, nodes = await api.list("/api/v1/pods"), await api.list("/api/v1/nodes")
        samples = [sample for pod in pods["items"] for sample in of_pod(pod)]
        samples += [sample for node in nodes["items"] for sample in of_node(node)]
        text = "".join(f"{name}{{{_written(labels)}}} {value}\n" for name, labels, value in sorted(samples, key=_name))
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    application = web.Application()
    application.router.add_get("/metrics", answer)
    async with listening(application) as url:
        yield url


def of_node(node: Json) -> Iterator[Sample]:
    name = {"node": node["metadata"]["name"]}
    labels = {key_name("label", key): value for key, value in node["metadata"].get("labels", {}).items()}
    yield "kube_node_labels", name | labels, 1
    yield "kube_node_created", name, _seconds(node["metadata"]["creationTimestamp"])
    yield "kube_node_info", name | {"system_uuid": node["status"].get("nodeInfo", {}).get("systemUUID", "")}, 1
    gpus = float(node["status"].get("capacity", {}).get("nvidia.com/gpu", 0))
    yield "kube_node_status_capacity", name | {"resource": "nvidia_com_gpu", "unit": "integer"}, gpus


def of_pod(pod: Json) -> Iterator[Sample]:
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    ids = {"namespace": meta["namespace"], "pod": meta["name"], "uid": meta["uid"]}
    node = {"node": spec.get("nodeName", "")}
    yield "kube_pod_info", ids | node | {"priority_class": spec.get("priorityClassName", "")}, 1
    yield "kube_pod_created", ids, _seconds(meta["creationTimestamp"])
    yield "kube_pod_labels", ids | {key_name("label", key): text for key, text in meta.get("labels", {}).items()}, 1
    if "deletionTimestamp" in meta:
        yield "kube_pod_deletion_timestamp", ids, _seconds(meta["deletionTimestamp"])
    for phase in PHASES:
        yield "kube_pod_status_phase", ids | {"phase": phase}, float(status["phase"] == phase)
    for container in spec["containers"]:
        for resource, amount in container["resources"].get("requests", {}).items():
            if resource == "nvidia.com/gpu":
                labels = ids | node | {"container": container["name"], "resource": "nvidia_com_gpu", "unit": "integer"}
                yield "kube_pod_container_resource_requests", labels, float(amount)
    for container in spec.get("initContainers", ()):
        policy = {"container": container["name"], "restart_policy": container.get("restartPolicy", "")}
        yield "kube_pod_init_container_info", ids | policy, 1
    for owner in meta.get("ownerReferences", ()):
        named = {"owner_kind": owner["kind"], "owner_name": owner["name"], "owner_is_controller": "true"}
        yield "kube_pod_owner", ids | named, 1
    yield from _of_status(ids, status)


def _of_status(ids: Mapping[str, str], status: Json) -> Iterator[Sample]:
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            yield "kube_pod_status_scheduled_time", ids, _seconds(condition["lastTransitionTime"])
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            yield "kube_pod_status_disruption_reason", {**ids, "reason": condition["reason"]}, 1
    ends = []
    for container in status.get("containerStatuses", ()):
        ended = {**ids, "container": container["name"]}
        yield "kube_pod_container_status_terminated", ended, float("terminated" in container["state"])
        for state in container["state"].values():
            if "startedAt" in state:
                labels = {**ids, "container": container["name"]}
                yield "kube_pod_container_state_started", labels, _seconds(state["startedAt"])
        ends += [_seconds(state["finishedAt"]) for state in container["state"].values() if "finishedAt" in state]
    if ends:
        yield "kube_pod_completion_time", ids, max(ends)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _written(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items() if value)


def _name(sample: Sample) -> str:
    return sample[0]
