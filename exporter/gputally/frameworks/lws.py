"""LeaderWorkerSet: groups of a leader and workers, which are recreated together.

Sources: lws pkg/controllers/pod_controller.go (RecreateGroupOnPodRestart by default); api/leaderworkerset/v1
(SizeAnnotationKey).
"""

from typing import Final

from gputally.frameworks.framework import Framework, GroupLabels, JobLabel, OnLoss, StatedGang
from gputally.frameworks.stated import pods_in
from gputally.model.kube.meta import Labels
from gputally.model.kube.pods import Texts
from gputally.model.pod_record import PodRecord

LEADER_WORKER_SET: Final = "LeaderWorkerSet"
_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"


def is_leader(record: PodRecord) -> bool:
    """Whether a pod of a LeaderWorkerSet leads its group: only the names of workers have another number."""
    labels = dict(record.labels)
    return record.name == "-".join(labels.get(key, "") for key in (_NAME, _INDEX))


def _stated_gang(_: Labels, annotations: Texts | None) -> StatedGang | None:
    if annotations and (size := pods_in(annotations, _SIZE)):
        return "", size
    return None


LEADER_WORKER_SETS: Final = Framework(
    jobs=(JobLabel(LEADER_WORKER_SET, _NAME),),
    groups=(GroupLabels(LEADER_WORKER_SET, OnLoss.RESTART, (_NAME, _INDEX)),),
    states_gang=_stated_gang,
)
