"""Builds the objects of scenarios, as users would write them."""

from dataclasses import dataclass

from gputally_sim.documents import Doc
from gputally_sim.instants import format_duration
from gputally_sim.node.kubelet import EXIT, INITIALIZE_FOR, RUN_FOR, START_AFTER, STOP_AFTER
from gputally_sim.node.pods import GPU
from gputally_sim.scenarios.fleet import PRODUCT_LABEL

_IMAGE = "registry.example.org/ml/{app}:1.4.2"


@dataclass(frozen=True, kw_only=True)
class Work:
    """A pod's requests and behaviour; times in µs; `lasts_us` None means forever.

    `gpu_model` is the one that it selects, as GPU Feature Discovery names it; "" for none. `cpus` are by default those
    that go with its GPUs.
    """

    app: str
    kind: str
    tier: str = ""
    gpus: int = 1
    gpu_model: str = ""
    cpus: int | None = None
    initializes_us: int = 0
    starts_after_us: int = 0
    lasts_us: int | None = None
    stops_after_us: int = 0
    grace_seconds: int = 30
    fails: bool = False


def template(work: Work, *, restart: str) -> Doc:
    """A pod template; also the metadata and spec of a bare pod."""
    annotations = {START_AFTER: format_duration(work.starts_after_us), STOP_AFTER: format_duration(work.stops_after_us)}
    if work.initializes_us:
        annotations[INITIALIZE_FOR] = format_duration(work.initializes_us)
    if work.lasts_us is not None:
        annotations[RUN_FOR] = format_duration(work.lasts_us)
    if work.fails:
        annotations[EXIT] = "Failed"
    spec: Doc = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": work.grace_seconds,
        "containers": [_container(work)],
    }
    if work.tier:
        spec["priorityClassName"] = work.tier
    if work.gpu_model:
        spec["nodeSelector"] = {PRODUCT_LABEL: work.gpu_model}
    labels = {"app": work.app, "workload-type": work.kind}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _container(work: Work) -> Doc:
    limits = {GPU: str(work.gpus)} if work.gpus else {}
    cpus = max(1, 8 * work.gpus) if work.cpus is None else work.cpus
    requests = {"cpu": str(cpus), "memory": f"{max(1, 64 * work.gpus)}Gi"}
    resources = {"requests": requests, "limits": limits} if limits else {"requests": requests}
    return {"name": "main", "image": _IMAGE.format(app=work.app), "resources": resources}


def deployment(work: Work, replicas: int) -> Doc:
    """A Deployment of `replicas` such pods."""
    labels = {"app": work.app}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": template(work, restart="Always"),
    }
    return {"metadata": {"name": work.app, "labels": labels}, "spec": spec}


def job(work: Work, name: str, *, parallelism: int, completions: int) -> Doc:
    """A Job that ignores preemptions as failures; it is deleted some hours after its end."""
    spec = {
        "parallelism": parallelism,
        "completions": completions,
        "backoffLimit": 3,
        "ttlSecondsAfterFinished": 6 * 3600,
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [_DISRUPTED]}]},
        "template": template(work, restart="Never"),
    }
    labels = {"app": work.app, "workload-type": work.kind}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


_DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


def bare_pod(work: Work, name: str) -> Doc:
    """A pod that no controller manages."""
    pod = template(work, restart="Never")
    pod["metadata"]["name"] = name
    return pod


def training_pod(work: Work, job: str, uid: str, *, role: str) -> Doc:
    """The `master` or the `worker` of a Kubeflow PyTorchJob with this UID.

    Source: kubeflow training-operator pkg/apis/kubeflow.org/v1 labels.
    """
    pod = bare_pod(work, f"{job}-{role}-0")
    pod["metadata"]["labels"] |= {
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": str(0),
        **({"training.kubeflow.org/job-role": "master"} if role == "master" else {}),
    }
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job, "uid": uid, "controller": True}
    pod["metadata"]["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
    return pod


def cron_job(work: Work, schedule: str) -> Doc:
    """A CronJob object; the scenario creates its Jobs."""
    run = {"spec": {"template": template(work, restart="Never")}}
    spec = {"schedule": schedule, "concurrencyPolicy": "Forbid", "suspend": False, "jobTemplate": run}
    return {"metadata": {"name": work.app}, "spec": spec}


def priority_class(name: str, value: int, *, preempts: bool = True) -> Doc:
    """A PriorityClass."""
    policy = "PreemptLowerPriority" if preempts else "Never"
    return {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy, "description": f"tier {name}"}


def namespace(name: str, team: str = "") -> Doc:
    """A Namespace, with a team label when there is a team."""
    return {"metadata": {"name": name, "labels": {"team": team} if team else {}}}


def budget(app: str, min_available: int) -> Doc:
    """A PodDisruptionBudget for the pods of `app`."""
    spec = {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}}
    return {"metadata": {"name": app}, "spec": spec}


def quota(tier: str, gpus: int) -> Doc:
    """A ResourceQuota for the pods of one PriorityClass."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": [tier]}
    spec = {"hard": {f"requests.{GPU}": str(gpus)}, "scopeSelector": {"matchExpressions": [scope]}}
    return {"metadata": {"name": f"{tier}-quota"}, "spec": spec}
