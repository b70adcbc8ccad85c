"""The job of a pod: an explicit label of its framework, else the walk along its controllers."""

from collections.abc import Iterator, Mapping
from itertools import islice

from gputally.model.observation import OwnerResolved
from gputally.model.owner import Owner

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
_NAMING = frozenset(key for _, key in JOB_LABELS)
JOB_LABEL_KEYS = _NAMING | {_HASH}
_TOP = ("Job",)
"""Kinds where the walk stops: each run of a CronJob is a job of its own."""
_MOST_STEPS = 10
"""Owners on the way to the top. Real chains have five at most; a tenant can make one of any length."""

Owners = Mapping[Owner, OwnerResolved]


def job_of(name: str, labels: Mapping[str, str], owner: Owner | None, owners: Owners) -> tuple[str, str]:
    """(kind, name) of the job; the pod itself when nothing owns it, the nearest owner known so far otherwise."""
    if labelled := _labelled(labels):
        return labelled
    if owner is None:
        return "Pod", name
    reference = owner.reference
    if reference.kind == "ReplicaSet" and labels.get(_HASH):
        return "Deployment", reference.name.removesuffix(f"-{labels[_HASH]}")
    top = list(chain(owner, owners))[-1].reference
    return top.kind, top.name


def unknown_owner(labels: Mapping[str, str], owner: Owner | None, owners: Owners) -> Owner | None:
    """The owner that must be looked up before the walk can go on; None when it is complete or not needed."""
    if owner is None or _labelled(labels):
        return None
    if owner.reference.kind == "ReplicaSet" and labels.get(_HASH):
        return None
    steps = list(chain(owner, owners))
    last = steps[-1]
    ended = last.reference.kind in _TOP or last in owners or len(steps) == _MOST_STEPS
    return None if ended else last


def _labelled(labels: Mapping[str, str]) -> tuple[str, str] | None:
    if _NAMING.isdisjoint(labels):
        return None
    return next(((kind, labels[key]) for kind, key in JOB_LABELS if labels.get(key)), None)


def chain(owner: Owner, owners: Owners) -> Iterator[Owner]:
    """`owner` and its controllers: to the top, to the first unknown one, or as far as a walk goes."""
    return islice(_steps(owner, owners), _MOST_STEPS)


def _steps(owner: Owner, owners: Owners) -> Iterator[Owner]:
    """All of them, but no circle twice."""
    step: Owner | None = owner
    passed: set[Owner] = set()
    while step and step not in passed:
        yield step
        passed.add(step)
        step = _parent(owners[step]) if step in owners and step.reference.kind not in _TOP else None


def _parent(seen: OwnerResolved) -> Owner | None:
    return Owner(seen.owner.namespace, seen.parent) if seen.parent else None
