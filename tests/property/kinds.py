"""The types of what a random history tells."""

from typing import Final

from gputally.model.custom_resources.pod_groups import CoschedulingPodGroup, VolcanoPodGroup
from gputally.model.kube import Job, Kind, Node, Object
from gputally.model.objects.placeable_pod import PlaceablePod

KINDS: Final[dict[str, tuple[Kind, type[Object]]]] = {
    "pod": (Kind.PODS, PlaceablePod),
    "node": (Kind.NODES, Node),
    "job": (Kind.JOBS, Job),
    "coscheduling": (Kind.COSCHEDULING_GROUPS, CoschedulingPodGroup),
    "volcano": (Kind.VOLCANO_GROUPS, VolcanoPodGroup),
}
