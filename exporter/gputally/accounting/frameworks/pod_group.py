"""The group that a pod belongs to, and what happens to the group when one of its pods is lost."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from gputally.model.kube.pods import Texts
from gputally.model.pod_record import PodRecord


class OnLoss(StrEnum):
    """What a group does by default when it loses a pod; what is observed overrides it."""

    RESTART = "restart"
    """All pods are recreated."""
    WAIT = "wait"
    """The pod is replaced, and the others wait for it."""
    CONTINUE = "continue"
    """The pod is replaced, and the others go on."""


class PodGroup(Struct, frozen=True, gc=False, cache_hash=True):
    """A group by its kind, namespace and name; `name` tells groups and their incarnations of one namespace apart."""

    kind: str
    namespace: str
    name: str
    on_loss: OnLoss


class _Rule(Struct, frozen=True):
    """Pods with all of `keys` are a group of `kind`, named by their values; `more` keys may lack."""

    kind: str
    on_loss: OnLoss
    keys: tuple[str, ...]
    more: tuple[str, ...] = ()


_RULES: Final = (
    _Rule(
        "LeaderWorkerSet",
        OnLoss.RESTART,
        ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
    ),
    _Rule("JobSet", OnLoss.RESTART, ("jobset.sigs.k8s.io/jobset-name",), ("jobset.sigs.k8s.io/jobset-uid",)),
    _Rule("TrainingJob", OnLoss.WAIT, ("training.kubeflow.org/job-name",)),
    _Rule("VolcanoJob", OnLoss.WAIT, ("volcano.sh/job-name",)),
    _Rule("RayReplica", OnLoss.RESTART, ("ray.io/cluster", "ray.io/worker-group-replica-name")),
    _Rule("KueuePodGroup", OnLoss.RESTART, ("kueue.x-k8s.io/pod-group-name",)),
    _Rule("RayCluster", OnLoss.CONTINUE, ("ray.io/cluster",)),
    _Rule(
        "Job",
        OnLoss.CONTINUE,
        ("batch.kubernetes.io/job-name",),
        ("batch.kubernetes.io/controller-uid",),
    ),
)
"""The outermost framework first; JobSet, for one, creates Jobs.

Sources: jobset api/jobset/v1alpha2; lws pkg/controllers/pod_controller.go (RecreateGroupOnPodRestart by default);
training-operator pkg/controller.v1; volcano pkg/controllers/job (no matching policy restarts nothing else); kuberay
ray-operator/controllers/ray (numOfHosts above 1); kueue pkg/controller/jobframework; kubernetes pkg/controller/job.
"""
RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
"""How often a JobSet has recreated all its Jobs."""
JOB_VERSION: Final = "volcano.sh/job-version"
"""An annotation: how often all pods of a Volcano job have been killed. `job-retry-count` counts restarts of parts, too.

Source: volcano pkg/controllers/job/job_controller_util.go, createJobPod, and killJob in job_controller_actions.go.
"""
TASK: Final = "volcano.sh/task-spec"
"""A label and an annotation: the task of a Volcano job that the pod is one of.

Source: volcano pkg/controllers/job/job_controller_util.go, createJobPod; the scheduler reads the annotation.
"""
_OF_GROUPS: Final = (RESTART_ATTEMPT, TASK)
GROUP_LABEL_KEYS: Final = frozenset(key for rule in _RULES for key in (*rule.keys, *rule.more)).union(_OF_GROUPS)


def group_of(record: PodRecord) -> PodGroup | None:
    """The group of a pod; None for a pod on its own."""
    if record.labels:
        labels = dict(record.labels)
        for rule in _RULES:
            if all(map(labels.get, rule.keys)):
                return _group(rule, record.namespace, labels.get)
    if record.scheduling_group:
        return PodGroup("PodGroup", record.namespace, record.scheduling_group, OnLoss.WAIT)
    return None


def _group(rule: _Rule, namespace: str, value: Callable[[str], str | None]) -> PodGroup:
    return PodGroup(rule.kind, namespace, "/".join(value(key) or "" for key in (*rule.keys, *rule.more)), rule.on_loss)


def attempt_of(record: PodRecord) -> int:
    """How often its controller had restarted the whole group when it created the pod; 0 if that is not counted."""
    return record.restarts or count_of(dict(record.labels).get(RESTART_ATTEMPT, ""))


def task_of(record: PodRecord) -> str:
    """The task of a Volcano job that the pod is one of; "" for none."""
    return next((value for key, value in record.labels if key == TASK), "")


def restarts_of(annotations: Texts | None) -> int:
    """How often the pod's controller had restarted the whole group, by an annotation of the pod; 0 without one."""
    return count_of(annotations.get(JOB_VERSION) or "") if annotations else 0


def job_uid_of(group: PodGroup) -> str:
    """The UID of the Job that controls the group; "" for other kinds."""
    return group.name.rpartition("/")[2] if group.kind == "Job" else ""


def count_of(text: str) -> int:
    """A number that a label or an annotation states, which anyone may have written; 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004 - digits
