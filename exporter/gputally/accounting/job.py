"""The job of a pod: an explicit label of its framework, else the walk along its controllers."""

from collections.abc import Iterator, Mapping

from gputally.model.kube import OwnerReference
from gputally.model.observation import OwnerSeen

JOB_LABELS = (
    ("JobSet", "jobset.sigs.k8s.io/jobset-name"),
    ("LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name"),
    ("TrainingJob", "training.kubeflow.org/job-name"),
    ("RayCluster", "ray.io/cluster"),
    ("Workflow", "workflows.argoproj.io/workflow"),
    ("PipelineRun", "tekton.dev/pipelineRun"),
    ("InferenceService", "serving.kserve.io/inferenceservice"),
    ("VolcanoJob", "volcano.sh/job-name"),
    ("Job", "batch.kubernetes.io/job-name"),
    ("Job", "job-name"),
)
"""Kind and label, the outermost framework first. Source: the frameworks' own API packages."""
_HASH = "pod-template-hash"
JOB_LABEL_KEYS = frozenset(key for _, key in JOB_LABELS) | {_HASH}
_TOP = ("Job",)
"""Kinds where the walk stops: each run of a CronJob is a job of its own."""

Owners = Mapping[str, OwnerSeen]


def job_of(name: str, labels: Mapping[str, str], owner: OwnerReference | None, owners: Owners) -> tuple[str, str]:
    """(kind, name) of the job; the pod itself when nothing owns it, the nearest owner known so far otherwise."""
    if labels:
        for kind, key in JOB_LABELS:
            if labels.get(key):
                return kind, labels[key]
    if owner is None:
        return "Pod", name
    if owner.kind == "ReplicaSet" and labels.get(_HASH):
        return "Deployment", owner.name.removesuffix(f"-{labels[_HASH]}")
    return _walk(owner, owners)


def unknown_owner(labels: Mapping[str, str], owner: OwnerReference | None, owners: Owners) -> OwnerReference | None:
    """The owner that must be fetched before the walk can go on; None when it is complete or not needed."""
    if owner is None or job_of("", labels, None, {})[0] != "Pod" or (owner.kind == "ReplicaSet" and labels.get(_HASH)):
        return None
    last = list(_steps(owner, owners))[-1]
    return None if last.kind in _TOP or last.uid in owners else last


def chain(owner: OwnerReference | None, owners: Owners) -> Iterator[str]:
    """The UIDs of the owners on the way up, as far as it is known."""
    return (step.uid for step in _steps(owner, owners)) if owner else iter(())


def _walk(owner: OwnerReference, owners: Owners) -> tuple[str, str]:
    top = list(_steps(owner, owners))[-1]
    return top.kind, top.name


def _steps(owner: OwnerReference, owners: Owners) -> Iterator[OwnerReference]:
    """`owner` and its controllers, to the top, to the first unknown one, or to where owners go in a circle."""
    step: OwnerReference | None = owner
    passed: set[str] = set()
    while step and step.uid not in passed:
        yield step
        passed.add(step.uid)
        step = _parent(owners[step.uid]) if step.uid in owners and step.kind not in _TOP else None


def _parent(seen: OwnerSeen) -> OwnerReference | None:
    if seen.parent_uid is None:
        return None
    return OwnerReference(
        kind=seen.parent_kind, name=seen.parent_name, uid=seen.parent_uid, api_version=seen.parent_api_version
    )
