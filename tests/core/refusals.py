"""Jobs whose pods are refused, and the Events FailedCreate of their controllers."""

import msgspec

from gputally.model.kube.events import Event
from gputally.model.kube.workloads import Job
from tests.core.manifests import GPU_NAME, Json, PodForm, as_event, instant


def exceeded(name: str = "training", *, requested: int = 8, used: int = 5, limited: int = 6) -> str:
    """The API server's answer to a pod with GPUs that exceeds a quota."""
    amounts = {"requested": requested, "used": used, "limited": limited}
    return f"exceeded quota: {name}, " + ", ".join(
        f"{what}: requests.{GPU_NAME}={amount}" for what, amount in amounts.items()
    )


def failed_create(message: str, *, name: str = "train", namespace: str = "ml", at: int = 60, **named: str) -> Event:
    """An Event of the Job `name`; `named` changes the reference, `of_namespace` its namespace."""
    of: Json = {"kind": "Job", "apiVersion": "batch/v1", "name": name, "uid": f"uid-{name}"}
    of["namespace"] = named.pop("of_namespace", namespace)
    return as_event(
        {
            "metadata": {"name": f"{name}.{at}", "namespace": namespace, "uid": f"event-{name}-{at}"},
            "involvedObject": of | named,
            "reason": "FailedCreate",
            "message": message,
            "firstTimestamp": instant(at),
            "lastTimestamp": instant(at),
        }
    )


def pod_template(gpus: int = 8, tier: str = "train", model: str = "") -> Json:
    """The template of such pods, which select that GPU model."""
    selector = {"nvidia.com/gpu.product": model} if model else {}
    spec = PodForm(gpus=gpus, tier=tier, node_selector=selector).manifest()["spec"]
    return {"spec": {key: value for key, value in spec.items() if key != "nodeName"}}


def parallel_job(
    name: str = "train",
    *,
    gpus: int = 8,
    tier: str = "train",
    conditions: tuple[str, ...] = (),
    queue: str = "",
    model: str = "",
    **fields: object,
) -> Job:
    """A Job of 4 pods; `fields` of its spec, or `active` and `succeeded` pods. The conditions are true since 50 s."""
    status = {key: fields.pop(key) for key in ("active", "succeeded") if key in fields}
    meta = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": instant(40)}
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    true = [{"type": each, "status": "True", "lastTransitionTime": instant(50)} for each in conditions]
    manifest = {
        "metadata": meta | {"labels": labels},
        "spec": {"parallelism": 4, "template": pod_template(gpus, tier, model)} | fields,
        "status": status | {"conditions": true},
    }
    return msgspec.convert(manifest, Job, strict=False)
