"""Workloads of every kind in the owner walk, each with an owner above it."""

from tests.cluster.api import Api
from tests.cluster.manifests import POOL, Json, gpu_node, gpu_pod, metadata, workload

KINDS = ("ReplicaSet", "Deployment", "StatefulSet", "DaemonSet")


async def furnish(api: Api, place: str) -> None:
    """A node with one pod for each kind of workload; the pod's job is the ConfigMap `top-KIND`, in lower case."""
    await api.create(gpu_node(f"{place}-node", pool=place))
    for kind in ("ReplicaSet", "StatefulSet", "DaemonSet"):
        await api.create(await owned_workload(api, kind, place))
    deployment = await api.create(await owned_workload(api, "Deployment", place))
    await api.create(replica_set_without_hash(deployment, place))
    pods = f"/api/v1/namespaces/{place}/pods"
    await api.wait_for_items(
        pods, lambda items: len([each for each in items if each["status"].get("phase") == "Running"]) == 4
    )


async def owned_workload(api: Api, kind: str, place: str) -> Json:
    """Create a workload owned by a ConfigMap. A Deployment is paused, so that it makes no ReplicaSet itself."""
    top = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(f"top-{kind.lower()}", place)}
    specs: dict[str, Json] = {
        "DaemonSet": {},
        "StatefulSet": {"replicas": 1, "serviceName": "none"},
        "ReplicaSet": {"replicas": 1},
    }
    made = made_of(kind, kind.lower(), place, specs.get(kind, {"replicas": 1, "paused": True}))
    made["metadata"]["ownerReferences"] = [controller(await api.create(top))]
    return made


def replica_set_without_hash(deployment: Json, place: str) -> Json:
    """A ReplicaSet as a tool other than the Deployment controller makes it."""
    made = made_of("ReplicaSet", "deployment", place, {"replicas": 1})
    made["metadata"] |= {"name": "hand-made", "ownerReferences": [controller(deployment)]}
    return made


def made_of(kind: str, app: str, place: str, spec: Json) -> Json:
    labels = {"app": app}
    pod = gpu_pod(app, place, labels=labels, nodeSelector={POOL: place})
    pod["spec"]["restartPolicy"] = "Always"
    return workload("apps/v1", kind, pod, spec | {"selector": {"matchLabels": labels}})


def controller(owner: Json) -> Json:
    """An owner reference to the controller."""
    fields = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return fields | {name: owner["metadata"][name] for name in ("name", "uid")} | {"controller": True}
