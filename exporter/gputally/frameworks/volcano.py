"""Volcano: its Jobs with their tasks, and the PodGroups into which it puts all pods that it schedules.

Shapes: volcano batch/v1alpha1, scheduling/v1beta1.
"""

from typing import Final

import msgspec
from msgspec import field
from msgspec.structs import replace

from gputally.errors import MalformedObject
from gputally.frameworks.framework import NO_STATED_GANG, Framework, GroupLabels, JobLabel, OnLoss, StatedGang
from gputally.frameworks.manifest import PlannedTemplate, PodKind, Roles
from gputally.frameworks.pod_group_kind import Declared, PodGroupKind, declared_of
from gputally.frameworks.stated import MOST_PODS, NO_GANG, count_of, first_of, pods_in
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Camel, Labels, Object, is_name
from gputally.model.kube.pods import Texts
from gputally.model.pod_record import PodRecord

_API: Final = "scheduling.volcano.sh"
_JOB_API: Final = "batch.volcano.sh"
_JOB: Final = "VolcanoJob"
_JOB_NAME: Final = "volcano.sh/job-name"
_NAMES: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
"""Annotations that name the group of a pod, the usual one first.

Source: volcano staging apis scheduling/v1beta1 (KubeGroupNameAnnotationKey, VolcanoGroupNameAnnotationKey).
"""
_SIZE: Final = "scheduling.volcano.sh/group-min-member"
"""An annotation that states a minimum."""
_FOR_ONE_OWNER: Final = f"{_API}/podgroup-"
"""How the names of groups begin that Volcano creates for pods without one, by the UID of their owner.

They need one pod at a time, unless an annotation says otherwise. Source: volcano pkg/controllers/podgroup.
"""
JOB_VERSION: Final = "volcano.sh/job-version"
"""An annotation: how often all pods of a Volcano job have been killed. `job-retry-count` counts restarts of parts, too.

Source: volcano pkg/controllers/job/job_controller_util.go, createJobPod, and killJob in job_controller_actions.go.
"""
TASK: Final = "volcano.sh/task-spec"
"""A label and an annotation: the task of a Volcano job that the pod is one of.

Source: volcano pkg/controllers/job/job_controller_util.go, createJobPod; the scheduler reads the annotation.
"""
MOST_TASKS: Final = 64
"""Tasks of one group; jobs have a few, and anyone may declare more."""


def task_of(record: PodRecord) -> str:
    """The task of a Volcano job that the pod is one of; "" for none."""
    for key, value in record.labels:
        if key == TASK:
            return value
    return ""


def scheduled_task(labels: Labels | None, annotations: Texts) -> str:
    """The task of a pod as the scheduler of Volcano reads it; "" for none, or an impossible name.

    An annotation may have 256 KiB, and is kept as long as the pod exists.
    """
    task = annotations.get(TASK) or (labels or {}).get(TASK, "")
    return task if is_name(task) else ""


def restarts_of(annotations: Texts | None) -> int:
    """How often the pod's controller had restarted the whole group, by an annotation of the pod; 0 without one."""
    return count_of(annotations.get(JOB_VERSION) or "") if annotations else 0


def is_for_one_owner(named: str, annotations: Texts) -> bool:
    """Whether a pod names a group, by API group and name, that says nothing: Volcano created it for a single owner."""
    return named.startswith(_FOR_ONE_OWNER) and count_of(annotations.get(_SIZE) or "") <= NO_GANG


def _stated_gang(_: Labels, annotations: Texts | None) -> StatedGang | None:
    """Volcano puts all pods into groups, most of them of one pod, so that there the size decides."""
    if annotations and (name := first_of(annotations, _NAMES)) and (size := pods_in(annotations, _SIZE)):
        return (name, size) if size > NO_GANG else NO_STATED_GANG
    return None


class VolcanoGroupSpec(Camel, frozen=True):
    """The spec of a PodGroup of Volcano, with a minimum for each task."""

    min_member: int | None = None
    min_task_member: dict[str, int] | None = None


class VolcanoPodGroup(Object, frozen=True):
    """scheduling.volcano.sh/v1beta1 PodGroup."""

    spec: VolcanoGroupSpec = field(default_factory=VolcanoGroupSpec)


def _declared(found: VolcanoPodGroup, at_us: int) -> Declared | None:
    """What the group says. Of those of one pod, only those of Volcano's own jobs say that one pod is enough."""
    pods = found.spec.min_member
    declared = declared_of(found, pods, at_us)
    if declared is None or pods is None:
        return None
    if pods <= NO_GANG and not _is_of_job(found):
        return None
    return replace(declared, tasks=_tasks_of(found, pods))


def _is_of_job(found: VolcanoPodGroup) -> bool:
    return any(each.api_version.startswith(f"{_JOB_API}/") for each in found.metadata.owner_references or ())


def _tasks_of(found: VolcanoPodGroup, pods: int) -> tuple[tuple[str, int], ...]:
    """The minimum of each task. Volcano ignores them all if their sum exceeds the minimum of the group.

    Source: volcano pkg/scheduler/api/job_info.go, CheckTaskReady. Raises: MalformedObject for an impossible one.
    """
    declared, meta = found.spec.min_task_member or {}, found.metadata
    if len(declared) > MOST_TASKS or any(not 0 <= each <= MOST_PODS for each in declared.values()):
        raise MalformedObject(meta.uid, f"PodGroup {meta.namespace}/{meta.name} has impossible minimums of tasks")
    if sum(declared.values()) > pods:
        return ()
    return tuple(sorted((task, least) for task, least in declared.items() if least and is_name(task)))


class _Task(Camel, frozen=True):
    name: str = ""
    replicas: int = 0
    template: PlannedTemplate = field(default_factory=PlannedTemplate)


class _JobSpec(Camel, frozen=True):
    scheduler_name: str = "volcano"
    tasks: tuple[_Task, ...] = ()


class _Job(Camel, frozen=True):
    """batch.volcano.sh/v1alpha1: its pods have the classes of their templates, and by default Volcano's scheduler.

    Source: volcano pkg/controllers/job/job_controller_util.go, createJobPod.
    """

    spec: _JobSpec = field(default_factory=_JobSpec)


def _roles(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=_Job).spec
    for index, task in enumerate(spec.tasks):
        template = task.template
        if not template.spec.scheduler_name:
            template = replace(template, spec=replace(template.spec, scheduler_name=spec.scheduler_name))
        yield task.name or f"default{index}", template, task.replicas


VOLCANO: Final = Framework(
    jobs=(JobLabel(_JOB, _JOB_NAME),),
    groups=(GroupLabels(_JOB, OnLoss.WAIT, (_JOB_NAME,)),),  # no matching policy: nothing else restarts
    queues=("volcano.sh/queue-name",),
    labels=(TASK,),
    states_gang=_stated_gang,
    pod_groups=PodGroupKind(
        kind=Kind.VOLCANO_GROUPS,
        scheduler="Volcano",
        api=_API,
        versions=("v1beta1",),
        type=VolcanoPodGroup,
        declared=_declared,
        annotations=_NAMES,
        size_annotation=_SIZE,
        reported=(r"(\d{1,6}) minAvailable", r"\d+/(\d{1,6}) tasks in gang"),  # job_info.go, plugins/gang/gang.go
        title="Volcano PodGroup",
    ),
    manifests={PodKind(_JOB_API, "Job", _JOB): _roles},
)
