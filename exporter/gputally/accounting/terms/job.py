"""The job of a pod: from its framework's label, otherwise from its chain of controllers."""

from collections.abc import Iterator, Mapping
from itertools import islice

from gputally.model.kube.meta import Owner
from gputally.model.observation import OwnerResolved

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
_TOP = (("batch", "Job"), ("", "Job"))
"""Groups and kinds at which the walk stops: each run of a CronJob is a separate job. Imported owners have no group."""
_MOST_STEPS = 10
"""Limit of owners in a chain. Real ones have up to five; a tenant can create any number."""

Owners = Mapping[Owner, OwnerResolved]


def job_of(name: str, labels: Mapping[str, str], owner: Owner | None, owners: Owners) -> tuple[str, str]:
    """(kind, name) of the job: the last known owner; the pod itself without owners."""
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
    """The next owner to look up; None if the walk is complete or not needed."""
    if owner is None or _labelled(labels):
        return None
    if owner.reference.kind == "ReplicaSet" and labels.get(_HASH):
        return None
    steps = list(chain(owner, owners))
    last = steps[-1]
    ended = _is_top(last) or last in owners or len(steps) == _MOST_STEPS
    return None if ended else last


def _labelled(labels: Mapping[str, str]) -> tuple[str, str] | None:
    if _NAMING.isdisjoint(labels):
        return None
    for kind, key in JOB_LABELS:
        if name := labels.get(key):
            return kind, name
    return None


def chain(owner: Owner, owners: Owners) -> Iterator[Owner]:
    """`owner` and its controllers, up to the top, the first unknown one, or the limit."""
    return islice(_steps(owner, owners), _MOST_STEPS)


def _steps(owner: Owner, owners: Owners) -> Iterator[Owner]:
    """All of them; ends at a cycle."""
    step: Owner | None = owner
    passed: set[Owner] = set()
    while step and step not in passed:
        yield step
        passed.add(step)
        step = _parent(owners[step]) if step in owners and not _is_top(step) else None


def _is_top(owner: Owner) -> bool:
    return (owner.reference.api_version.rpartition("/")[0], owner.reference.kind) in _TOP


def _parent(seen: OwnerResolved) -> Owner | None:
    return Owner(seen.owner.namespace, seen.parent) if seen.parent else None
