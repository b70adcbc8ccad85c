"""Admission of new objects: defaults, priority and validation.

Source: kube-apiserver plugin/pkg/admission/priority, pkg/apis/core/v1/defaults.go, pkg/registry/*/strategy.go.
"""

from collections.abc import Callable

from gputally_sim.api import refusals
from gputally_sim.api.quotas import check_quotas
from gputally_sim.api.resources import BY_PLURAL
from gputally_sim.api.store import Store
from gputally_sim.documents import Doc, merge, uid_of
from gputally_sim.instants import rfc3339
from gputally_sim.node.pods import extended

DEFAULT_GRACE_SECONDS = 30
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_POD_DEFAULTS: Doc = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": DEFAULT_GRACE_SECONDS,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}


def admit(store: Store, plural: str, doc: Doc, now_us: int) -> Doc:
    """The object to store. Raises: StatusError if it is rejected."""
    resource = BY_PLURAL[plural]
    if resource.has_status and plural != "nodes":
        doc = {name: value for name, value in doc.items() if name != "status"}
    admission = _ADMISSIONS.get(plural)
    return admission(store, doc, now_us) if admission else doc


def _admit_pod(store: Store, pod: Doc, now_us: int) -> Doc:
    _require_containers(pod)
    spec = {**_POD_DEFAULTS, **pod["spec"]}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_with_requests(pod, container) for container in spec[field]]
    pod = {**pod, "spec": {**spec, **_priority(store, pod)}}
    check_quotas(store, pod)
    status: Doc = {"phase": "Pending", "qosClass": "BestEffort"}
    if spec.get("schedulingGates"):
        status["conditions"] = [_gated(now_us)]
    return {**pod, "status": status}


def _require_containers(pod: Doc) -> None:
    containers = (pod.get("spec") or {}).get("containers")
    named = isinstance(containers, list) and all(isinstance(each, dict) and each.get("name") for each in containers)
    if not containers or not named:
        raise refusals.invalid("Pod", pod["metadata"]["name"], "spec.containers: Required value")


def _require_template(kind: str, doc: Doc) -> None:
    template = (doc.get("spec") or {}).get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        raise refusals.invalid(kind, doc["metadata"]["name"], "spec.template: Required value")


def _gated(now_us: int) -> Doc:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now_us),
    }


def _with_requests(pod: Doc, container: Doc) -> Doc:
    """The container with requests defaulted to limits; for extended resources both must be equal."""
    resources = container.get("resources") or {}
    limits = {name: str(quantity) for name, quantity in (resources.get("limits") or {}).items()}
    requests = {name: str(quantity) for name, quantity in (resources.get("requests") or {}).items()}
    filled = {key: value for key, value in (("limits", limits), ("requests", {**limits, **requests})) if value}
    full = {"terminationMessagePath": "/dev/termination-log", **container, "resources": filled}
    try:
        unequal = {name for name, count in extended(full).items() if limits.get(name) != str(count)}
    except ValueError as error:
        raise refusals.invalid("Pod", pod["metadata"]["name"], f"resources.requests: {error}") from error
    if unequal:
        text = f"spec.containers[0].resources.limits: must be equal to {min(unequal)} request"
        raise refusals.invalid("Pod", pod["metadata"]["name"], text)
    return full


def _priority(store: Store, pod: Doc) -> Doc:
    """The spec fields `priorityClassName`, `priority` and `preemptionPolicy`."""
    name = pod["spec"].get("priorityClassName", "")
    found = _class_named(store, pod, name) if name else _default_class(store)
    priority = found["value"] if found else 0
    given = pod["spec"].get("priority")
    if given is not None and given != priority:
        text = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {priority} from the given PriorityClass name"
        )
        raise refusals.forbidden(BY_PLURAL["pods"], pod["metadata"]["name"], text)
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    named = {"priorityClassName": found["metadata"]["name"]} if found else {}
    return {**named, "priority": priority, "preemptionPolicy": policy}


def _class_named(store: Store, pod: Doc, name: str) -> Doc:
    found = store.get("priorityclasses", ("", name))
    if found is None:
        text = f"no PriorityClass with name {name} was found"
        raise refusals.forbidden(BY_PLURAL["pods"], pod["metadata"]["name"], text)
    return found.doc


def _default_class(store: Store) -> Doc | None:
    """The global default PriorityClass; the lowest one if there are several."""
    defaults = [doc for doc in store.docs("priorityclasses") if doc.get("globalDefault")]
    return min(defaults, key=lambda doc: doc["value"], default=None)


def _admit_priority_class(_: Store, doc: Doc, __: int) -> Doc:
    if not isinstance(doc.get("value"), int):
        raise refusals.invalid("PriorityClass", doc["metadata"]["name"], "value: Required value")
    return {"preemptionPolicy": "PreemptLowerPriority", **doc}


def _admit_namespace(_: Store, doc: Doc, __: int) -> Doc:
    label = {"metadata": {"labels": {"kubernetes.io/metadata.name": doc["metadata"]["name"]}}}
    named: Doc = merge(doc, label)
    return {**named, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _admit_job(_: Store, job: Doc, __: int) -> Doc:
    """Add the selector and labels with the Job's uid, which the client cannot know."""
    _require_template("Job", job)
    own = {"batch.kubernetes.io/controller-uid": uid_of(job)}
    name = job["metadata"]["name"]
    labels = {
        **own,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid_of(job),
        "job-name": name,
    }
    defaults = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False, "parallelism": 1}
    spec = {**defaults, **job["spec"], "selector": {"matchLabels": own}}
    if "completions" not in spec and "parallelism" not in job["spec"]:
        spec["completions"] = 1
    return _labelled_template({**job, "spec": spec}, labels)


def _labelled_template(doc: Doc, labels: dict[str, str]) -> Doc:
    labelled: Doc = merge(doc, {"spec": {"template": {"metadata": {"labels": labels}}}})
    return labelled


def _admit_workload(_: Store, doc: Doc, __: int) -> Doc:
    _require_template("Deployment", doc)
    return {**doc, "spec": {"replicas": 1, **doc["spec"]}}


def _admit_quota(_: Store, doc: Doc, __: int) -> Doc:
    hard = doc.get("spec", {}).get("hard", {})
    return {**doc, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}


def generation(plural: str) -> Doc:
    """The initial `generation`, for resources that have one."""
    counted = {"pods", "deployments", "replicasets", "jobs", "cronjobs", "poddisruptionbudgets"}
    return {"generation": 1} if plural in counted else {}


_ADMISSIONS: dict[str, Callable[[Store, Doc, int], Doc]] = {
    "pods": _admit_pod,
    "priorityclasses": _admit_priority_class,
    "namespaces": _admit_namespace,
    "jobs": _admit_job,
    "deployments": _admit_workload,
    "replicasets": _admit_workload,
    "resourcequotas": _admit_quota,
}
