"""Manifests as plain dicts, for real and simulated clusters."""

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Labels = Mapping[str, str]

GPU = "nvidia.com/gpu"
POOL = "gputally.io/pool"


def collection(manifest: Json) -> str:
    """The path under which objects like `manifest` live."""
    version = manifest["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{group}{within}/{plural(manifest['kind'].lower())}"


def plural(kind: str) -> str:
    """`networkpolicies` of `networkpolicy`, `priorityclasses` of `priorityclass`."""
    if kind.endswith("y"):
        return f"{kind.removesuffix('y')}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def path(manifest: Json) -> str:
    """The path of the object itself."""
    return f"{collection(manifest)}/{manifest['metadata']['name']}"


def gpu_node(
    name: str, *, gpus: int = 8, product: str = "NVIDIA-A100-SXM4-80GB", pool: str = "", labels: Labels | None = None
) -> Json:
    """A node that kwok runs; pods of the same `pool` are bound only to nodes of that pool."""
    resources = {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: str(gpus)}
    discovered = {f"{GPU}.present": "true", f"{GPU}.product": product, f"{GPU}.count": str(gpus)}
    given = {"kubernetes.io/hostname": name, POOL: pool, **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": discovered | given,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def conduct(
    *, start_after: str = "", run_for: str = "", exit_as: str = "", stop_after: str = "", exit_on_term: str = ""
) -> dict[str, str]:
    """Annotations that control a simulated pod's lifecycle; durations in Go's format; empty ones are omitted.

    Args:
        start_after: From the binding until the containers run.
        run_for: From running until the containers complete; by default they run until deleted.
        exit_as: `Failed` makes the containers fail with exit code 1.
        stop_after: From the deletion request until the containers have exited.
        exit_on_term: The exit code of running containers after a deletion request, instead of 143.
    """
    on_term = {"stop-after": stop_after, "exit-on-term": exit_on_term}
    given = {"start-after": start_after, "run-for": run_for, "exit": exit_as, **on_term}
    return {f"pod.gputally.io/{name}": value for name, value in given.items() if value}


def gpu_pod(
    name: str,
    namespace: str,
    *,
    gpus: int = 1,
    labels: Labels | None = None,
    annotations: Labels | None = None,
    **spec: object,
) -> Json:
    """A pod with one container; `spec` are PodSpec fields by name, as in `priorityClassName="high"`."""
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {GPU: str(gpus)} if gpus else {}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace, labels) | {"annotations": dict(annotations or {})},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 30} | spec,
    }


def job(pod: Json, *, parallelism: int = 1, **spec: object) -> Json:
    """A Job with the name of `pod` that runs copies of it."""
    return workload("batch/v1", "Job", pod, {"parallelism": parallelism, "completions": parallelism} | spec)


def deployment(pod: Json, *, replicas: int = 1) -> Json:
    """A Deployment with the name of `pod` that keeps copies of it running."""
    app = {"app": pod["metadata"]["name"]}
    labelled = {**pod["metadata"], "labels": pod["metadata"]["labels"] | app}
    served = {**pod, "metadata": labelled, "spec": pod["spec"] | {"restartPolicy": "Always"}}
    return workload("apps/v1", "Deployment", served, {"replicas": replicas, "selector": {"matchLabels": app}})


def workload(api_version: str, kind: str, pod: Json, spec: Json) -> Json:
    template = {"metadata": {field: pod["metadata"][field] for field in ("labels", "annotations")}, "spec": pod["spec"]}
    own = metadata(pod["metadata"]["name"], pod["metadata"]["namespace"], pod["metadata"]["labels"])
    return {"apiVersion": api_version, "kind": kind, "metadata": own, "spec": spec | {"template": template}}


def namespace(name: str, *, labels: Labels | None = None) -> Json:
    """A namespace, which is a tenant in most clusters."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name, "", labels)}


def priority_class(name: str, value: int, *, preempts: bool = True, default: bool = False) -> Json:
    """A tier; with `preempts=False` its pods preempt no others."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(name),
        "value": value,
        "globalDefault": default,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }


def pod_disruption_budget(name: str, namespace: str, *, labels: Labels, min_available: int) -> Json:
    """Protect `min_available` of the pods with `labels`."""
    spec = {"minAvailable": min_available, "selector": {"matchLabels": dict(labels)}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, namespace),
        "spec": spec,
    }


def resource_quota(name: str, namespace: str, *, gpus: int, priority_class: str = "") -> Json:
    """Limit GPU requests in the namespace, or only those of pods with `priority_class`."""
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": [priority_class]}
    scoped: Json = {"scopeSelector": {"matchExpressions": [scope]}} if priority_class else {}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(name, namespace),
        "spec": {"hard": {f"requests.{GPU}": str(gpus)}} | scoped,
    }


def cluster_role(name: str, rules: Sequence[Json]) -> Json:
    """A ClusterRole with rules `{"apiGroups": [...], "resources": [...], "verbs": [...]}`."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(name),
        "rules": list(rules),
    }


def cluster_role_binding(role: str, *, user: str = "gputally") -> Json:
    """Bind the ClusterRole `role` to `user`."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata(f"{role}-{user}"),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def metadata(name: str, namespace: str = "", labels: Labels | None = None) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": dict(labels or {})}
