"""Ray: clusters whose workers work without each other, unless several hosts are one worker.

Source: kuberay ray-operator/controllers/ray (numOfHosts above 1).
"""

from typing import Final

from gputally.frameworks.framework import Framework, GroupLabels, JobLabel, OnLoss

_CLUSTER: Final = "ray.io/cluster"
_REPLICA: Final = "ray.io/worker-group-replica-name"

RAY: Final = Framework(
    jobs=(JobLabel("RayCluster", _CLUSTER),),
    groups=(
        GroupLabels("RayReplica", OnLoss.RESTART, (_CLUSTER, _REPLICA)),
        GroupLabels("RayCluster", OnLoss.CONTINUE, (_CLUSTER,), is_gang=False),
    ),
)
