"""The table of all frameworks, and what the labels, annotations and objects of any of them mean."""

import re
from collections.abc import Mapping
from typing import Final

from gputally.frameworks.argo import ARGO
from gputally.frameworks.batch import BATCH
from gputally.frameworks.core_pod_groups import CORE
from gputally.frameworks.coscheduling import COSCHEDULING
from gputally.frameworks.framework import Framework, GroupLabels, JobLabel, StatesGang
from gputally.frameworks.jobset import JOB_SETS
from gputally.frameworks.kai import KAI
from gputally.frameworks.kserve import KSERVE
from gputally.frameworks.kubeflow import KUBEFLOW
from gputally.frameworks.kueue import KUEUE
from gputally.frameworks.lws import LEADER_WORKER_SETS
from gputally.frameworks.manifest import PodKind, ReadRoles
from gputally.frameworks.pod_group_kind import PodGroupKind
from gputally.frameworks.ray import RAY
from gputally.frameworks.tekton import TEKTON
from gputally.frameworks.volcano import VOLCANO
from gputally.model.kube.kinds import Kind

FRAMEWORKS: Final[tuple[Framework, ...]] = (
    JOB_SETS,
    LEADER_WORKER_SETS,
    KUBEFLOW,
    RAY,
    ARGO,
    TEKTON,
    KSERVE,
    KUEUE,
    VOLCANO,
    KAI,
    COSCHEDULING,
    CORE,
    BATCH,
)
"""The outermost first; JobSet, for one, creates Jobs. Sources: the frameworks' own API packages."""
_GROUPS_FIRST: Final = (LEADER_WORKER_SETS, JOB_SETS, KUBEFLOW, COSCHEDULING, VOLCANO)
"""What they say about groups precedes what others say."""
_BY_GROUPS: Final = (*_GROUPS_FIRST, *(each for each in FRAMEWORKS if each not in _GROUPS_FIRST))
JOB_LABELS: Final[tuple[JobLabel, ...]] = tuple(label for each in FRAMEWORKS for label in each.jobs)
ATTEMPTS: Final = frozenset(each.attempts for each in FRAMEWORKS if each.attempts)
STATING: Final[tuple[StatesGang, ...]] = tuple(each.states_gang for each in _BY_GROUPS if each.states_gang)
"""The first one that knows a pod decides."""
POD_GROUPS: Final[tuple[PodGroupKind, ...]] = tuple(each.pod_groups for each in FRAMEWORKS if each.pod_groups)
POD_GROUPS_BY_API: Final[Mapping[str, PodGroupKind]] = {each.api: each for each in POD_GROUPS}
POD_GROUPS_BY_KIND: Final[Mapping[Kind, PodGroupKind]] = {each.kind: each for each in POD_GROUPS}
POD_GROUPS_BY_TYPE: Final[Mapping[type, PodGroupKind]] = {each.type: each for each in POD_GROUPS}
REPORTED_SIZE: Final = re.compile("|".join(pattern for each in POD_GROUPS for pattern in each.reported))
"""How schedulers report the size of a gang."""
MANIFESTS: Final[Mapping[PodKind, ReadRoles]] = {
    kind: read for each in FRAMEWORKS for kind, read in each.manifests.items()
}
_QUEUE_LABELS: Final = tuple(key for each in FRAMEWORKS for key in each.queues)
_QUEUES: Final = frozenset(_QUEUE_LABELS)


def _gangs_first() -> tuple[GroupLabels, ...]:
    found = [labels for each in _BY_GROUPS for labels in each.groups]
    return tuple(sorted(found, key=lambda each: not each.is_gang))


GROUPS: Final = _gangs_first()
"""A pod is in the first one of which it has all labels."""
GANG_KINDS: Final = frozenset(each.kind for each in GROUPS if each.is_gang)
LABEL_KEYS: Final = frozenset(
    [
        *_QUEUE_LABELS,
        *ATTEMPTS,
        *(each.key for each in JOB_LABELS),
        *(key for each in GROUPS for key in (*each.keys, *each.more)),
        *(key for each in FRAMEWORKS for key in each.labels),
    ]
)
"""The labels of pods that any framework reads."""


def queue_of(labels: Mapping[str, str]) -> str:
    """The queue in the label of Kueue, Volcano or KAI; "" without one."""
    if _QUEUES.isdisjoint(labels):
        return ""
    return next((labels[key] for key in _QUEUE_LABELS if labels.get(key)), "")
